//! Corpora that nodes hold, and whose records are lost: noticing them, listing them, and restoring their records.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use simshard_cluster::{Corpora, CorpusName, CorpusRecord, CorpusState, CorpusUid, MetadataError};
use simshard_proto::shard::v1 as pb;
use simshard_simhash::Recipe;
use simshard_topology::NodeId;

use super::{Failures, Router};
use crate::deadline::Deadline;
use crate::error::RouterError;
use crate::nodes::Client;

/// How long nodes may take to say what they hold.
const CONTENTS_TIMEOUT: Duration = Duration::from_secs(5);

/// The same where the request goes on without those that are silent.
const LOOKING_SHORTLY: Duration = Duration::from_secs(2);

/// A corpus that nodes store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredCorpus {
    pub(crate) uid: CorpusUid,
    /// The name by its record, if it has one.
    pub(crate) name: Option<CorpusName>,
    pub(crate) blocks: u32,
    pub(crate) distance: u32,
    /// Documents, each counted once.
    pub(crate) documents: u64,
    /// The nodes that hold it, ascending.
    pub(crate) nodes: Vec<NodeId>,
}

impl Router {
    /// The corpora by the metadata. Where this was never written, nodes must hold none: else the metadata is lost, and
    /// an empty list would hide what they hold.
    pub(super) async fn known_corpora(&self) -> Result<Arc<Corpora>, RouterError> {
        let corpora = self.metadata.corpora().await?;
        if corpora.revision() > 0 {
            return Ok(corpora);
        }
        self.check_no_loss(corpora, Deadline::within(CONTENTS_TIMEOUT))
            .await
    }

    /// Refuses if nodes hold a corpus that has no record. Its name would seem to be free, while routers that remember it
    /// write to it. Revisions tell nothing here: those of a file that was lost, or replaced by an older one, start again.
    /// So the nodes are asked each time. Takes the corpora as they were read a moment ago, and answers newer ones.
    pub(super) async fn check_no_loss(
        &self,
        before: Arc<Corpora>,
        deadline: Deadline,
    ) -> Result<Arc<Corpora>, RouterError> {
        let (suspects, _) = self.unrecorded(&before, deadline).await?;
        if suspects.is_empty() {
            return Ok(before);
        }
        // A record comes before what nodes hold, and goes after it. So what was made since then has a record now, and
        // what was deleted since then is held no more.
        let now = self.metadata.corpora().await?;
        let (held, silent) = self.unrecorded(&now, deadline).await?;
        let mut lost = still_held(suspects, &held, &silent);
        lost.retain(|corpus| now.of_uid(corpus.uid).is_none());
        if !silent.is_empty() {
            leave_out(&mut lost, &self.metadata.deleted_corpora().await?);
        }
        if lost.is_empty() {
            Ok(now)
        } else {
            let uids = lost.into_iter().map(|corpus| corpus.uid);
            Err(RouterError::RecordsLost(uids.collect()))
        }
    }

    /// The corpora that nodes hold, and that have no record; and the nodes that did not answer. Where the records name
    /// stores, nodes may be away, as corpora are made without them. But not all that hold shards, and none right after the
    /// metadata was lost.
    async fn unrecorded(
        &self,
        corpora: &Corpora,
        deadline: Deadline,
    ) -> Result<(Vec<StoredCorpus>, Failures), RouterError> {
        let recorded: Vec<_> = corpora.records().map(|record| record.uid).collect();
        let is_lost = corpora.revision() == 0 && self.metadata.has_begun_anew();
        let may_be_away = self.metadata.names_stores() && !is_lost;
        let looking = if may_be_away {
            LOOKING_SHORTLY
        } else {
            CONTENTS_TIMEOUT
        };
        let deadline = deadline.min(Deadline::within(looking));
        let (stored, silent) = self.stored(corpora, &recorded, deadline).await?;
        let cluster = self.cluster.view();
        let mut nodes = cluster.layout.nodes().iter();
        let is_any_heard =
            nodes.any(|node| !silent.names(&node.id) && !cluster.shards_of(node).is_empty());
        if may_be_away && is_any_heard {
            return Ok((stored, silent));
        }
        silent.check_all()?;
        Ok((stored, Failures::default()))
    }

