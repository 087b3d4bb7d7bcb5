//! Plans against the definitions, for several layouts and clusters.

use std::sync::Arc;

use simshard_cluster::{ClusterLayout, Node};
use simshard_simhash::Layout;
use simshard_simhash::synthetic::Data;

use super::*;
use crate::readers::Avoided;

const LAYOUTS: [(u32, u32); 6] = [(5, 3), (6, 3), (4, 3), (10, 2), (16, 1), (9, 8)];

fn tables(blocks: u32, distance: u32) -> Tables {
    Tables::new(Layout::new(blocks, distance).unwrap())
}

fn map(nodes: usize) -> ShardMap {
    layout(nodes, 1).map().clone()
}

fn layout(nodes: usize, replicas: usize) -> Arc<ClusterLayout> {
    let node = |number| Node {
        id: NodeId::new(&format!("n{number}")).unwrap(),
        address: format!("http://127.0.0.1:{}", 7000 + number),
    };
    let nodes = (1..=nodes).map(node).collect();
    Arc::new(ClusterLayout::planned(nodes, replicas).unwrap())
}

fn avoiding(down: &BTreeSet<NodeId>) -> Avoided {
    Avoided {
        down: down.clone(),
        ..Avoided::default()
    }
}

fn readers(nodes: usize, down: &BTreeSet<NodeId>) -> Readers {
    Readers::new(layout(nodes, 1), &avoiding(down))
}

fn node(map: &ShardMap, place: usize) -> BTreeSet<NodeId> {
    BTreeSet::from([map.nodes()[place].clone()])
}

#[test]
fn documents_reach_every_shard_of_theirs_once_a_node() {
    for (blocks, distance) in LAYOUTS {
        let tables = tables(blocks, distance);
        let map = map(3);
        let documents = Data::Skewed.fingerprints(200, 1);
        let parts = plan_documents(&tables, &map, ShardSet::ALL, &documents);
        for (node, part) in &parts {
            assert!(part.places.is_sorted_by(|a, b| a < b), "R1");
            assert_eq!(part.shards.difference(&map.owned_by(node)), ShardSet::EMPTY);
        }
        for (place, &document) in (0..).zip(&documents) {
            for shard in tables.document_shards(document) {
                let owner = map.owner(ShardId(shard));
                let (_, part) = parts.iter().find(|(node, _)| node == owner).unwrap();
                assert!(part.places.contains(&place), "R1");
                assert!(part.shards.contains(ShardId(shard)), "R1");
            }
        }
    }
}

#[test]
fn a_healthy_cluster_leaves_nothing_open() {
    for (blocks, distance) in LAYOUTS {
        let tables = tables(blocks, distance);
        let queries = Data::Random.fingerprints(50, 2);
        let none = BTreeSet::new();
        for max_distance in 0..=distance {
            let plan = plan_queries(&tables, &readers(5, &none), &queries, max_distance, &none);
            assert!(plan.missing.is_empty() && plan.unreachable.is_empty());
            for (groups, _, part) in &plan.requests {
                assert_eq!(groups.len(), max_distance + 1, "R2");
                assert!(!part.places.is_empty());
            }
        }
    }
}

#[test]
fn every_needed_shard_of_the_active_groups_is_asked() {
    for (blocks, distance) in LAYOUTS {
        let tables = tables(blocks, distance);
        let map = map(5);
        let queries = Data::Random.fingerprints(50, 3);
        let down = node(&map, 2);
        let plan = plan_queries(&tables, &readers(5, &down), &queries, distance, &down);
        for (place, &query) in (0..).zip(&queries) {
            let asked: Vec<_> = plan
                .requests
                .iter()
                .filter(|(_, _, part)| part.places.contains(&place))
                .collect();
            let Some((groups, _, _)) = asked.first() else {
                continue;
            };
            assert!(asked.iter().all(|(other, _, _)| other == groups), "R2");
            for shard in query_shards(&tables, query, *groups).iter() {
                let owner = map.owner(shard);
                let answers = |(_, node, part): &&&(LeadGroups, NodeId, NodePart)| {
                    node == owner && part.shards.contains(shard)
                };
                assert!(asked.iter().any(|request| answers(&request)), "R3");
            }
        }
    }
}

#[test]
fn what_a_lost_node_leaves_open_is_named() {
    let tables = tables(5, 3);
    let map = map(3);
    let queries = Data::Random.fingerprints(100, 4);
    let down = node(&map, 1);
    let plan = plan_queries(&tables, &readers(3, &down), &queries, 3, &down);
    assert_eq!(plan.missing.len(), queries.len());
    for (query, missing) in queries.iter().zip(&plan.missing) {
        let expected: Vec<u32> = (0..4)
            .filter(|&group| {
                let shard = tables
                    .get(tables.lead_group(group).start)
                    .leading_byte(*query);
                down.contains(map.owner(ShardId(shard)))
            })
            .collect();
        assert_eq!(missing.iter().collect::<Vec<_>>(), expected);
    }
    assert_eq!(
        plan.unreachable.keys().cloned().collect::<BTreeSet<_>>(),
        down
    );
    assert!(
        plan.requests
            .iter()
            .all(|(_, node, _)| !down.contains(node))
    );
}

#[test]
fn smaller_distances_go_around_a_lost_node() {
    let tables = tables(5, 3);
    let map = map(5);
    let queries = Data::Random.fingerprints(200, 5);
    let down = node(&map, 0);
    let plan = plan_queries(&tables, &readers(5, &down), &queries, 0, &down);
    let open = plan
        .missing
        .iter()
        .filter(|missing| !missing.is_empty())
        .count();
    assert!(
        open < 5,
        "only queries all of whose shards are on the node stay open: {open}"
    );
}

/// R1, R3, R4.
#[test]
fn all_replicas_take_a_document_and_one_that_is_up_answers_a_query() {
    let tables = tables(5, 3);
    let layout = layout(4, 2);
    let map = layout.map();
    let documents = Data::Random.fingerprints(50, 6);
    let parts = plan_documents(&tables, map, ShardSet::ALL, &documents);
    for (place, &document) in (0..).zip(&documents) {
        for shard in tables.document_shards(document).map(ShardId) {
            for node in map.replicas(shard) {
                let (_, part) = parts.iter().find(|(other, _)| other == node).unwrap();
                assert!(part.places.contains(&place) && part.shards.contains(shard));
            }
        }
    }
    let all: BTreeSet<NodeId> = map.nodes().iter().cloned().collect();
    for down in [BTreeSet::new(), node(map, 1), node(map, 3)] {
        let readers = Readers::new(Arc::clone(&layout), &avoiding(&down));
        let plan = plan_queries(&tables, &readers, &documents, 3, &down);
        assert!(plan.missing.is_empty() && plan.unreachable.is_empty());
        let mut asked = ShardSet::EMPTY;
        for (_, node, part) in &plan.requests {
            assert!(!down.contains(node));
            assert!(part.shards.difference(&map.shards_of(node)).is_empty());
            assert!(asked.intersection(&part.shards).is_empty(), "once");
            asked = asked.union(&part.shards);
        }
    }
    // Both replicas of some shards are down.
    let down: BTreeSet<NodeId> = all.iter().skip(1).cloned().collect();
    let readers = Readers::new(Arc::clone(&layout), &avoiding(&down));
    let plan = plan_queries(&tables, &readers, &documents, 3, &down);
    assert!(!plan.unreachable.is_empty());
    for shard in plan.unreachable.values().flat_map(ShardSet::iter) {
        assert!(map.replicas(shard).iter().all(|node| down.contains(node)));
    }
}
