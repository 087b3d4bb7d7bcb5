//! An operator works by the service of a router alone, while inserts and searches go on. It finds and refuses what
//! `simshard cluster` does.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use simshard_proto::admin::v1 as pb;
use simshard_proto::admin::v1::admin_service_client::AdminServiceClient;
use simshard_proto::{Reason, shards_into};
use simshard_testkit::{End, ProcessCluster, Shape, until, until_within};
use tokio::task::block_in_place;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Response, Status};

use crate::moves::{loaded, operate, refuse};
use crate::upgrades::put;

type Service = AdminServiceClient<Channel>;

/// Shards move while the machine has much to do.
const PATIENCE: Duration = Duration::from_secs(90);

async fn service(cluster: &ProcessCluster) -> Service {
    let endpoint = Endpoint::from_shared(cluster.url()).unwrap();
    AdminServiceClient::new(endpoint.connect().await.unwrap())
}

/// The message of a refusal.
fn refused<T: std::fmt::Debug>(answer: Result<Response<T>, Status>, reason: Reason) -> String {
    let status = answer.unwrap_err();
    assert_eq!(Reason::of(&status), Some(reason), "{status:?}");
    status.message().to_owned()
}

/// The objects that a command prints, a line each.
fn objects(cluster: &ProcessCluster, command: &[&str]) -> Vec<Value> {
    let printed = operate(cluster, &[command, &["--json"]].concat());
    let lines = printed.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn ranges(shards: &[u32]) -> String {
    shards_into(shards).unwrap().to_string()
}

/// The shards that a node holds in sync.
async fn held(service: &mut Service, node: &str) -> usize {
    let node = node.to_owned();
    let request = pb::ListShardsRequest { node: node.clone() };
    let groups = service.list_shards(request).await.unwrap();
    let groups = groups.into_inner().groups.into_iter();
    let held = groups.filter(|group| group.in_sync.contains(&node));
    held.map(|group| group.shards.len()).sum()
}

/// Waits until nodes hold as many shards in sync.
async fn until_held(service: &mut Service, expected: &[(&str, usize)]) {
    until_within(PATIENCE, "shards are where they are to be", async || {
        for (node, count) in expected {
            if held(service, node).await != *count {
                return false;
            }
        }
        true
    })
    .await;
}

async fn plan(service: &mut Service) -> Option<pb::Plan> {
    let answer = service.get_plan(pb::GetPlanRequest {}).await.unwrap();
    answer.into_inner().plan
}

async fn is_all(service: &mut Service, state: pb::MoveState) -> bool {
    let plan = plan(service).await.unwrap();
    plan.moves.iter().all(|moved| moved.state() == state)
}

async fn draw(service: &mut Service) -> pb::DrawPlanResponse {
    let drawn = service.draw_plan(pb::DrawPlanRequest {}).await;
    drawn.unwrap().into_inner()
}

fn all_to(nodes: &[&str]) -> pb::MoveShardsRequest {
    pb::MoveShardsRequest {
        shards: (0..256).collect(),
        nodes: nodes.iter().map(|&node| node.to_owned()).collect(),
        dry_run: false,
    }
}

fn apply(plan_id: &str, confirmed: bool) -> pb::ApplyPlanRequest {
    pb::ApplyPlanRequest {
        plan_id: plan_id.to_owned(),
        confirmed,
    }
}

fn drain(node: &str, dry_run: bool) -> pb::DrainNodeRequest {
    pb::DrainNodeRequest {
        node: node.to_owned(),
        dry_run,
    }
}

/// Whether the service and the command draw the same plan by which n3 is emptied, one after the other.
async fn draw_the_same(cluster: &ProcessCluster, service: &mut Service) -> bool {
    let drawn = service.drain_node(drain("n3", true)).await.unwrap();
    let drawn = drawn.into_inner();
    assert!(drawn.moving_shards.is_empty());
    let drawn = drawn.shares.iter().map(|share| {
        let (before, after) = (&share.shards_before, &share.shards_after);
        [share.node.clone(), ranges(before), ranges(after)]
    });
    let drawn: Vec<_> = drawn.collect();
    let shown = objects(cluster, &["drain", "n3", "--dry-run"]);
    let shown = shown.iter().map(|shown| {
        let text = |name: &str| shown[name].as_str().unwrap().to_owned();
        ["node", "before", "after"].map(text)
    });
    let shown: Vec<_> = shown.collect();
    for plan in [&drawn, &shown] {
        assert_eq!(plan.len(), 3);
        assert_eq!((&*plan[2][0], &*plan[2][2]), ("n3", "none"));
    }
    for (drawn, shown) in drawn.iter().zip(&shown) {
        assert_eq!(drawn[..2], shown[..2]);
    }
    drawn == shown
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_emptied_and_comes_back_by_a_plan() {
    let (cluster, load) = loaded(3, 1).await;
    let mut service = service(&cluster).await;
    // Documents are inserted between two plans, so that these may differ by a shard now and then.
    until("both draw the same plan", async || {
        draw_the_same(&cluster, &mut service).await
    })
    .await;
    let before = held(&mut service, "n3").await;
    let drained = service.drain_node(drain("n3", false)).await.unwrap();
    assert_eq!(drained.into_inner().moving_shards.len(), before);
    until_held(&mut service, &[("n3", 0)]).await;
    load.until_more(20).await;

    let node = "n3".to_owned();
    let undrain = pb::UndrainNodeRequest { node };
    service.undrain_node(undrain).await.unwrap();
    let drawn = draw(&mut service).await;
    assert!(!drawn.plan_id.is_empty());
    assert_eq!(drawn.shares.len(), 3);
    assert!(is_all(&mut service, pb::MoveState::Planned).await);
    let told = refused(
        service.apply_plan(apply(&drawn.plan_id, false)).await,
        Reason::NotConfirmed,
    );
    assert!(told.contains("shards move, "), "{told}");
    let other = service.apply_plan(apply("another", true)).await;
    refused(other, Reason::ChangedMeanwhile);
    assert_eq!(held(&mut service, "n3").await, 0);
    let applied = service.apply_plan(apply(&drawn.plan_id, true)).await;
    let moving = applied.unwrap().into_inner().moving_shards.len();
    assert!((50..=90).contains(&moving), "{moving}");
    until_held(&mut service, &[("n3", moving)]).await;
    until("the plan says so", async || {
        is_all(&mut service, pb::MoveState::Arrived).await
    })
    .await;
    load.end(&cluster.client()).await;
}

/// PE17.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_waits_goes_stale_and_is_taken_back() {
    let (cluster, load) = loaded(3, 1).await;
    let mut service = service(&cluster).await;
    let none = service.apply_plan(apply("", true)).await;
    let told = refused(none, Reason::Refused);
    assert!(told.contains("no plan is staged"), "{told}");
    let moved = service.move_shards(all_to(&["n1"])).await.unwrap();
    assert!(moved.into_inner().moving_shards.len() > 128);
    until_held(&mut service, &[("n1", 256)]).await;

    let stale = draw(&mut service).await;
    let gone = plan(&mut service).await.unwrap().moves[0].shards.clone();
    let moves = pb::MoveShardsRequest {
        shards: gone.clone(),
        ..all_to(&["n2"])
    };
    service.move_shards(moves).await.unwrap();
    let told = refused(
        service.apply_plan(apply(&stale.plan_id, true)).await,
        Reason::Refused,
    );
    assert!(told.contains("the plan is stale"), "{told}");
    refuse(&cluster, &["rebalance", "apply", "--yes"], &told);
    service
        .free_shards(pb::FreeShardsRequest { shards: gone })
        .await
        .unwrap();

    let pause = service.pause_moves(pb::PauseMovesRequest {}).await.unwrap();
    let again = service.pause_moves(pb::PauseMovesRequest {}).await.unwrap();
    assert_eq!(again.into_inner(), pause.into_inner());
    let drawn = draw(&mut service).await;
    let applied = service.apply_plan(apply(&drawn.plan_id, true)).await;
    applied.unwrap();
    let second = service.draw_plan(pb::DrawPlanRequest {}).await;
    let told = refused(second, Reason::Refused);
    assert!(told.contains("another plan is being carried out"), "{told}");
    load.until_more(20).await;
    let shown = operate(&cluster, &["rebalance", "show"]);
    assert!(
        shown.contains("\twaits\n") && !shown.contains("\tcopies"),
        "{shown}"
    );

    let aborted = service.abort_plan(pb::AbortPlanRequest {}).await.unwrap();
    let aborted = aborted.into_inner();
    assert!(aborted.had_plan && aborted.arrived_shard_count < aborted.shard_count);
    assert_eq!(plan(&mut service).await, None);
    let resume = service.resume_moves(pb::ResumeMovesRequest {}).await;
    resume.unwrap();
    let now = service.get_plan(pb::GetPlanRequest {}).await.unwrap();
    assert_eq!(now.into_inner().pause_time, None);
    let none = service.abort_plan(pb::AbortPlanRequest {}).await.unwrap();
    assert!(!none.into_inner().had_plan);
    load.end(&cluster.client()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_get_replicas_and_a_node_takes_the_place_of_another() {
    let (mut cluster, load) = loaded(3, 1).await;
    let mut service = service(&cluster).await;
    let wish = |replicas, confirmed| pb::SetReplicationRequest {
        replicas,
        hot: Some(1),
        confirmed,
        dry_run: false,
    };
    service.set_replication(wish(2, false)).await.unwrap();
    let all = async |service: &mut Service| {
        held(service, "n1").await + held(service, "n2").await + held(service, "n3").await
    };
    until_within(PATIENCE, "two replicas", async || {
        all(&mut service).await == 512
    })
    .await;
    let told = refused(
        service.set_replication(wish(1, false)).await,
        Reason::NotConfirmed,
    );
    assert!(told.contains("Shards get 1 replica, and had 2."), "{told}");
    let too_many = service.set_replication(wish(4, false)).await;
    let told = refused(too_many, Reason::Refused);
    assert!(told.contains("4 are needed, and there are 3"), "{told}");
    service.set_replication(wish(1, true)).await.unwrap();
    until_within(PATIENCE, "one replica", async || {
        all(&mut service).await == 256
    })
    .await;

    service.move_shards(all_to(&["n1"])).await.unwrap();
    until_held(&mut service, &[("n1", 256)]).await;
    let replace = |dry_run| pb::ReplaceNodeRequest {
        node: "n1".to_owned(),
        replacement: "n2".to_owned(),
        dry_run,
    };
    let dry = service.replace_node(replace(true)).await.unwrap();
    assert_eq!(dry.into_inner().shares.len(), 2);
    let replaced = service.replace_node(replace(false)).await.unwrap();
    assert_eq!(replaced.into_inner().moving_shards.len(), 256);
    until_held(&mut service, &[("n1", 0), ("n2", 256)]).await;

    let node = "n1".to_owned();
    let remove = pb::RemoveNodeRequest { node };
    let told = refused(service.remove_node(remove.clone()).await, Reason::Refused);
    assert!(told.contains("n1 still runs"), "{told}");
    let node = "n2".to_owned();
    let holding = pb::RemoveNodeRequest { node };
    let told = refused(service.remove_node(holding).await, Reason::Refused);
    assert!(told.contains("node n2 holds shards 00-ff"), "{told}");
    block_in_place(|| cluster.end_node(0, End::Stopped));
    service.remove_node(remove).await.unwrap();
    let nodes = service.list_nodes(pb::ListNodesRequest {}).await.unwrap();
    let nodes = nodes.into_inner().nodes.into_iter();
    let names: Vec<String> = nodes.map(|node| node.name).collect();
    assert_eq!(names, ["n2", "n3"]);
    load.end(&cluster.client()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_finds_what_the_command_finds() {
    let cluster = ProcessCluster::start(Shape::of(2));
    let mut service = service(&cluster).await;
    let node = || "n1".to_owned();
    let zone = "rack-a".to_owned();
    let set_zone = pb::SetZoneRequest { node: node(), zone };
    service.set_zone(set_zone).await.unwrap();
    let set_capacity = pb::SetCapacityRequest {
        node: node(),
        capacity: 2,
    };
    service.set_capacity(set_capacity).await.unwrap();
    let set_limits = pb::SetLimitsRequest {
        node: node(),
        copy_rate: 50,
    };
    service.set_limits(set_limits).await.unwrap();
    let nodes = service.list_nodes(pb::ListNodesRequest {}).await.unwrap();
    let nodes = nodes.into_inner().nodes;
    let shown = objects(&cluster, &["nodes"]);
    assert_eq!((nodes.len(), shown.len()), (2, 2));
    for (node, shown) in nodes.iter().zip(&shown) {
        assert_eq!(shown["node"], *node.name);
        assert_eq!(shown["address"], *node.address);
        assert_eq!(shown["store"], *node.store);
        assert_eq!(shown["answers"], node.answers);
        assert_eq!(shown["zone"].as_str().unwrap_or_default(), node.zone);
        assert_eq!(shown["capacity"], node.capacity);
        assert_eq!(
            shown["copy_rate"].as_u64().unwrap_or(0),
            u64::from(node.copy_rate)
        );
    }
    assert_eq!((nodes[0].capacity, nodes[0].copy_rate), (2, 50));

    let request = pb::ListShardsRequest::default();
    let groups = service.list_shards(request).await.unwrap();
    let groups = groups.into_inner().groups;
    let shown = objects(&cluster, &["shards"]);
    assert_eq!(groups.len(), shown.len());
    for (group, shown) in groups.iter().zip(&shown) {
        assert_eq!(shown["shards"], ranges(&group.shards));
        assert_eq!(shown["epoch"], *group.epoch);
        assert_eq!(shown["in_sync"], serde_json::json!(group.in_sync));
        assert_eq!(shown["frozen"], group.frozen);
        assert_eq!(shown["floor"].as_str().unwrap_or_default(), group.floor);
        assert_eq!(shown["settled"].as_str().unwrap_or_default(), group.settled);
    }
    let status = service.get_status(pb::GetStatusRequest {}).await.unwrap();
    let findings = status.into_inner().findings;
    let shown = objects(&cluster, &["status"]);
    assert_eq!(findings.len(), shown.len());
    findings
        .iter()
        .zip(&shown)
        .for_each(|(finding, shown)| compare(finding, shown));
}

/// Facts have the names that the command prints.
fn compare(finding: &pb::Finding, shown: &Value) {
    assert_eq!(shown["part"], *finding.part);
    assert_eq!(shown["well"], finding.well, "{shown}");
    let facts = &finding.facts.as_ref().unwrap().fields;
    let facts: BTreeSet<&String> = facts.keys().collect();
    let fields = shown.as_object().unwrap().keys();
    let fields = fields.filter(|name| !["part", "well"].contains(&name.as_str()));
    assert_eq!(fields.collect::<BTreeSet<_>>(), facts);
}

/// What it forgets is to be set anew, so it says so. A node that never registered may have settings as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_says_what_undrain_forgets() {
    let cluster = ProcessCluster::start(Shape::of(2));
    let mut service = service(&cluster).await;
    for (node, text) in [("n2", "[true]"), ("n22", "{")] {
        put(&cluster, &format!("nodes/{node}"), text).await;
        let undrain = || pb::UndrainNodeRequest {
            node: node.to_owned(),
        };
        let answer = service.undrain_node(undrain()).await.unwrap().into_inner();
        let [warning] = &answer.warnings[..] else {
            panic!("{answer:?}");
        };
        assert!(warning.contains(node), "{warning}");
        assert!(warning.contains("drain it again"), "{warning}");
        let again = service.undrain_node(undrain()).await;
        assert_eq!(again.is_ok(), node == "n2", "{again:?}");
    }
}

/// UP1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_level_is_raised_by_the_service() {
    let cluster = ProcessCluster::start(Shape::of(2));
    let mut service = service(&cluster).await;
    let finalize = |confirmed| pb::FinalizeUpgradeRequest {
        stopped_nodes: Vec::new(),
        confirmed,
    };
    let newest = service.finalize_upgrade(finalize(false)).await.unwrap();
    assert_eq!(newest.into_inner().level, 2);
    // From here on, it is a cluster that an earlier version began.
    put(&cluster, "cluster", r#"{"schema":1,"id":"x"}"#).await;
    let paused = service.pause_moves(pb::PauseMovesRequest {}).await;
    let told = refused(paused, Reason::Refused);
    assert!(told.contains("needs level 2"), "{told}");
    let state = service.get_upgrade(pb::GetUpgradeRequest {}).await.unwrap();
    let state = state.into_inner();
    assert_eq!((state.level, state.next_level), (1, 2));
    let names: Vec<&str> = state.processes.iter().map(|one| &*one.name).collect();
    assert_eq!(names, ["n1", "n2", &cluster.url()]);
    assert!(
        state.processes.iter().all(|one| one.problem.is_empty()),
        "{state:?}"
    );
    let told = refused(
        service.finalize_upgrade(finalize(false)).await,
        Reason::NotConfirmed,
    );
    assert!(told.contains("Does no other router run"), "{told}");
    let raised = service.finalize_upgrade(finalize(true)).await.unwrap();
    assert_eq!(raised.into_inner().level, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_with_a_request_is_said_by_its_reason() {
    let cluster = ProcessCluster::start(Shape::of(2));
    let mut service = service(&cluster).await;
    let nine = || "n9".to_owned();
    let told = refused(
        service.drain_node(drain("n9", true)).await,
        Reason::NodeNotFound,
    );
    assert!(told.contains("there are n1,n2"), "{told}");
    refuse(&cluster, &["drain", "n9", "--dry-run"], &told);
    let set_zone = pb::SetZoneRequest {
        node: nine(),
        zone: "a".to_owned(),
    };
    refused(service.set_zone(set_zone).await, Reason::NodeNotFound);
    let list = pb::ListShardsRequest { node: nine() };
    refused(service.list_shards(list).await, Reason::NodeNotFound);
    let status = service
        .move_shards(all_to(&["n9", "n1"]))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    let both = service.move_shards(all_to(&["n1", "n2"])).await;
    let told = refused(both, Reason::Refused);
    assert!(
        told.contains("it is to have 1 replica, and 2 nodes"),
        "{told}"
    );
    let nowhere = service.move_shards(all_to(&[])).await;
    refused(nowhere, Reason::InvalidRequest);
    let groups = service.list_shards(pb::ListShardsRequest::default()).await;
    let mut groups = groups.unwrap().into_inner().groups.into_iter();
    assert!(groups.all(|group| group.target.is_empty()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_router_with_a_layout_file_refuses_operators() {
    let cluster = ProcessCluster::start_by_layout(1);
    let mut service = service(&cluster).await;
    let status = service.get_status(pb::GetStatusRequest {}).await;
    let told = refused(status, Reason::NoRegisteredNodes);
    assert!(told.contains("without a layout file"), "{told}");
}
