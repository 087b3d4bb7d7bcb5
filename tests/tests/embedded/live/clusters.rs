//! `FindClusters`: what pairs link, with all documents.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use simshard_client::{ClusterMember, Document, Fingerprint};
use simshard_simhash::Clusters;
use simshard_simhash::synthetic::Data;
use simshard_testkit::{Oracle, TestCluster};

use super::scene::{LAYOUTS, all, columns, fill};

/// The clusters of two documents and more, by comparing each document with each.
fn slowly(oracle: &Oracle, distance: u32) -> Vec<ClusterMember> {
    let documents: Vec<_> = oracle.documents().collect();
    let mut clusters = Clusters::new(documents.len());
    for (place, a) in documents.iter().enumerate() {
        for (other, b) in documents.iter().enumerate().skip(place + 1) {
            if a.0.distance(b.0) <= distance {
                clusters.union(place, other);
            }
        }
    }
    // Documents ascend, and so the smallest fingerprint is that of the first.
    let member = |first: usize, place: usize| ClusterMember {
        cluster: documents[first].0,
        document: Document {
            fingerprint: documents[place].0,
            id: documents[place].1.to_owned(),
        },
    };
    let groups = clusters.groups();
    let members = |group: &Vec<usize>| -> Vec<ClusterMember> {
        group.iter().map(|&place| member(group[0], place)).collect()
    };
    groups.iter().flat_map(members).collect()
}

/// LK1 from end to end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_hold_all_that_is_linked_in_order() {
    for nodes in [1, 3] {
        let cluster = TestCluster::start(nodes).await;
        for (blocks, distance) in LAYOUTS {
            for data in [Data::Clustered, Data::Skewed] {
                let corpus = format!("{}-{blocks}-{distance}", data.name());
                cluster.create_corpus(&corpus, blocks, distance).await;
                let oracle = fill(&cluster.client, &corpus, data, 500).await;
                for max_distance in [distance, distance / 2] {
                    let found = cluster.client.find_clusters(&corpus, Some(max_distance));
                    let found = all(found.await).await.unwrap();
                    let expected = slowly(&oracle, max_distance);
                    assert!(expected.len() > 50, "{corpus}: too easy");
                    assert!(found == expected, "{corpus}, {max_distance}, {nodes} nodes");
                }
            }
        }
        cluster.stop().await;
    }
}

/// Ten megabytes of documents that are all linked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_larger_than_a_message_stays_together() {
    let cluster = TestCluster::start(2).await;
    cluster.create_corpus("c", 5, 3).await;
    let mut oracle = Oracle::default();
    for part in 0..10_u64 {
        let document = |low: u64| {
            let fingerprint = Fingerprint((part * 1_000 + low) % 3_000);
            (fingerprint, format!("{part}-{low}-{}", "x".repeat(900)))
        };
        let documents: Vec<_> = (0..1_000).map(document).collect();
        for (fingerprint, id) in &documents {
            oracle.insert(*fingerprint, id);
        }
        cluster
            .client
            .insert("c", columns(&documents))
            .await
            .unwrap();
    }
    let found = all(cluster.client.find_clusters("c", None).await)
        .await
        .unwrap();
    assert_eq!(found.len(), 10_000);
    let documents = oracle.documents();
    let expected = documents.map(|(fingerprint, id)| (Fingerprint(0), fingerprint, id));
    let found = found.iter();
    let found = found.map(|one| (one.cluster, one.document.fingerprint, &*one.document.id));
    assert!(found.eq(expected));
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_that_were_acknowledged_are_clustered_while_others_change() {
    let cluster = TestCluster::start(3).await;
    cluster.create_corpus("c", 5, 3).await;
    let oracle = fill(&cluster.client, "c", Data::Clustered, 3_000).await;
    let expected = slowly(&oracle, 3);
    let client = cluster.client.clone();
    let near = oracle
        .documents()
        .map(|(f, _)| (Fingerprint(f.0 ^ 1), "changing".to_owned()));
    let changing: Vec<_> = near.collect();
    let stop = Arc::new(AtomicBool::new(false));
    let stopping = Arc::clone(&stop);
    let changes = tokio::spawn(async move {
        while !stopping.load(Ordering::Relaxed) {
            client.insert("c", columns(&changing)).await.unwrap();
            client.remove("c", columns(&changing)).await.unwrap();
        }
    });
    for _ in 0..3 {
        let found = all(cluster.client.find_clusters("c", None).await)
            .await
            .unwrap();
        let mut cluster_of = BTreeMap::new();
        let mut size: BTreeMap<Fingerprint, usize> = BTreeMap::new();
        for ClusterMember { cluster, document } in found {
            *size.entry(cluster).or_default() += 1;
            let before = cluster_of.insert(document, cluster);
            assert_eq!(before, None, "a document came twice");
        }
        assert!(size.values().all(|&size| size > 1), "a cluster of one");
        // What was linked still is; others may link more.
        for pair in expected
            .windows(2)
            .filter(|pair| pair[0].cluster == pair[1].cluster)
        {
            let found = |member: &ClusterMember| cluster_of.get(&member.document);
            assert!(found(&pair[0]).is_some());
            assert_eq!(found(&pair[0]), found(&pair[1]));
        }
    }
    stop.store(true, Ordering::Relaxed);
    changes.await.unwrap();
    cluster.stop().await;
}