    /// Why there is no corpus of this name: it was never made, or the metadata is lost.
    pub(super) async fn absent(&self, name: &CorpusName) -> RouterError {
        match self.known_corpora().await {
            Ok(_) => RouterError::CorpusNotFound(name.clone()),
            Err(error) => error,
        }
    }

    /// The corpora that nodes store, by uid.
    pub(crate) async fn list_stored(
        &self,
        deadline: Deadline,
    ) -> Result<Vec<StoredCorpus>, RouterError> {
        let corpora = self.metadata.corpora().await?;
        let (stored, silent) = self.stored(&corpora, &[], deadline).await?;
        silent.check_all()?;
        Ok(stored)
    }

    /// Makes the record of a corpus that nodes store, and that has none.
    pub(crate) async fn recover(
        &self,
        uid: CorpusUid,
        name: CorpusName,
        recipe: Recipe,
        deadline: Deadline,
    ) -> Result<CorpusRecord, RouterError> {
        let stored = self.list_stored(deadline).await?;
        let stored = stored.into_iter().find(|corpus| corpus.uid == uid);
        let Some(stored) = stored else {
            let deleted = self.metadata.deleted_corpora().await?;
            let why = if deleted.contains(&uid) {
                RouterError::WasDeleted(uid)
            } else {
                RouterError::NotStored(uid)
            };
            return Err(why);
        };
        if let Some(name) = stored.name {
            return Err(RouterError::IsRecorded { uid, name });
        }
        // A creation or a deletion that was cut short leaves an empty corpus that a node lacks.
        let everywhere = self.cluster.view().layout.nodes().len();
        let is_cut = stored.documents == 0 && stored.nodes.len() < everywhere;
        let state = if is_cut && !self.metadata.names_stores() {
            CorpusState::Creating
        } else {
            CorpusState::Live
        };
        let record = CorpusRecord {
            name,
            uid,
            blocks: stored.blocks,
            distance: stored.distance,
            recipe: recipe.to_string(),
            create_time: SystemTime::now(),
            state,
        };
        // Its documents are there already: no limit keeps them out.
        let recorded = self.metadata.create_corpus(record, usize::MAX);
        match recorded.await {
            Ok(record) => Ok(record),
            // Another operator was faster.
            Err(RouterError::Metadata(MetadataError::UidTaken { uid, name })) => {
                Err(RouterError::IsRecorded { uid, name })
            }
            Err(error) => Err(error),
        }
    }

    /// What all nodes hold that answer, but for the corpora left out, with the names that these corpora have. Leaves out
    /// deleted ones too: a node that was away may hold one until it hears of that.
    async fn stored(
        &self,
        corpora: &Corpora,
        left_out: &[CorpusUid],
        deadline: Deadline,
    ) -> Result<(Vec<StoredCorpus>, Failures), RouterError> {
        let list = async |mut client: Client, request| client.list_corpora(request).await;
        let cluster = &*self.cluster.view();
        let calls = cluster.layout.nodes().iter().map(async |node| {
            let request = pb::ListCorporaRequest {
                map_digest: cluster.layout.map().digest().0,
                node: node.id.to_string(),
                left_out: left_out.iter().flat_map(|uid| uid.0).collect(),
            };
            let answer = cluster.nodes.call(&node.id, deadline, &request, list).await;
            (node, answer)
        });
        let mut failures = Failures::default();
        let mut held = Vec::new();
        for (node, answer) in join_all(calls).await {
            match answer {
                Ok(answer) => held.push((node.id.clone(), answer.corpora)),
                Err(error) => failures.note(node.id.clone(), cluster.shards_of(node), error)?,
            }
        }
        let mut stored = gather(held, corpora)?;
        if stored.iter().any(|corpus| corpus.name.is_none()) {
            leave_out(&mut stored, &self.metadata.deleted_corpora().await?);
        }
        Ok((stored, failures))
    }
}

/// The suspects that a second look found again, or that a node held which was silent then.
fn still_held(
    mut suspects: Vec<StoredCorpus>,
    held: &[StoredCorpus],
    silent: &Failures,
) -> Vec<StoredCorpus> {
    suspects.retain(|suspect| {
        let is_found = held.iter().any(|corpus| corpus.uid == suspect.uid);
        is_found || suspect.nodes.iter().any(|node| silent.names(node))
    });
    suspects
}

