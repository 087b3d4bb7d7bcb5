//! An operator stages a plan, looks at it, carries it out, pauses it and takes it back, while inserts and searches go on.

use std::collections::BTreeSet;
use std::sync::Arc;

use simshard_cluster::{
    FileKeyValues, KeyValueStore, Outcome, PlanState, Transaction, stage_plan, staged_plan,
    targets, unreached,
};
use simshard_testkit::{End, ProcessCluster, until};
use simshard_topology::replication::StoreId;
use tokio::task::block_in_place;

use crate::force::assert_says;
use crate::moves::{holders, loaded, operate, refuse, tell};
use crate::records::until_all;

fn keys_of(cluster: &ProcessCluster) -> Arc<dyn KeyValueStore> {
    Arc::new(FileKeyValues::at(cluster.metadata_file()))
}

async fn turn(keys: &dyn KeyValueStore, state: PlanState) {
    let (plan, revision) = staged_plan(keys).await.unwrap().unwrap();
    let turned = plan.turned(state);
    stage_plan(keys, &turned, Some(revision)).await.unwrap();
}

/// The states of the shards by the plan.
fn states(cluster: &ProcessCluster) -> BTreeSet<String> {
    let shown = operate(cluster, &["rebalance", "show"]);
    let rows = shown.lines().skip(1);
    rows.map(|row| row.split('\t').nth(3).unwrap().to_owned())
        .collect()
}

fn set_of(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// PE17: what is paused does not begin. A plan that is stale is refused, and so is another one while it is carried out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_is_staged_paused_carried_out_and_refused_once_it_is_stale() {
    let (cluster, load) = loaded(3, 1).await;
    operate(&cluster, &["move", "--shards", "00-ff", "--to", "n1"]);
    let all_on_one = holders(&cluster).await;
    operate(&cluster, &["rebalance", "plan"]);
    assert_eq!(states(&cluster), set_of(&["planned"]));
    assert_eq!(holders(&cluster).await, all_on_one);
    // Another operator moves one of the shards.
    operate(&cluster, &["move", "--shards", "ff", "--to", "n2"]);
    operate(&cluster, &["move", "--shards", "00", "--to", "n3"]);
    refuse(
        &cluster,
        &["rebalance", "apply", "--yes"],
        "the plan is stale",
    );
    let plan = tell(&cluster, &["rebalance", "plan"]);
    assert_says(&plan, 0, "the plan of before is gone");
    refuse(&cluster, &["rebalance", "apply"], "add --yes");

    operate(&cluster, &["rebalance", "pause"]);
    let before = holders(&cluster).await;
    operate(&cluster, &["rebalance", "apply", "--yes", "--no-wait"]);
    refuse(
        &cluster,
        &["rebalance", "plan"],
        "another plan is being carried out",
    );
    load.until_more(20).await;
    assert_eq!(holders(&cluster).await, before);
    assert_eq!(states(&cluster), set_of(&["waits"]));
    let status = operate(&cluster, &["status"]);
    assert!(status.contains("; paused, until"), "{status}");
    operate(&cluster, &["rebalance", "resume"]);
    operate(&cluster, &["rebalance", "apply", "--yes"]);
    let stores: BTreeSet<StoreId> = holders(&cluster).await.into_iter().flatten().collect();
    assert_eq!(stores.len(), 3);
    plan_beside_other_wishes(&cluster);
    let shown = tell(&cluster, &["rebalance", "show"]);
    let said = String::from_utf8_lossy(&shown.stderr);
    assert!(said.contains("no plan is staged"), "{said}");
    load.end(&cluster.client()).await;
}

/// While moves are paused, a plan is given up by another operator, and the next one is drawn beside a drain.
fn plan_beside_other_wishes(cluster: &ProcessCluster) {
    operate(cluster, &["rebalance", "pause"]);
    operate(cluster, &["set-capacity", "n1", "9"]);
    operate(cluster, &["rebalance", "plan"]);
    operate(cluster, &["rebalance", "apply", "--yes", "--no-wait"]);
    operate(cluster, &["move", "--free", "--shards", "00-ff"]);
    let given_up = "nothing is left of the plan";
    refuse(cluster, &["rebalance", "apply", "--yes"], given_up);
    operate(cluster, &["drain", "n3", "--no-wait"]);
    operate(cluster, &["set-capacity", "n1", "1"]);
    let plan = tell(cluster, &["rebalance", "plan"]);
    assert_says(&plan, 0, "are on their way already");
    operate(cluster, &["rebalance", "abort"]);
    operate(cluster, &["rebalance", "resume"]);
}

