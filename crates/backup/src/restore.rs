//! Restoring a backup.

use std::collections::HashSet;
use std::pin::pin;

use futures_util::{StreamExt, TryStreamExt, stream};
use simshard_client::v1::{Corpus, CreateCorpusRequest};
use simshard_client::{Batcher, Client, Documents, Fingerprint, Queries, Reason};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::create::{hashed, segments_of};
use crate::error::{BackupError, OrUnknown};
use crate::manifest::{CorpusBackup, SegmentEntry};
use crate::repository::Repository;
use crate::segment::Contents;
use crate::threads::on_a_thread;
use crate::throttle::Throttle;

/// Documents of a request.
const BATCH: usize = 4096;

/// Segments that are read ahead.
const READ_AHEAD: usize = 2;

/// Batches that wait to be sent.
const WAITING: usize = 4;

/// How a corpus is restored.
#[derive(Debug)]
pub struct RestoreOptions {
    /// The name that it gets.
    pub name: String,
    /// Whether it may have documents already, of a restore that was cut short.
    pub continues: bool,
    /// Whether it is read again, and held against the backup.
    pub verifies: bool,
    /// Holds it back.
    pub throttle: Throttle,
}

/// A corpus that was restored.
#[derive(Clone, Copy, Debug)]
pub struct Restored {
    /// Documents that were inserted.
    pub inserted: u64,
    /// Documents that had been there.
    pub there: u64,
}

/// Inserts the documents of a corpus, which is created if it is not there. `inserted` is told how many more are durable,
/// and `verified` how many more were read again.
///
/// # Errors
/// If the corpus is there and differs, the backup cannot be read, a request fails, or what is restored is not what the
/// backup has. Then the documents of the backup may be inserted or not: restore again with `continues`.
pub async fn restore(
    client: &Client,
    repository: &Repository,
    backup: &CorpusBackup,
    options: RestoreOptions,
    mut inserted: impl FnMut(u64),
    verified: impl Fn(u64),
) -> Result<Restored, BackupError> {
    prepare(client, backup, &options).await?;
    let (batches, receiver) = mpsc::channel(WAITING);
    let entries = backup.segments.clone();
    let (source, throttle) = (repository.clone(), options.throttle);
    let reader = tokio::spawn(async move { read(&source, entries, throttle, batches).await });
    let mut restored = Restored {
        inserted: 0,
        there: 0,
    };
    let answers = client.insert_stream(&options.name, ReceiverStream::new(receiver));
    let mut answers = pin!(answers);
    while let Some(answer) = answers.try_next().await? {
        restored.inserted += answer.changed_count;
        restored.there += answer.document_count.saturating_sub(answer.changed_count);
        inserted(answer.document_count);
    }
    match reader.await {
        Ok(read) => read?,
        Err(ended) => std::panic::resume_unwind(ended.into_panic()),
    }
    if options.verifies {
        verify(client, backup, &options.name, verified).await?;
    }
    Ok(restored)
}

/// Sees to it that the corpus is there, with the settings of the backup.
async fn prepare(
    client: &Client,
    backup: &CorpusBackup,
    options: &RestoreOptions,
) -> Result<(), BackupError> {
    let request = CreateCorpusRequest {
        name: options.name.clone(),
        blocks: Some(backup.blocks),
        distance: Some(backup.distance),
        recipe: backup.recipe.clone(),
    };
    match client.create_corpus(request).await {
        Ok(_) => return Ok(()),
        Err(error) if error.reason() == Some(Reason::CorpusExists) => {}
        Err(error) => return Err(error.into()),
    }
    let there = client.get_corpus(&options.name).await?;
    if !is_same(&there.corpus.unwrap_or_default(), backup) {
        return Err(BackupError::OtherCorpus(options.name.clone()));
    }
    if there.document_count != Some(0) && !options.continues {
        return Err(BackupError::Occupied {
            name: options.name.clone(),
            documents: OrUnknown(there.document_count),
        });
    }
    Ok(())
}

fn is_same(corpus: &Corpus, backup: &CorpusBackup) -> bool {
    (corpus.blocks, corpus.distance, &corpus.recipe)
        == (backup.blocks, backup.distance, &backup.recipe)
}

/// Reads the segments, and sends their documents in batches.
async fn read(
    repository: &Repository,
    entries: Vec<SegmentEntry>,
    mut throttle: Throttle,
    batches: mpsc::Sender<Documents>,
) -> Result<(), BackupError> {
    let contents = stream::iter(entries).map(async |entry| {
        let contents = repository.segment(entry.hash).await?;
        Ok::<_, BackupError>((entry, contents))
    });
    let mut contents = pin!(contents.buffered(READ_AHEAD));
    while let Some((entry, contents)) = contents.try_next().await? {
        throttle.pass(entry.bytes).await;
        for batch in cut_into_batches(contents) {
            if batches.send(batch).await.is_err() {
                // The requests have ended with an error, which the caller reports.
                return Ok(());
            }
        }
    }
    Ok(())
}

fn cut_into_batches(contents: Contents) -> Vec<Documents> {
    let (fingerprints, ids) = contents.into_columns();
    let mut batcher = Batcher::new(BATCH);
    let (mut batches, mut batch) = (Vec::new(), (Vec::new(), Vec::new()));
    let mut ids = ids.into_iter();
    for fingerprint in fingerprints {
        let id = ids.next();
        if !batcher.fits(None, id.as_deref().unwrap_or_default()) {
            batches.push(std::mem::take(&mut batch));
        }
        batch.0.push(Fingerprint(fingerprint));
        batch.1.extend(id);
    }
    batches.push(batch);
    let documents = |(fingerprints, ids)| Documents {
        keys: Queries::Fingerprints(fingerprints),
        ids,
    };
    batches.into_iter().map(documents).collect()
}

/// Holds a corpus against its backup: it is cut into segments in the same way.
async fn verify(
    client: &Client,
    backup: &CorpusBackup,
    name: &str,
    verified: impl Fn(u64),
) -> Result<(), BackupError> {
    let segments = segments_of(client, name, verified).await?;
    let hashes = segments.map(async |contents| {
        let contents = contents?;
        Ok::<_, BackupError>(on_a_thread(move || hashed(contents).1).await)
    });
    let found: HashSet<_> = hashes.buffered(READ_AHEAD).try_collect().await?;
    let expected: HashSet<_> = backup.segments.iter().map(|segment| segment.hash).collect();
    if found == expected {
        return Ok(());
    }
    Err(BackupError::Differs {
        name: name.to_owned(),
        differing: expected
            .difference(&found)
            .count()
            .max(found.difference(&expected).count()),
        all: expected.len(),
    })
}
