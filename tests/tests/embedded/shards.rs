//! What single shards answer, asked directly over their own interface.

use simshard_client::{Documents, Fingerprint, Queries, Reason};
use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::work_item::Work;
use simshard_proto::shard::v1::work_outcome::Outcome;
use simshard_proto::{matches_from_bytes, status_from_bytes};
use simshard_testkit::TestCluster;
use simshard_topology::{NodeId, ShardId};
use tonic::Status;
use tonic::transport::Channel;

type Stub = pb::shard_service_client::ShardServiceClient<Channel>;

const STORED: Fingerprint = Fingerprint(5_456_993_838_078_482_869);
const QUERY: Fingerprint = Fingerprint(5_457_064_206_285_785_525);

fn stub(cluster: &TestCluster, node: &NodeId) -> Stub {
    let address = &cluster.layout().node(node).unwrap().address;
    let channel = Channel::from_shared(address.clone())
        .unwrap()
        .connect_lazy();
    Stub::new(channel)
}

/// A node's answer to one item of work, on a stream of its own.
async fn work(stub: &mut Stub, work: impl Into<Option<Work>>) -> Result<Outcome, Status> {
    let item = pb::WorkItem {
        sequence: 7,
        timeout_micros: 10_000_000,
        work: work.into(),
    };
    let request = pb::WorkRequest { items: vec![item] };
    let answers = stub.work(tokio_stream::iter([request])).await?;
    let mut message = answers.into_inner().message().await?.unwrap();
    let answer = message.outcomes.pop().unwrap();
    assert_eq!((answer.sequence, message.outcomes.len()), (7, 0));
    match answer.outcome.unwrap() {
        Outcome::Status(status) => Err(status_from_bytes(status)),
        outcome @ (Outcome::Changed(_) | Outcome::Matches(_) | Outcome::Confirmed(_)) => {
            Ok(outcome)
        }
    }
}

fn request(target: &pb::Target, shard: ShardId) -> pb::FindAll {
    pb::FindAll {
        target: Some(target.clone()),
        shards: vec![shard.0.into()],
        active_lead_groups: 0b1111,
        max_distance: 3,
        fingerprints: vec![QUERY.0],
        ..Default::default()
    }
}

/// The same with no uid that could be read.
fn without_uid(target: &pb::Target) -> pb::Target {
    pb::Target {
        corpus_uid: "c".to_owned(),
        ..target.clone()
    }
}

/// The same for a corpus that was never made.
fn unknown(target: &pb::Target) -> pb::Target {
    pb::Target {
        corpus_uid: "00000000-0000-4000-8000-000000000000".to_owned(),
        ..target.clone()
    }
}

async fn cluster_with_the_worked_example() -> (TestCluster, pb::Target) {
    let cluster = TestCluster::start(3).await;
    cluster.create_corpus("c", 6, 3).await;
    let documents = Documents {
        keys: Queries::Fingerprints(vec![STORED]),
        ids: vec!["f".into()],
    };
    cluster.client.insert("c", documents).await.unwrap();
    let target = cluster.target("c").await;
    (cluster, target)
}

#[tokio::test]
async fn the_worked_example_is_stored_in_four_shards_and_found_in_one() {
    let (cluster, target) = cluster_with_the_worked_example().await;
    let mut storing = Vec::new();
    for node in &cluster.client.get_corpus("c").await.unwrap().nodes {
        let counts = node.shards.iter().zip(&node.document_counts);
        storing.extend(
            counts
                .filter(|(_, count)| **count == 1)
                .map(|(shard, _)| *shard),
        );
    }
    assert_eq!(storing, [75, 188, 190, 217]);

    let mut finding = Vec::new();
    for shard in ShardId::all() {
        let mut stub = stub(&cluster, cluster.layout().map().owner(shard));
        let answer = work(&mut stub, Work::from(request(&target, shard))).await;
        let Ok(Outcome::Matches(bytes)) = answer else {
            panic!("{answer:?}")
        };
        let matches = matches_from_bytes(bytes).unwrap();
        if !matches.fingerprints.is_empty() {
            assert_eq!(matches.fingerprints, [STORED.0]);
            assert_eq!(
                (matches.distances, matches.ids),
                (vec![3], vec!["f".to_owned()])
            );
            finding.push(shard.0);
        }
    }
    assert_eq!(finding, [75]);
    cluster.stop().await;
}

#[tokio::test]
async fn a_node_refuses_shards_that_it_does_not_own() {
    let (cluster, target) = cluster_with_the_worked_example().await;
    let map = cluster.layout().map();
    for node in map.nodes() {
        let mut stub = stub(&cluster, node);
        let foreign = ShardId::all()
            .find(|&shard| map.owner(shard) != node)
            .unwrap();
        let owned = ShardId::all()
            .find(|&shard| map.owner(shard) == node)
            .unwrap();

        let find = Work::from(request(&target, foreign));
        let status = work(&mut stub, find).await.unwrap_err();
        assert_eq!(Reason::of(&status), Some(Reason::NotOwner));
        let insert = pb::Change {
            target: Some(target.clone()),
            kind: pb::ChangeKind::Insert.into(),
            shards: vec![owned.0.into(), foreign.0.into()],
            fingerprints: vec![1],
            ids: vec![],
            version: 1,
            beyond_clock: false,
            repairs: false,
        };
        let status = work(&mut stub, Work::from(insert)).await.unwrap_err();
        assert_eq!(Reason::of(&status), Some(Reason::NotOwner));
        assert_eq!(status.code(), tonic::Code::FailedPrecondition);
    }
    let shown = cluster.client.get_corpus("c").await.unwrap();
    assert_eq!(shown.document_count, Some(1), "N1: nothing was inserted");
    cluster.stop().await;
}