/// Leaves out the corpora that were deleted.
fn leave_out(stored: &mut Vec<StoredCorpus>, deleted: &BTreeSet<CorpusUid>) {
    stored.retain(|corpus| corpus.name.is_some() || !deleted.contains(&corpus.uid));
}

/// The corpora that nodes hold, by uid. Nodes that hold one with different layouts cannot serve it together.
fn gather(
    held: Vec<(NodeId, Vec<pb::HeldCorpus>)>,
    corpora: &Corpora,
) -> Result<Vec<StoredCorpus>, RouterError> {
    let mut by_uid: BTreeMap<CorpusUid, StoredCorpus> = BTreeMap::new();
    for (node, list) in held {
        for one in list {
            let Ok(uid) = one.corpus_uid.parse::<CorpusUid>() else {
                let given = one.corpus_uid;
                return Err(RouterError::NoUid { node, given });
            };
            let stored = by_uid.entry(uid).or_insert_with(|| StoredCorpus {
                uid,
                name: corpora.of_uid(uid).map(|record| record.name.clone()),
                blocks: one.blocks,
                distance: one.distance,
                documents: 0,
                nodes: Vec::new(),
            });
            if (stored.blocks, stored.distance) != (one.blocks, one.distance) {
                return Err(RouterError::OtherLayouts(one.corpus_uid));
            }
            stored.documents += one.home_document_count;
            stored.nodes.push(node.clone());
        }
    }
    let mut stored: Vec<StoredCorpus> = by_uid.into_values().collect();
    stored.iter_mut().for_each(|corpus| corpus.nodes.sort());
    Ok(stored)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corpus_that_was_deleted_is_not_lost() {
        let uids = [(); 2].map(|()| simshard_cluster::random_corpus_uid());
        let held = uids.map(|uid| pb::HeldCorpus {
            corpus_uid: uid.to_string(),
            blocks: 5,
            distance: 3,
            home_document_count: 1,
        });
        let node = NodeId::new("n1").unwrap();
        let mut stored = gather(vec![(node, held.to_vec())], &Corpora::default()).unwrap();
        leave_out(&mut stored, &BTreeSet::from([uids[0]]));
        let left: Vec<CorpusUid> = stored.iter().map(|corpus| corpus.uid).collect();
        assert_eq!(left, [uids[1]]);
    }

    #[test]
    fn a_suspect_stays_lost_if_a_node_of_it_is_silent_at_the_second_look() {
        let uid = simshard_cluster::random_corpus_uid();
        let nodes = ["n1", "n2"].map(|name| NodeId::new(name).unwrap());
        let suspect = StoredCorpus {
            uid,
            name: None,
            blocks: 5,
            distance: 3,
            documents: 1,
            nodes: vec![nodes[0].clone()],
        };
        let is_lost = |held: &[StoredCorpus], silent: Option<&NodeId>| {
            let mut failures = Failures::default();
            if let Some(node) = silent {
                let shards = simshard_topology::ShardSet::default();
                let error = crate::nodes::CallError::Unreachable;
                failures.note(node.clone(), shards, error).unwrap();
            }
            !still_held(vec![suspect.clone()], held, &failures).is_empty()
        };
        assert!(is_lost(std::slice::from_ref(&suspect), None));
        assert!(is_lost(&[], Some(&nodes[0])));
        assert!(!is_lost(&[], Some(&nodes[1])));
        assert!(!is_lost(&[], None));
    }

    #[test]
    fn a_uid_that_is_none_is_nonsense_of_its_node_and_not_another_layout() {
        let node = |name| NodeId::new(name).unwrap();
        let uid = simshard_cluster::random_corpus_uid().to_string();
        let held = |corpus_uid: &str, blocks| pb::HeldCorpus {
            corpus_uid: corpus_uid.to_owned(),
            blocks,
            distance: 3,
            home_document_count: 1,
        };
        let gathered = |second| {
            let held = vec![
                (node("n1"), vec![held(&uid, 5)]),
                (node("n2"), vec![second]),
            ];
            gather(held, &Corpora::default())
        };
        assert_eq!(gathered(held(&uid, 5)).unwrap()[0].documents, 2);
        let error = gathered(held("x", 5)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "node n2 answered nonsense: \"x\" is no uid of a corpus"
        );
        let error = gathered(held(&uid, 6)).unwrap_err();
        assert!(matches!(error, RouterError::OtherLayouts(_)), "{error}");
    }
}
