//! Streams of batches: several under way at once, answers in order.

use std::pin::Pin;

use futures_util::StreamExt;
use simshard_proto::transport::explain_size;
use tokio_stream::Stream;
use tokio_util::task::AbortOnDropHandle;
use tonic::{Status, Streaming};

use crate::error::RouterError;

/// Batches of one stream under way at once. The next is read when the answer to
/// the first is taken, so a client that stops reading stops its own writing.
const WINDOW: usize = 4;

/// A stream of answers.
pub(crate) type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Answers each request of a stream; the first error is the last answer.
///
/// Each batch is a task of its own: a client that does not read holds up its
/// own stream, but no answer of a node half way, and with it the connection
/// that others use.
pub(crate) fn answers<Q, A, F>(
    requests: Streaming<Q>,
    answer: impl Fn(Q) -> F + Send + 'static,
) -> Answers<A>
where
    Q: Send + 'static,
    A: Send + 'static,
    F: Future<Output = Result<A, Status>> + Send + 'static,
{
    let under_way = requests.map(move |request| {
        let answer = request.map_err(explain_size).map(&answer);
        let task = answer.map(|answer| AbortOnDropHandle::new(tokio::spawn(answer)));
        async {
            // A task fails only where the runtime is going down.
            task?
                .await
                .unwrap_or_else(|_| Err(RouterError::Stopping.into()))
        }
    });
    Box::pin(under_way.buffered(WINDOW))
}
