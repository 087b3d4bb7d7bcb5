//! The streams about whole corpora. An answer is asked for when the one before is on its way.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use simshard_proto::shard::v1 as pb;
use simshard_proto::shards_into;
use simshard_storage::Documents;
use tonic::{Response, Status};

use super::corpus_uid;
use crate::engine::Engine;
use crate::error::NodeError;

/// A stream of answers.
pub(super) type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

pub(super) fn scan(
    engine: &Arc<Engine>,
    request: &pb::ScanRequest,
) -> Result<Response<Answers<pb::ScanResponse>>, Status> {
    let uid = corpus_uid(&request.corpus_uid)?;
    let pages = engine.scan(uid, shards_into(&request.shards)?)?;
    Ok(answers(pages, scan_response))
}

fn answers<T, A>(
    items: impl Stream<Item = Result<T, NodeError>> + Send + 'static,
    convert: fn(T) -> A,
) -> Response<Answers<A>>
where
    T: 'static,
    A: 'static,
{
    let answers = items.map(move |item| item.map(convert).map_err(Status::from));
    Response::new(Box::pin(answers))
}

fn scan_response(page: Documents) -> pb::ScanResponse {
    let bare = page.ids.iter().all(String::is_empty);
    pb::ScanResponse {
        fingerprints: page.fingerprints.iter().map(|value| value.0).collect(),
        ids: if bare { Vec::new() } else { page.ids },
    }
}
