//! From documents to requests: batches that fit a message, several under way at
//! once, answers in the order of the documents.

use anyhow::Context;
use futures_util::StreamExt;
use simshard_client::{Batcher, ClientError, Documents, Fingerprint, Queries};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::input::{self, Content, Document, Input, InputError, Skipped};
use crate::progress;

/// Documents of one request.
const BATCH: usize = 4096;

/// Requests under way at once.
const UNDER_WAY: usize = 4;

/// Batches read ahead of the requests.
const READ_AHEAD: usize = 2;

/// Reads all documents, does `request` with each batch, and hands its ids and
/// answer to `answered`, in order.
pub(crate) async fn run<A, F>(
    what: &str,
    input: Input,
    request: impl Fn(Documents) -> F,
    mut answered: impl FnMut(Vec<String>, A) -> anyhow::Result<()>,
) -> anyhow::Result<Skipped>
where
    F: Future<Output = Result<A, ClientError>>,
{
    let bar = progress::bar(what, input.document_count());
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    let reader = tokio::task::spawn_blocking(move || read(input.documents(), &sender));

    let requests = ReceiverStream::new(receiver).map(|batch: Documents| {
        let ids = batch.ids.clone();
        let answer = request(batch);
        async { (ids, answer.await) }
    });
    let mut answers = std::pin::pin!(requests.buffered(UNDER_WAY));
    while let Some((ids, answer)) = answers.next().await {
        bar.inc(ids.len() as u64);
        answered(ids, answer?)?;
    }
    bar.finish_and_clear();
    Ok(reader.await.context("reading the documents failed")??)
}

/// Sends batches until the documents or the interest in them end.
fn read(
    mut documents: input::Documents,
    batches: &mpsc::Sender<Documents>,
) -> Result<Skipped, InputError> {
    let mut batcher = Batcher::new(BATCH);
    let mut batch = Vec::new();
    for document in documents.by_ref() {
        let document = document?;
        let text = match &document.content {
            Content::Text(text) => Some(text.as_str()),
            Content::Fingerprint(_) => None,
        };
        if !batcher.fits(text, &document.id) {
            let full = columns(std::mem::take(&mut batch));
            if batches.blocking_send(full).is_err() {
                return Ok(documents.skipped());
            }
        }
        batch.push(document);
    }
    if !batch.is_empty() {
        // If nobody takes it, the error that ended the requests is reported.
        let _ = batches.blocking_send(columns(batch));
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
    let keys = match texts.is_empty() {
        true => Queries::Fingerprints(fingerprints),
        false => Queries::Texts(texts),
    };
    Documents { keys, ids }
}
