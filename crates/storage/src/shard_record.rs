//! The bytes of a shard's record, in the log and in the manifest (`FORMAT.md`, section Record of a shard). Pure.

use simshard_topology::Version;
use simshard_topology::replication::{Epoch, InSync, Learner, ShardRecord, StoreId};

use crate::bytes::{Bytes, Put};

/// Set in the number of stores in sync: a floor follows, and what is settled.
const HAS_FLOOR: u8 = 0x80;

/// Whether a record says what earlier programs do not know.
pub(crate) fn has_floor(record: &ShardRecord) -> bool {
    record.floor > Version::NONE
}

/// Appends a record.
pub(crate) fn put_shard_record(buffer: &mut Vec<u8>, record: &ShardRecord) {
    put_epoch(buffer, record.epoch);
    buffer.put_u64(record.nonce);
    // No shard has more replicas than fit.
    let flag = if has_floor(record) { HAS_FLOOR } else { 0 };
    let lists = [
        record.in_sync.len() as u8 | flag,
        record.learners.len() as u8,
        record.previous.len() as u8,
    ];
    let wishes = [record.want, record.hot, record.min_in_sync];
    buffer.put(&lists);
    buffer.put(&wishes);
    for entry in &record.in_sync {
        buffer.put(&entry.store.0);
        put_epoch(buffer, entry.since);
        buffer.put(&[u8::from(entry.hot)]);
    }
    for entry in &record.learners {
        buffer.put(&entry.store.0);
        put_epoch(buffer, entry.added);
    }
    for store in &record.previous {
        buffer.put(&store.0);
    }
    if has_floor(record) {
        buffer.put_u64(record.floor.0);
        buffer.put_u64(record.settled.0);
        buffer.put(&[u8::from(record.is_frozen)]);
    }
}

/// Takes a record. `None` if the bytes are none, or too few.
pub(crate) fn take_shard_record(bytes: &mut Bytes<'_>) -> Option<ShardRecord> {
    let epoch = take_epoch(bytes)?;
    let nonce = bytes.u64()?;
    let [in_sync, learners, previous] = bytes.array()?;
    let [want, hot, min_in_sync] = bytes.array()?;
    let has_floor = in_sync & HAS_FLOOR != 0;
    let in_sync = (0..in_sync & !HAS_FLOOR).map(|_| take_in_sync(bytes));
    let in_sync: Vec<InSync> = in_sync.collect::<Option<_>>()?;
    let learners = (0..learners).map(|_| take_learner(bytes));
    let learners: Vec<Learner> = learners.collect::<Option<_>>()?;
    let previous = (0..previous).map(|_| bytes.array().map(StoreId));
    let previous: Vec<StoreId> = previous.collect::<Option<_>>()?;
    let (floor, settled, is_frozen) = if has_floor {
        take_floor(bytes)?
    } else {
        (Version::NONE, Version::NONE, false)
    };
    // The last store in sync is never taken out.
    (!in_sync.is_empty()).then_some(ShardRecord {
        epoch,
        nonce,
        in_sync,
        learners,
        previous,
        want,
        hot,
        min_in_sync,
        floor,
        is_frozen,
        settled,
    })
}

/// Takes a floor, what is settled, and whether repairs up to the floor are not taken.
fn take_floor(bytes: &mut Bytes<'_>) -> Option<(Version, Version, bool)> {
    let (floor, settled) = (Version(bytes.u64()?), Version(bytes.u64()?));
    let is_frozen = take_flag(bytes)?;
    (floor > Version::NONE && settled <= floor).then_some((floor, settled, is_frozen))
}

