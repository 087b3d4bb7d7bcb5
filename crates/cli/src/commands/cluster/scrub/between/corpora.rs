//! The corpora whose documents are compared, and those that are left out.

use std::collections::BTreeSet;

use simshard_cluster::{Corpora, MetadataError, recorded_corpora, without_record};
use simshard_topology::CorpusUid;
use simshard_topology::replication::StoreId;

use super::super::super::access::{ClusterAccess, admin};
use super::super::super::patience::patiently;

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

/// Says which nodes did not tell the corpora that they hold.
pub(super) fn untold(nodes: &[String]) -> Option<String> {
    (!nodes.is_empty()).then(|| {
        let nodes = nodes.join(", ");
        format!("{nodes} did not tell which corpora they hold, so some may not be compared: run this command again")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corpora_that_are_left_out_are_named() {
        assert_eq!(left_out(&BTreeSet::new()), None);
        let corpora = [1, 2].map(|uid| CorpusUid([uid; 16]));
        let said = left_out(&corpora.into()).unwrap();
        let [one, other] = corpora;
        let both = format!("corpora {one}, {other} have no record, so their");
        assert!(said.contains(&both), "{said}");
        let said = left_out(&[one].into()).unwrap();
        assert!(said.contains("has no record, so its"), "{said}");
    }
}
