//! Making a backup.

use std::collections::HashSet;
use std::pin::pin;

use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use simshard_client::v1::{Corpus, CorpusState, NodeShards};
use simshard_client::{Client, ClientError, Document};
use time::OffsetDateTime;

use crate::cut::Cutter;
use crate::error::BackupError;
use crate::manifest::{CorpusBackup, Manifest, NodeEntry, SegmentEntry};
use crate::repository::Repository;
use crate::segment::{Contents, SegmentHash, compressed};
use crate::threads::on_a_thread;
use crate::throttle::Throttle;

/// Segments that are hashed, compressed and written at once.
const AT_ONCE: usize = 4;

/// What a backup is to have, and how fast it is to be.
#[derive(Debug)]
pub struct CreateOptions {
    /// The corpora; none for all that are live.
    pub corpora: Vec<String>,
    /// Holds it back.
    pub throttle: Throttle,
}

/// A backup that was made.
#[derive(Debug)]
pub struct Created {
    /// Its manifest.
    pub manifest: Manifest,
    /// Segments that were stored; the other ones had been there.
    pub new_segments: u64,
    /// Bytes that were stored for these.
    pub new_bytes: u64,
}

/// Backs corpora up. `begins` is told each corpus and its documents, if their number is known, and `passed` how many more
/// documents are read.
///
/// # Errors
/// If a corpus is not there or cannot be read to its end, or the place cannot be written. Then there is no new backup.
pub async fn create(
    client: &Client,
    repository: &Repository,
    mut options: CreateOptions,
    mut begins: impl FnMut(&str, Option<u64>),
    passed: impl Fn(u64),
) -> Result<Created, BackupError> {
    let corpora = chosen(client, &options.corpora).await?;
    let mut created = Created {
        manifest: Manifest::begin(OffsetDateTime::now_utc()),
        new_segments: 0,
        new_bytes: 0,
    };
    let mut known = repository.segments().await?;
    for corpus in corpora {
        let description = client.get_corpus(&corpus.name).await?;
        begins(&corpus.name, description.document_count);
        let mut segments = Vec::new();
        {
            let contents = segments_of(client, &corpus.name, &passed).await?;
            let stored = contents.map(|contents| store(repository, &known, contents));
            let mut stored = pin!(stored.buffered(AT_ONCE));
            while let Some(Stored { entry, new_bytes }) = stored.try_next().await? {
                options.throttle.pass(entry.bytes).await;
                created.new_segments += u64::from(new_bytes.is_some());
                created.new_bytes += new_bytes.unwrap_or_default();
                segments.push(entry);
            }
        }
        known.extend(segments.iter().map(|segment| segment.hash));
        let backup = described(corpus, description.nodes, segments);
        created.manifest.corpora.push(backup);
    }
    created.manifest.end(OffsetDateTime::now_utc());
    repository.put_manifest(&created.manifest).await?;
    Ok(created)
}

fn described(corpus: Corpus, nodes: Vec<NodeShards>, segments: Vec<SegmentEntry>) -> CorpusBackup {
    let node = |node: NodeShards| NodeEntry {
        name: node.node,
        address: node.address,
        shards: node.shards,
    };
    CorpusBackup {
        name: corpus.name,
        blocks: corpus.blocks,
        distance: corpus.distance,
        recipe: corpus.recipe,
        nodes: nodes.into_iter().map(node).collect(),
        segments,
    }
}

/// The corpora of these names, or all that are live.
async fn chosen(client: &Client, names: &[String]) -> Result<Vec<Corpus>, BackupError> {
    let mut corpora = client.list_corpora().await?;
    corpora.retain(|corpus| corpus.state == i32::from(CorpusState::Live));
    let unknown = names
        .iter()
        .find(|name| corpora.iter().all(|corpus| corpus.name != **name));
    if let Some(name) = unknown {
        return Err(BackupError::NoCorpus {
            what: "the cluster".to_owned(),
            name: name.clone(),
        });
    }
    if !names.is_empty() {
        corpora.retain(|corpus| names.contains(&corpus.name));
    }
    Ok(corpora)
}

/// The documents of a corpus, cut into segments.
pub(crate) async fn segments_of<F: Fn(u64)>(
    client: &Client,
    corpus: &str,
    passed: F,
) -> Result<impl Stream<Item = Result<Contents, ClientError>> + use<F>, ClientError> {
    let documents = client.scan(corpus).await?;
    let mut cutter = Some(Cutter::default());
    let documents = documents.map(Some).chain(stream::iter([None]));
    let cut = documents.map(move |batch| -> Result<Vec<Contents>, ClientError> {
        let Some(batch) = batch.transpose()? else {
            return Ok(cutter.take().and_then(Cutter::finish).into_iter().collect());
        };
        passed(batch.len() as u64);
        let push = |document: Document| cutter.as_mut()?.push(document);
        Ok(batch.into_iter().filter_map(push).collect())
    });
    Ok(cut
        .map_ok(|segments| stream::iter(segments.into_iter().map(Ok)))
        .try_flatten())
}

/// A segment that is stored now, and how many bytes were written if it was not before.
struct Stored {
    entry: SegmentEntry,
    new_bytes: Option<u64>,
}

async fn store(
    repository: &Repository,
    known: &HashSet<SegmentHash>,
    contents: Result<Contents, ClientError>,
) -> Result<Stored, BackupError> {
    let contents = contents?;
    let documents = contents.len() as u64;
    let (message, hash) = on_a_thread(move || hashed(contents)).await;
    let entry = SegmentEntry {
        hash,
        documents,
        bytes: message.len() as u64,
    };
    if known.contains(&hash) {
        let new_bytes = None;
        return Ok(Stored { entry, new_bytes });
    }
    let stored = on_a_thread(move || compressed(&message)).await;
    let stored = stored.map_err(BackupError::Compression)?;
    let new_bytes = Some(stored.len() as u64);
    repository.put_segment(hash, stored).await?;
    Ok(Stored { entry, new_bytes })
}

pub(crate) fn hashed(contents: Contents) -> (Vec<u8>, SegmentHash) {
    let message = contents.into_message();
    let hash = SegmentHash::of(&message);
    (message, hash)
}