fn take_flag(bytes: &mut Bytes<'_>) -> Option<bool> {
    match bytes.u8()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// The bytes of a record, for another store.
#[must_use]
pub fn encode_record(record: &ShardRecord) -> Vec<u8> {
    let mut buffer = Vec::new();
    put_shard_record(&mut buffer, record);
    buffer
}

/// The record that another store has encoded. `None` if the bytes are none.
#[must_use]
pub fn decode_record(bytes: &[u8]) -> Option<ShardRecord> {
    let mut bytes = Bytes(bytes);
    let record = take_shard_record(&mut bytes)?;
    bytes.0.is_empty().then_some(record)
}

fn take_in_sync(bytes: &mut Bytes<'_>) -> Option<InSync> {
    Some(InSync {
        store: StoreId(bytes.array()?),
        since: take_epoch(bytes)?,
        hot: take_flag(bytes)?,
    })
}

fn take_learner(bytes: &mut Bytes<'_>) -> Option<Learner> {
    Some(Learner {
        store: StoreId(bytes.array()?),
        added: take_epoch(bytes)?,
    })
}

/// Appends an epoch, 12 bytes.
pub(crate) fn put_epoch(buffer: &mut Vec<u8>, epoch: Epoch) {
    buffer.put_u32(epoch.generation);
    buffer.put_u64(epoch.number);
}

/// Takes an epoch.
pub(crate) fn take_epoch(bytes: &mut Bytes<'_>) -> Option<Epoch> {
    Some(Epoch {
        generation: bytes.u32()?,
        number: bytes.u64()?,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A record with all that one can have.
    pub(crate) fn sample(number: u64) -> ShardRecord {
        let epoch = |number| Epoch {
            generation: 1,
            number,
        };
        let in_sync = |byte, number, hot| InSync {
            store: StoreId([byte; 16]),
            since: epoch(number),
            hot,
        };
        ShardRecord {
            epoch: epoch(number),
            nonce: 0x0123_4567_89ab_cdef,
            in_sync: vec![in_sync(7, 2, true), in_sync(2, number, false)],
            learners: vec![Learner {
                store: StoreId([3; 16]),
                added: epoch(number),
            }],
            previous: vec![StoreId([7; 16]), StoreId([4; 16])],
            want: 3,
            hot: 2,
            min_in_sync: 2,
            floor: Version::NONE,
            is_frozen: false,
            settled: Version::NONE,
        }
    }

    /// The same, with a floor.
    pub(crate) fn with_floor(number: u64) -> ShardRecord {
        ShardRecord {
            floor: Version(number << 40),
            is_frozen: true,
            settled: Version(5),
            ..sample(number)
        }
    }

    #[test]
    fn a_record_comes_back_and_no_part_of_it_is_one() {
        let first = ShardRecord::first(0, &[StoreId([7; 16])], 5);
        for record in [sample(9), with_floor(9), first] {
            let mut buffer = Vec::new();
            put_shard_record(&mut buffer, &record);
            let mut bytes = Bytes(&buffer);
            assert_eq!(take_shard_record(&mut bytes).as_ref(), Some(&record));
            assert!(bytes.0.is_empty());
            assert_eq!(decode_record(&encode_record(&record)), Some(record));
            assert_eq!(decode_record(&[&*buffer, &[0]].concat()), None);
            for end in 0..buffer.len() {
                assert_eq!(take_shard_record(&mut Bytes(&buffer[..end])), None);
            }
        }
    }

    #[test]
    fn a_record_without_a_store_in_sync_and_a_flag_that_is_none_are_refused() {
        let mut record = ShardRecord::first(0, &[StoreId([7; 16])], 5);
        let bytes = |record: &ShardRecord| {
            let mut buffer = Vec::new();
            put_shard_record(&mut buffer, record);
            buffer
        };
        let mut with_flag = bytes(&record);
        *with_flag.last_mut().unwrap() = 2;
        assert_eq!(take_shard_record(&mut Bytes(&with_flag)), None);
        let mut above = with_floor(9);
        above.settled = Version(u64::MAX);
        assert_eq!(take_shard_record(&mut Bytes(&bytes(&above))), None);
        record.in_sync.clear();
        assert_eq!(take_shard_record(&mut Bytes(&bytes(&record))), None);
    }
}