/// An operator may have started it for nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_names_an_empty_node_that_it_leaves_out() {
    let (mut cluster, load) = loaded(3, 1).await;
    operate(&cluster, &["drain", "n3"]);
    operate(&cluster, &["undrain", "n3"]);
    block_in_place(|| cluster.end_node(2, End::Killed));
    let plan = tell(&cluster, &["rebalance", "plan"]);
    assert!(plan.status.success());
    let said = String::from_utf8_lossy(&plan.stderr);
    assert!(
        said.contains("n3 does not answer, so it gets no shards"),
        "{said}"
    );
    block_in_place(|| cluster.start_node(2));
    operate(&cluster, &["rebalance", "plan"]);
    assert_eq!(states(&cluster), set_of(&["planned"]));
    // Another version, or a fault, has left it.
    let keys = keys_of(&cluster);
    let damage = Transaction::new().put("staged-plan", "{");
    let damaged = keys.commit(&damage).await;
    assert!(matches!(damaged, Ok(Outcome::Committed(_))));
    refuse(&cluster, &["rebalance", "plan"], "staged-plan");
    let abort = tell(&cluster, &["rebalance", "abort"]);
    let said = String::from_utf8_lossy(&abort.stderr);
    assert!(
        abort.status.success() && said.contains("is gone; targets"),
        "{said}"
    );
    operate(&cluster, &["rebalance", "plan"]);
    load.end(&cluster.client()).await;
}

/// SP4: the command is gone after it has written down that the plan begins, or ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_go_on_with_a_plan_whose_command_is_gone() {
    let (cluster, load) = loaded(3, 1).await;
    operate(&cluster, &["move", "--shards", "00-ff", "--to", "n1"]);
    operate(&cluster, &["rebalance", "plan"]);
    let keys = keys_of(&cluster);
    turn(&*keys, PlanState::Beginning).await;
    let state = async || {
        staged_plan(&*keys)
            .await
            .unwrap()
            .map(|(plan, _)| plan.state)
    };
    until("the plan is carried out", async || {
        state().await == Some(PlanState::Moving)
    })
    .await;
    operate(&cluster, &["rebalance", "apply", "--yes"]);
    let stores: BTreeSet<StoreId> = holders(&cluster).await.into_iter().flatten().collect();
    assert_eq!(stores.len(), 3);

    operate(&cluster, &["drain", "n3", "--no-wait"]);
    operate(&cluster, &["drain", "n3"]);
    operate(&cluster, &["undrain", "n3"]);
    operate(&cluster, &["rebalance", "pause"]);
    operate(&cluster, &["rebalance", "plan"]);
    operate(&cluster, &["rebalance", "apply", "--yes", "--no-wait"]);
    turn(&*keys, PlanState::Ending).await;
    until("the plan is gone", async || state().await.is_none()).await;
    operate(&cluster, &["rebalance", "resume"]);
    load.until_more(20).await;
    let stores: BTreeSet<StoreId> = holders(&cluster).await.into_iter().flatten().collect();
    assert_eq!(stores.len(), 2);
    load.end(&cluster.client()).await;
}

/// Some shards have arrived by then, others are on their way, and others wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_under_way_is_taken_back() {
    let (cluster, load) = loaded(3, 1).await;
    operate(&cluster, &["move", "--shards", "00-ff", "--to", "n1"]);
    operate(&cluster, &["rebalance", "plan"]);
    operate(&cluster, &["rebalance", "apply", "--yes", "--no-wait"]);
    let keys = keys_of(&cluster);
    let (plan, _) = staged_plan(&*keys).await.unwrap().unwrap();
    operate(&cluster, &["rebalance", "abort"]);
    // Those that had not arrived by then are to be where they were to be before.
    let set = targets(&*keys, |_| {}).await.unwrap();
    let left = unreached(&*keys, &plan).await.unwrap();
    let is_back = |shard| set.get(&shard) == Some(&plan.moves[&shard].from);
    assert!(left.iter().all(is_back), "{left}");
    let again = tell(&cluster, &["rebalance", "abort"]);
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(said.contains("no plan is staged"), "{said}");
    until_all(&cluster, "one replica, and none to come", |record| {
        record.in_sync.len() == 1 && record.learners.is_empty()
    })
    .await;
    let there = holders(&cluster).await;
    load.until_more(20).await;
    assert_eq!(holders(&cluster).await, there);
    // What is left of it is no obstacle to the next one.
    operate(&cluster, &["rebalance", "plan"]);
    operate(&cluster, &["rebalance", "apply", "--yes"]);
    let stores: BTreeSet<StoreId> = holders(&cluster).await.into_iter().flatten().collect();
    assert_eq!(stores.len(), 3);
    load.end(&cluster.client()).await;
}
