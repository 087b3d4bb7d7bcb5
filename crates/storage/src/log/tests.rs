//! The log, on a file system that fails, forgets and tears, and on the real one.

mod crash;
mod damage;
mod ends;
mod fuzz;
mod golden;
mod group;
mod records;
mod refusals;

use std::sync::Arc;

use simshard_simhash::{Documents, Fingerprint};
use simshard_topology::{CorpusUid, ShardId, ShardSet, Version};
use uuid::Uuid;

use super::appender::{Appender, Fault};
use super::frame::Body;
use super::{LogError, LogOptions, Record, Tail, begin};
use crate::directory::Directory;
use crate::element::{Change, ChangeKind};
use crate::tests::ForgetfulDirectory;

const STORE: Uuid = Uuid::from_bytes([0x5A; 16]);
const CORPUS: CorpusUid = CorpusUid([0xC0; 16]);

/// Records with their sequences.
type Numbered = Vec<(u64, Record)>;

/// An insert of `count` documents, which no other `number` makes.
fn insert(number: u64, count: u64) -> Record {
    let ids = (0..count).map(|place| format!("{number}-{place}"));
    Record::change(Change {
        kind: ChangeKind::Insert,
        corpus: CORPUS,
        version: Version(number),
        shards: ShardSet::from_iter([ShardId(3), ShardId(200)]),
        documents: Documents {
            fingerprints: (0..count)
                .map(|place| Fingerprint(number ^ place))
                .collect(),
            ids: ids.collect(),
        },
    })
}

fn shared(memory: &ForgetfulDirectory) -> Arc<dyn Directory> {
    Arc::new(memory.clone())
}

fn recover(memory: &ForgetfulDirectory, first_needed: u64) -> Result<(Tail, Numbered), LogError> {
    let mut seen = Vec::new();
    if memory.file_names().is_empty() {
        begin(&shared(memory), STORE).unwrap();
    }
    let tail = super::recover(shared(memory), STORE, first_needed, |sequence, record| {
        seen.push((sequence, record));
        Ok::<(), LogError>(())
    })?;
    Ok((tail, seen))
}

fn open(memory: &ForgetfulDirectory, options: LogOptions) -> Appender {
    Appender::new(recover(memory, 1).unwrap().0, options)
}

pub(crate) fn commit(appender: &mut Appender, batch: &[Record]) -> Result<u64, Fault> {
    let body = |record: &Record| Body::new(record.encode().unwrap(), record.format());
    let bodies: Vec<Body> = batch.iter().map(body).collect();
    appender.commit(bodies.iter())
}

/// The records that are not marks.
fn without_marks(records: &[(u64, Record)]) -> Numbered {
    let kept = records.iter().filter(|(_, record)| *record != Record::Mark);
    kept.cloned().collect()
}