/// Requests overtake each other: what a router gave up must not come into being later.
#[tokio::test]
async fn a_corpus_that_was_deleted_before_it_was_made_is_not_made() {
    let (cluster, target) = cluster_with_the_worked_example().await;
    let node = cluster.layout().map().owner(ShardId(0));
    let mut stub = stub(&cluster, node);
    let (target, node) = (Some(unknown(&target)), node.to_string());
    let delete = pb::DeleteCorpusRequest {
        target: target.clone(),
        node: node.clone(),
    };
    stub.delete_corpus(delete).await.unwrap();
    let create = pb::CreateCorpusRequest { target, node };
    let status = stub.create_corpus(create).await.unwrap_err();
    assert_eq!(Reason::of(&status), Some(Reason::CorpusNotLoaded));
    cluster.stop().await;
}

/// Else a deletion could be acknowledged by one node twice, while another still answers from the corpus.
#[tokio::test]
async fn a_node_refuses_what_concerns_a_whole_corpus_on_another_node() {
    let (cluster, target) = cluster_with_the_worked_example().await;
    let map_digest = target.map_digest;
    let nodes = cluster.layout().map().nodes();
    for (node, meant) in [
        (&nodes[0], nodes[1].to_string()),
        (&nodes[1], String::new()),
    ] {
        let mut stub = stub(&cluster, node);
        let (target, node) = (Some(target.clone()), meant);
        let create = pb::CreateCorpusRequest {
            target: target.clone(),
            node: node.clone(),
        };
        let delete = pb::DeleteCorpusRequest {
            target: target.clone(),
            node: node.clone(),
        };
        let describe = pb::DescribeCorpusRequest {
            target,
            node: node.clone(),
        };
        let list = pb::ListCorporaRequest {
            map_digest,
            node,
            left_out: Vec::new(),
        };
        for outcome in [
            stub.create_corpus(create).await.map(drop),
            stub.delete_corpus(delete).await.map(drop),
            stub.describe_corpus(describe).await.map(drop),
            stub.list_corpora(list).await.map(drop),
        ] {
            let status = outcome.unwrap_err();
            assert_eq!(Reason::of(&status), Some(Reason::NotOwner), "{status}");
            assert!(status.message().contains("layout file"), "{status}");
        }
    }
    let shown = cluster.client.get_corpus("c").await.unwrap();
    assert_eq!(shown.document_count, Some(1));
    cluster.stop().await;
}

#[tokio::test]
async fn nonsense_is_refused_by_a_node() {
    let (cluster, target) = cluster_with_the_worked_example().await;
    let mut stub = stub(&cluster, cluster.layout().map().owner(ShardId(0)));
    let good = request(&target, ShardId(0));
    let cases = [
        (
            Reason::CorpusNotLoaded,
            pb::FindAll {
                target: Some(unknown(&target)),
                ..good.clone()
            },
        ),
        (
            Reason::InvalidRequest,
            pb::FindAll {
                target: None,
                ..good.clone()
            },
        ),
        (
            Reason::InvalidRequest,
            request(&without_uid(&target), ShardId(0)),
        ),
        (
            Reason::InvalidRequest,
            pb::FindAll {
                shards: vec![256],
                ..good.clone()
            },
        ),
        (
            Reason::InvalidRequest,
            pb::FindAll {
                max_distance: 4,
                ..good.clone()
            },
        ),
        (
            Reason::InvalidRequest,
            pb::FindAll {
                active_lead_groups: 1 << 4,
                ..good.clone()
            },
        ),
        (
            Reason::InvalidRequest,
            pb::FindAll {
                fingerprints: vec![0; 65_537],
                ..good
            },
        ),
    ];
    for (reason, request) in cases {
        let status = work(&mut stub, Work::from(request)).await.unwrap_err();
        assert_eq!(Reason::of(&status), Some(reason), "{status:?}");
    }
    cluster.stop().await;
}

#[tokio::test]
async fn changes_without_kind_or_version_are_refused_by_a_node() {
    let (cluster, target) = cluster_with_the_worked_example().await;
    let mut stub = stub(&cluster, cluster.layout().map().owner(ShardId(0)));
    let change = pb::Change {
        target: Some(target),
        kind: pb::ChangeKind::Insert.into(),
        fingerprints: vec![1],
        version: 1,
        ..Default::default()
    };
    let no_kind = pb::Change {
        kind: 0,
        ..change.clone()
    };
    let no_version = pb::Change {
        version: 0,
        ..change
    };
    for nonsense in [
        Some(Work::from(no_kind)),
        Some(Work::from(no_version)),
        None,
    ] {
        let status = work(&mut stub, nonsense).await.unwrap_err();
        assert_eq!(
            Reason::of(&status),
            Some(Reason::InvalidRequest),
            "{status:?}"
        );
    }
    cluster.stop().await;
}
