//! The corpora whose documents are compared, and those that are left out.

use std::collections::BTreeSet;

use simshard_cluster::{Corpora, MetadataError, recorded_corpora, without_record};
use simshard_topology::CorpusUid;
use simshard_topology::replication::StoreId;

use super::super::super::access::{ClusterAccess, admin};
use super::super::super::patience::patiently;
use super::Outcomes;

/// The corpora that have a record, those that nodes hold without one, and the stores that did not tell what they hold.
pub(super) async fn corpora_of(
    access: &ClusterAccess,
) -> Result<(Corpora, BTreeSet<CorpusUid>, Vec<StoreId>), MetadataError> {
    let admin = admin(access);
    let (held, untold) = patiently(async || admin.held_corpora().await).await?;
    let corpora = patiently(async || recorded_corpora(access.keys()).await).await?;
    let unrecorded = async || without_record(access.keys(), &corpora, held.clone()).await;
    let unrecorded = patiently(unrecorded).await?;
    Ok((corpora, unrecorded, untold))
}

/// Says of which corpora documents are not compared.
pub(super) fn left_out(unrecorded: &BTreeSet<CorpusUid>) -> Option<String> {
    let uids: Vec<String> = unrecorded.iter().map(CorpusUid::to_string).collect();
    let of = match &uids[..] {
        [] => return None,
        [uid] => format!("corpus {uid} has no record, so its"),
        _ => format!("corpora {} have no record, so their", uids.join(", ")),
    };
    Some(format!(
        "{of} documents are not compared between shards: see `simshard corpus recover`"
    ))
}

impl Outcomes {
    /// Says of what documents were not compared.
    pub(in super::super) fn left_out(&self) -> Option<String> {
        let untold = self.untold.join(", ");
        let untold = (!untold.is_empty()).then(|| {
            format!("{untold} did not tell which corpora they hold, so some may not be compared: run this command again")
        });
        left_out(&self.unrecorded)
            .into_iter()
            .chain(untold)
            .reduce(|all, one| format!("{all}; {one}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_named() {
        let outcomes = |corpora: &[u8], untold: &[&str]| Outcomes {
            unrecorded: corpora.iter().map(|uid| CorpusUid([*uid; 16])).collect(),
            untold: untold.iter().map(|&node| node.to_owned()).collect(),
            ..Outcomes::default()
        };
        assert_eq!(outcomes(&[], &[]).left_out(), None);
        let said = outcomes(&[1, 2], &["n1", "n3"]).left_out().unwrap();
        let uids = format!("{}, {}", CorpusUid([1; 16]), CorpusUid([2; 16]));
        for part in [&uids, "have no record", "n1, n3 did not tell"] {
            assert!(said.contains(part), "{said}");
        }
        let said = outcomes(&[1], &[]).left_out().unwrap();
        assert!(said.contains("has no record, so its"), "{said}");
    }
}
