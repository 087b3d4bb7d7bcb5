//! From messages to domain types: what makes no sense is refused here.

use simshard_cluster::CorpusUid;
use simshard_proto::shard::v1 as pb;
use simshard_proto::{Violations, check_batch, check_ids, shards_into};
use simshard_simhash::{Fingerprint, LeadGroups};
use simshard_storage::{Change, ChangeKind, Documents};
use simshard_topology::Version;
use tonic::Status;

use crate::engine::NearQuery;

pub(super) fn corpus_uid(uid: &str) -> Result<CorpusUid, Status> {
    uid.parse()
        .map_err(|_| Violations::of("corpus_uid", format!("is {uid:?}, which is no uid")))
}

pub(super) fn change(request: pb::Change) -> Result<Change, Status> {
    Ok(Change {
        kind: kind(request.kind())?,
        corpus: corpus_uid(&request.corpus_uid)?,
        version: version(request.version)?,
        shards: shards_into(&request.shards)?,
        documents: documents(request.fingerprints, request.ids)?,
    })
}

pub(super) fn near_query(request: pb::FindAll) -> Result<NearQuery, Status> {
    let mut violations = Violations::default();
    check_batch("fingerprints", request.fingerprints.len(), &mut violations);
    violations.check()?;
    Ok(NearQuery {
        corpus: corpus_uid(&request.corpus_uid)?,
        shards: shards_into(&request.shards)?,
        active: LeadGroups(request.active_lead_groups),
        max_distance: request.max_distance,
        limit: request.limit,
        max_ids: request.max_ids,
        fingerprints: fingerprints(request.fingerprints),
    })
}

fn kind(kind: pb::ChangeKind) -> Result<ChangeKind, Status> {
    match kind {
        pb::ChangeKind::Insert => Ok(ChangeKind::Insert),
        pb::ChangeKind::Remove => Ok(ChangeKind::Remove),
        pb::ChangeKind::Unspecified => Err(Violations::of("kind", "is not set")),
    }
}

/// A router's clock never gives out 0, which means that a document was never written.
fn version(value: u64) -> Result<Version, Status> {
    match value {
        0 => Err(Violations::of("version", "is 0, which is none")),
        value => Ok(Version(value)),
    }
}

fn documents(values: Vec<u64>, ids: Vec<String>) -> Result<Documents, Status> {
    let mut violations = Violations::default();
    check_batch("fingerprints", values.len(), &mut violations);
    check_ids(&ids, values.len(), &mut violations);
    violations.check()?;
    Ok(Documents {
        fingerprints: fingerprints(values),
        ids,
    })
}

pub(super) fn fingerprints(values: Vec<u64>) -> Vec<Fingerprint> {
    values.into_iter().map(Fingerprint).collect()
}
