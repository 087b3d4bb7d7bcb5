//! From documents to requests: batches that fit a message, several in flight at
//! once, answers in the order of the documents.

use anyhow::Context;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};
use simshard_client::{Acknowledged, Batcher, ClientError, Documents, Fingerprint, Queries};
use simshard_input::{self as input, Content, Document, InputError, Position, Skipped};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;

use super::documents::Unsent;
use crate::progress;

/// Documents of one request.
pub(super) const BATCH: usize = 4096;

/// Requests in flight at once.
pub(super) const IN_FLIGHT: usize = 4;

/// Batches read ahead of the requests.
const READ_AHEAD: usize = 2;

/// The reader of the input takes exactly the ids that a corpus takes.
const _: () = assert!(simshard_input::MAX_ID_BYTES == simshard_client::MAX_ID_BYTES);

const READER_FAILED: &str = "reading the documents failed";

/// A batch, and where it ends in the input.
struct Batch {
    documents: Documents,
    end: Position,
}

/// Reads all documents, does `request` with each batch, and hands its ids and
/// answer to `answered`, in order.
pub(crate) async fn run<A, F>(
    what: &str,
    document_count: Option<u64>,
    documents: input::Documents,
    request: impl Fn(Documents) -> F,
    mut answered: impl FnMut(Vec<String>, A) -> anyhow::Result<()>,
) -> anyhow::Result<Skipped>
where
    F: Future<Output = anyhow::Result<A>>,
{
    let bar = progress::bar(what, document_count);
    let (batches, reader) = read_ahead(documents, Position::default());
    let requests = batches.map(|Batch { documents, .. }| {
        let ids = documents.ids.clone();
        let answer = request(documents);
        async { (ids, answer.await) }
    });
    let mut answers = std::pin::pin!(requests.buffered(IN_FLIGHT));
    while let Some((ids, answer)) = answers.next().await {
        bar.inc(ids.len() as u64);
        answered(ids, answer?)?;
    }
    bar.finish_and_clear();
    Ok(reader.await.context(READER_FAILED)??)
}

/// Sends documents on a stream, and tells `acknowledged` what became of each
/// batch and where it ends in the input, in order.
pub(crate) async fn stream<S>(
    what: &str,
    rest: Unsent,
    stream: impl FnOnce(BoxStream<'static, Documents>) -> S,
    mut acknowledged: impl FnMut(Acknowledged, Position) -> anyhow::Result<()>,
) -> anyhow::Result<Skipped>
where
    S: Stream<Item = Result<Acknowledged, ClientError>>,
{
    let bar = progress::bar(what, rest.document_count);
    bar.set_position(rest.from.documents);
    bar.reset_eta();
    let (batches, reader) = read_ahead(rest.documents, rest.from);
    let (sender, mut ends) = mpsc::unbounded_channel();
    let batches = batches.map(move |Batch { documents, end }| {
        // As many wait as there are batches in flight. Its reader may have ended with an error.
        let _ = sender.send(end);
        documents
    });
    let mut answers = std::pin::pin!(stream(batches.boxed()));
    while let Some(answer) = answers.next().await {
        let answer = answer?;
        let end = ends.recv().await;
        let end = end.context("a batch was acknowledged that was not sent")?;
        bar.set_position(end.documents);
        acknowledged(answer, end)?;
    }
    bar.finish_and_clear();
    Ok(reader.await.context(READER_FAILED)??)
}

/// Reads batches on a thread of its own, a few ahead.
fn read_ahead(
    documents: input::Documents,
    from: Position,
) -> (
    ReceiverStream<Batch>,
    JoinHandle<Result<Skipped, InputError>>,
) {
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    let reader = tokio::task::spawn_blocking(move || read(documents, from, &sender));
    (ReceiverStream::new(receiver), reader)
}

/// Sends batches until the documents or the interest in them end.
fn read(
    mut documents: input::Documents,
    mut position: Position,
    batches: &mpsc::Sender<Batch>,
) -> Result<Skipped, InputError> {
    let mut batcher = Batcher::new(BATCH);
    let mut batch = Vec::new();
    let send = |documents, end| {
        let documents = columns(documents);
        batches.blocking_send(Batch { documents, end })
    };
    for document in documents.by_ref() {
        let document = document?;
        let text = match &document.content {
            Content::Text(text) => Some(text.as_str()),
            Content::Fingerprint(_) => None,
        };
        if !batcher.fits(text, &document.id) && send(std::mem::take(&mut batch), position).is_err()
        {
            return Ok(documents.skipped());
        }
        position.pass(&document);
        batch.push(document);
    }
    if !batch.is_empty() {
        // Sending fails only after the requests ended with an error, which the caller reports.
        let _ = send(batch, position);
    }
    Ok(documents.skipped())
}

/// The documents of one input carry all texts or all fingerprints.
fn columns(documents: Vec<Document>) -> Documents {
    let mut ids = Vec::with_capacity(documents.len());
    let mut texts: Vec<String> = Vec::new();
    let mut fingerprints: Vec<Fingerprint> = Vec::new();
    for document in documents {
        ids.push(document.id);
        match document.content {
            Content::Text(text) => texts.push(text),
            Content::Fingerprint(fingerprint) => fingerprints.push(fingerprint),
        }
    }
    debug_assert!(texts.is_empty() || fingerprints.is_empty());
    let keys = if texts.is_empty() {
        Queries::Fingerprints(fingerprints)
    } else {
        Queries::Texts(texts)
    };
    Documents { keys, ids }
}
