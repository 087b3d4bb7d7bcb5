//! What a cluster answers when a node is gone: an error that names it, or a
//! partial answer whose certificate is true. Never an empty success.

use simshard_client::{
    Documents, FindAnswer, Fingerprint, Queries, Reason, SearchSpec, v1::NodeState,
};
use simshard_simhash::synthetic::{self, Data};
use simshard_simhash::{Layout, LeadGroups, Tables};
use simshard_testkit::{Oracle, TestCluster};
use simshard_topology::ShardId;

const SEED: u64 = 11;

struct Scene {
    cluster: TestCluster,
    oracle: Oracle,
    queries: Vec<Fingerprint>,
}

/// A cluster with documents, one of whose nodes is then lost.
async fn scene(nodes: usize, blocks: u32, distance: u32, lost: &str) -> Scene {
    let mut cluster = TestCluster::start(nodes).await;
    cluster.create_corpus("c", blocks, distance).await;
    let set = Data::Clustered.fingerprints(600, SEED);
    let ids: Vec<String> = (0..set.len()).map(|number| number.to_string()).collect();
    let mut oracle = Oracle::default();
    for (&fingerprint, id) in set.iter().zip(&ids) {
        oracle.insert(fingerprint, id);
    }
    let queries = synthetic::queries(&set, 200, distance, SEED);
    let keys = Queries::Fingerprints(set);
    cluster
        .client
        .insert("c", Documents { keys, ids })
        .await
        .unwrap();
    cluster.stop_node(lost).await;
    Scene {
        cluster,
        oracle,
        queries,
    }
}

fn batch(queries: &[Fingerprint]) -> Queries {
    Queries::Fingerprints(queries.to_vec())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_that_needs_a_lost_node_names_it_and_its_shards() {
    let Scene {
        cluster, queries, ..
    } = scene(3, 5, 3, "n2").await;
    let found = cluster
        .client
        .find_all("c", batch(&queries), SearchSpec::default())
        .await;
    let error = found.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::NodeUnreachable));
    let message = error.to_string();
    assert!(message.contains("node n2 (shards 5"), "{message}");
    assert!(
        !message.contains("n1") && !message.contains("n3"),
        "{message}"
    );

    let keys = batch(&queries);
    let inserted = cluster
        .client
        .insert("c", Documents { keys, ids: vec![] })
        .await;
    let message = inserted.unwrap_err().to_string();
    assert!(message.contains("node n2 (shards 5"), "{message}");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partial_answer_misses_nothing_up_to_the_distance_it_guarantees() {
    for (nodes, blocks, distance) in [
        (3, 5, 3),
        (5, 6, 3),
        (2, 8, 7),
        (3, 4, 1),
        (5, 10, 2),
        (3, 16, 1),
    ] {
        let Scene {
            cluster,
            oracle,
            queries,
        } = scene(nodes, blocks, distance, "n1").await;
        let options = SearchSpec {
            allow_partial: true,
            ..SearchSpec::default()
        };
        let found = cluster
            .client
            .find_all("c", batch(&queries), options)
            .await
            .unwrap();
        assert!(found.unreachable_nodes.iter().eq(["n1"]));
        let mut partial = 0;
        for found in &found.queries {
            let what = format!("({blocks}, {distance}) query {}", found.query);
            let whole = oracle.find_all(found.query, distance);
            let guaranteed = match found.missing {
                None => distance as i32,
                Some(missing) => missing.guaranteed_distance.map_or(-1, |sure| sure as i32),
            };
            partial += usize::from(guaranteed < distance as i32);
            for wanted in &whole.matches {
                let sure = wanted.distance as i32 <= guaranteed;
                assert!(
                    !sure || found.matches.contains(wanted),
                    "{what} misses {wanted:?}"
                );
            }
            for given in &found.matches {
                assert!(whole.matches.contains(given), "{what} invents {given:?}");
            }
            assert!(
                found
                    .matches
                    .is_sorted_by_key(|one| (one.distance, one.fingerprint))
            );
            assert!(
                found.matches.windows(2).all(|pair| pair[0] != pair[1]),
                "{what} repeats"
            );
        }
        assert!(partial > 0, "({blocks}, {distance}): no query is partial");
        check_groups(&cluster, &found, blocks, distance);
        cluster.stop().await;
    }
}

/// The certificate's lead groups are those with a shard on the lost node.
fn check_groups(cluster: &TestCluster, found: &FindAnswer, blocks: u32, distance: u32) {
    let tables = Tables::new(Layout::new(blocks, distance).unwrap());
    let lost = |shard: u8| cluster.layout().map().owner(ShardId(shard)).as_str() == "n1";
    for query in &found.queries {
        let mut expected = LeadGroups::NONE;
        for table in tables.iter() {
            if table.query_leading_bytes(query.query).any(lost) {
                expected.insert(table.lead_group());
            }
        }
        let missing = query.missing.map(|missing| missing.lead_groups);
        assert_eq!(missing.unwrap_or(LeadGroups::NONE), expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn smaller_distances_are_answered_in_full_around_a_lost_node() {
    let Scene {
        cluster,
        oracle,
        queries,
    } = scene(5, 5, 3, "n4").await;
    let options = SearchSpec {
        max_distance: Some(0),
        ..SearchSpec::default()
    };
    let mut answered = 0;
    for query in queries {
        let found = cluster.client.find_all("c", batch(&[query]), options).await;
        match found {
            Ok(found) => {
                assert!(found.unreachable_nodes.is_empty());
                assert_eq!(found.queries, oracle.find_each(&[query], 0));
                answered += 1;
            }
            // All four shards of the query are on the lost node.
            Err(error) => assert_eq!(error.reason(), Some(Reason::NodeUnreachable)),
        }
    }
    assert!(answered > 190, "{answered}");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_corpus_is_described_without_the_counts_of_a_lost_node() {
    let Scene { cluster, .. } = scene(3, 5, 3, "n3").await;
    let shown = cluster.client.get_corpus("c").await.unwrap();
    assert_eq!(shown.document_count, None);
    let states: Vec<NodeState> = shown.nodes.iter().map(|node| node.state()).collect();
    let [serving, unreachable] = [NodeState::Serving, NodeState::Unreachable];
    assert_eq!(states, [serving, serving, unreachable]);
    assert_eq!(
        shown
            .nodes
            .iter()
            .map(|node| node.shards.len())
            .sum::<usize>(),
        256
    );
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_corpus_is_not_deleted_by_halves() {
    let Scene {
        cluster,
        oracle,
        queries,
    } = scene(5, 5, 3, "n2").await;
    let deleted = cluster.client.delete_corpus("c").await;
    assert_eq!(deleted.unwrap_err().reason(), Some(Reason::NodeUnreachable));
    let options = SearchSpec {
        allow_partial: true,
        ..SearchSpec::default()
    };
    let found = cluster.client.find_all("c", batch(&queries), options);
    for found in found.await.unwrap().queries {
        if found.missing.is_none() {
            assert_eq!(found, oracle.find_all(found.query, 3));
        }
    }
    cluster.stop().await;
}
