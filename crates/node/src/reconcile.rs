//! Compares the corpora of a node with the metadata at its start, if the node can read the metadata.

use simshard_cluster::{Corpora, CorpusName, CorpusRecord, CorpusState, CorpusUid};

/// Where a node and the metadata differ.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Differences {
    /// Corpora that the node holds and that are being deleted: it was away when the others dropped them.
    pub(crate) deleted: Vec<CorpusUid>,
    /// Corpora that the node should hold and does not.
    pub(crate) missing: Vec<(CorpusName, CorpusUid)>,
    /// Corpora that the node holds and that have no record.
    pub(crate) unrecorded: Vec<CorpusUid>,
}

/// Compares what a node holds with the metadata. Where this was never written, as beside a node that has only a copy
/// of the layout file, it says nothing.
pub(crate) fn compare(held: &[CorpusUid], corpora: &Corpora) -> Differences {
    let mut differences = Differences::default();
    if corpora.revision() == 0 {
        return differences;
    }
    for &uid in held {
        match corpora.of_uid(uid).map(|record| record.state) {
            Some(CorpusState::Creating | CorpusState::Live) => {}
            Some(CorpusState::Deleting) => differences.deleted.push(uid),
            None => differences.unrecorded.push(uid),
        }
    }
    let is_missing =
        |record: &&CorpusRecord| record.state == CorpusState::Live && !held.contains(&record.uid);
    let missing = corpora.records().filter(is_missing);
    differences
        .missing
        .extend(missing.map(|record| (record.name.clone(), record.uid)));
    differences
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use simshard_cluster::{ClusterLayout, MemoryStore, MetadataStore, Node, random_corpus_uid};
    use simshard_topology::NodeId;

    use super::*;

    fn record(name: &str) -> CorpusRecord {
        CorpusRecord {
            name: CorpusName::new(name).unwrap(),
            uid: random_corpus_uid(),
            blocks: 5,
            distance: 3,
            recipe: "words-v1".to_owned(),
            create_time: SystemTime::UNIX_EPOCH,
            state: CorpusState::Live,
        }
    }

    fn store() -> MemoryStore {
        let node = Node {
            id: NodeId::new("n1").unwrap(),
            address: "http://127.0.0.1:7470".to_owned(),
        };
        MemoryStore::new(ClusterLayout::planned(vec![node], 1).unwrap())
    }

    #[tokio::test]
    async fn a_node_learns_what_was_deleted_is_missing_or_has_no_record() {
        let store = store();
        let [live, deleting, missing, gone] = ["a", "b", "c", "d"].map(record);
        let creating = CorpusRecord {
            state: CorpusState::Creating,
            ..record("e")
        };
        let not_yet = CorpusRecord {
            state: CorpusState::Creating,
            ..record("f")
        };
        for record in [&live, &deleting, &missing, &gone, &creating, &not_yet] {
            store.create_corpus(record.clone(), 9).await.unwrap();
        }
        for record in [&deleting, &gone] {
            store
                .begin_deletion(&record.name, &record.uid)
                .await
                .unwrap();
        }
        let stray = random_corpus_uid();
        let all = [live.uid, creating.uid, deleting.uid, stray];
        let corpora = store.corpora().await.unwrap();
        let expected = Differences {
            deleted: vec![deleting.uid],
            missing: vec![(missing.name, missing.uid)],
            unrecorded: vec![stray],
        };
        assert_eq!(compare(&all, &corpora), expected);
    }

    /// A node may have a copy of the layout file only.
    #[tokio::test]
    async fn a_node_that_cannot_know_the_corpora_concludes_nothing() {
        let corpora = store().corpora().await.unwrap();
        let stored = [random_corpus_uid()];
        assert_eq!(compare(&stored, &corpora), Differences::default());
    }
}
