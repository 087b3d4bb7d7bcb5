//! From messages to domain types: what makes no sense is refused here.

use simshard_proto::shard::v1 as pb;
use simshard_proto::{
    SearchSpec, Violations, check_batch, check_ids, epochs_into, shard_into, shards_into,
};
use simshard_simhash::{Fingerprint, LeadGroups};
use simshard_storage::{Change, ChangeKind, CopyRange, Documents};
use simshard_topology::replication::{Epoch, ShardEpochs, StoreId};
use simshard_topology::{CorpusUid, MapDigest, Version};
use tonic::Status;

use crate::engine::{Cell, ComparedRanges, CopyRequest, NearQuery};
use crate::target::{PlannedBy, Target};

/// The target of a request about these shards, or about a whole corpus.
pub(super) fn target(target: Option<pb::Target>, shards: &[u32]) -> Result<Target, Status> {
    let target = target.ok_or_else(|| Violations::of("target", "is not set"))?;
    let (numbers, generations) = (&target.epoch_numbers, &target.epoch_generations);
    let planned_by = match epochs_into(shards, numbers, generations)? {
        Some(epochs) => PlannedBy::Records(epochs.into()),
        None => PlannedBy::Map(MapDigest(target.map_digest)),
    };
    let uid = &target.corpus_uid;
    let wrong = |_| Violations::of("target.corpus_uid", format!("is {uid:?}, which is no uid"));
    Ok(Target {
        corpus: uid.parse().map_err(wrong)?,
        blocks: target.blocks,
        distance: target.distance,
        planned_by,
    })
}

pub(super) fn change(request: pb::Change) -> Result<(Target, Change), Status> {
    let kind = kind(request.kind())?;
    if request.beyond_clock && kind == ChangeKind::Insert {
        return Err(Violations::of("beyond_clock", "is set for an insert"));
    }
    let target = target(request.target, &request.shards)?;
    let change = Change {
        kind,
        corpus: target.corpus,
        version: version(request.version)?,
        shards: shards_into(&request.shards)?,
        documents: documents(request.fingerprints, request.ids)?,
    };
    Ok((target, change))
}

pub(super) fn near_query(request: pb::FindAll) -> Result<NearQuery, Status> {
    let mut violations = Violations::default();
    check_batch("fingerprints", request.fingerprints.len(), &mut violations);
    violations.check()?;
    Ok(NearQuery {
        spec: SearchSpec::of_shards(&request),
        target: target(request.target, &request.shards)?,
        shards: shards_into(&request.shards)?,
        active: LeadGroups(request.active_lead_groups),
        fingerprints: fingerprints(request.fingerprints),
    })
}

/// A store, and the epochs that it is to confirm.
pub(super) fn confirm(
    request: &pb::Confirm,
) -> Result<(StoreId, ShardEpochs, Option<CorpusUid>), Status> {
    let store = store(&request.store)?;
    let (numbers, generations) = (&request.epoch_numbers, &request.epoch_generations);
    let epochs = epochs_into(&request.shards, numbers, generations)?;
    let read = match &*request.corpus_uid {
        [] => None,
        uid => {
            let uid = uid.try_into();
            let uid = uid.map_err(|_| Violations::of("corpus_uid", "is not 16 bytes"))?;
            Some(CorpusUid(uid))
        }
    };
    Ok((store, epochs.unwrap_or_default(), read))
}

fn store(bytes: &[u8]) -> Result<StoreId, Status> {
    let bytes = bytes.try_into();
    let bytes = bytes.map_err(|_| Violations::of("store", "is not 16 bytes"))?;
    Ok(StoreId(bytes))
}

/// What a learner asks of the source of a copy, or another replica that is compared.
pub(super) fn copy_request(request: &pb::CopyShardRequest) -> Result<CopyRequest, Status> {
    let store = store(&request.store)?;
    let shard = shard_into("shard", request.shard)?;
    let lowest = request.lowest_shard;
    let lowest = lowest.map(|lowest| shard_into("lowest_shard", lowest));
    let lowest = lowest.transpose()?;
    let cell = |lowest| Cell {
        lowest,
        other: shard,
    };
    let added = Epoch {
        generation: request.added_generation,
        number: request.added_number,
    };
    Ok(CopyRequest {
        store,
        shard,
        added,
        until: Version(request.compared_version),
        comparison: if request.compares {
            Some(ComparedRanges {
                per_range: u64::from(request.elements_per_range).max(1),
                known: copy_ranges(request)?,
                cell: lowest.map(cell),
            })
        } else {
            None
        },
    })
}

/// The ranges in which a learner differs from the source.
pub(super) fn copy_ranges(request: &pb::CopyShardRequest) -> Result<Vec<CopyRange>, Status> {
    let range = |range: &pb::CopyRange| {
        let uid = <[u8; 16]>::try_from(&*range.corpus_uid);
        let uid = uid.map_err(|_| Violations::of("ranges", "a uid is not 16 bytes"))?;
        Ok(CopyRange {
            corpus: CorpusUid(uid),
            first: Fingerprint(range.first_fingerprint),
            last: Fingerprint(range.last_fingerprint),
        })
    };
    request.ranges.iter().map(range).collect()
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
