//! Changes as a stream of batches that are sent again until they are answered.
//!
//! ```text
//!     batches --> window, kept until answered --> one stream --> answers, in order
//!                      ^                              |
//!                      +--- pause, a new stream <-----+ broke, failed, or says nothing
//! ```
//!
//! It reads a batch, and takes an answer, whichever comes first: so neither a slow source nor a slow
//! router holds up the other.
//!
//! # Invariants
//! - RS1: a batch is kept until it is answered, and every new stream begins with all that are kept,
//!   in their order.
//! - RS2: batches are answered in their order, each once; any other answer is an error.
//! - RS3: at most [`WINDOW`] batches are kept; no other batch is read while the window is full.
//! - RS4: what may pass is an error only once nothing has been answered for the whole patience, and then at once. The
//!   first attempt may end after that. An answer that was late has taken no patience.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, BoxStream, Fuse};
use futures_util::{Stream, StreamExt};
use simshard_proto::Reason;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;

use crate::batch::Documents;
use crate::client::{Client, TellOfWaiting};
use crate::error::ClientError;
use crate::patience::Patience;

/// Batches that are sent before the first of them is answered.
const WINDOW: usize = 8;

/// The result of one batch of a stream of changes. The batch is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// Its documents.
    pub document_count: u64,
    /// Those that changed something: that were not there before an insert, or that were before a
    /// removal. A batch that had to be sent twice may count less than it did, for the first time may
    /// have done it.
    pub changed_count: u64,
}

/// A batch, and its number in the stream.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) sequence: u64,
    pub(crate) documents: Documents,
}

/// The answer to a batch.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) sequence: u64,
    pub(crate) changed_count: u64,
}

/// The batches of one stream, in their order, as they come.
pub(crate) type Batches = ReceiverStream<Arc<Batch>>;

pub(crate) type BatchAnswers = BoxStream<'static, Result<Answer, ClientError>>;

/// Sends batches on streams that `open` makes, and yields the result of each, in their order. An
/// error is the last item.
pub(crate) fn resending<B, O>(
    client: &Client,
    batches: B,
    open: O,
) -> impl Stream<Item = Result<Acknowledged, ClientError>> + use<B, O>
where
    B: Stream<Item = Documents>,
    O: Fn(Batches) -> BatchAnswers,
{
    let sending = Resending {
        batches: Box::pin(batches.fuse()),
        open,
        url: client.url.clone(),
        timeout: client.timeout,
        patience: Patience::new(client.patience),
        tell: client.tell_of_waiting,
        window: VecDeque::with_capacity(WINDOW),
        next_sequence: 0,
        waiting_since: Instant::now(),
        in_flight: None,
        failure: None,
    };
    stream::unfold(Some(sending), |sending| async {
        let mut sending = sending?;
        let outcome = sending.next().await?;
        let going_on = outcome.is_ok().then_some(sending);
        Some((outcome, going_on))
    })
}

struct Resending<B, O> {
    batches: Pin<Box<Fuse<B>>>,
    open: O,
    url: String,
    timeout: Duration,
    patience: Patience,
    tell: Option<TellOfWaiting>,
    /// The batches without an answer, the oldest first.
    window: VecDeque<Arc<Batch>>,
    next_sequence: u64,
    /// When the oldest of them became the one that is to be answered.
    waiting_since: Instant,
    in_flight: Option<InFlight>,
    /// Why the last attempt failed, until something is answered.
    failure: Option<ClientError>,
}

/// A stream that is open, or is being opened.
struct InFlight {
    /// Has room for a whole window.
    batches: mpsc::Sender<Arc<Batch>>,
    answers: BatchAnswers,
}

/// The next event of a stream.
enum Event {
    Read(Documents),
    /// There are no more batches.
    Ended,
    Answered(Result<Answer, ClientError>),
    Late,
    /// The patience ends during another attempt.
    OutOfPatience(ClientError),
}

impl<B, O> Resending<B, O>
where
    B: Stream<Item = Documents>,
    O: Fn(Batches) -> BatchAnswers,
{
    /// The next batch that is answered, if any is left.
    async fn next(&mut self) -> Option<Result<Acknowledged, ClientError>> {
        while !(self.window.is_empty() && self.batches.is_done()) {
            let failure = match self.event().await {
                Event::Read(documents) => {
                    self.send(documents);
                    continue;
                }
                Event::Ended => continue,
                Event::Answered(Ok(answer)) => return Some(self.take(&answer)),
                Event::Answered(Err(error)) => error,
                Event::OutOfPatience(error) => return Some(Err(error)),
                Event::Late => self.no_answer(format!("nothing came for {:?}", self.timeout)),
            };
            if let Err(error) = self.recover(failure).await {
                return Some(Err(error));
            }
        }
        None
    }

    async fn event(&mut self) -> Event {
        let waits = !self.window.is_empty();
        if waits && self.in_flight.is_none() {
            self.in_flight = Some(self.begin());
        }
        let has_room = self.window.len() < WINDOW && !self.batches.is_done();
        let patience_ends = self.patience.end();
        let time_left = self.timeout.saturating_sub(self.waiting_since.elapsed());
        tokio::select! {
            // An answer that has arrived is not late, even if it is polled only after the timeout.
            biased;
            answer = answer(&mut self.in_flight) => {
                let ended = || self.no_answer("it ended the stream too early".to_owned());
                Event::Answered(answer.unwrap_or_else(|| Err(ended())))
            }
            batch = self.batches.next(), if has_room => batch.map_or(Event::Ended, Event::Read),
            () = tokio::time::sleep(time_left), if waits => Event::Late,
            error = last_failure(&mut self.failure, patience_ends), if waits => Event::OutOfPatience(error),
        }
    }

    /// A new stream, with all batches of the window on it (RS1).
    fn begin(&mut self) -> InFlight {
        let (sender, receiver) = mpsc::channel(WINDOW);
        for batch in &self.window {
            put(&sender, batch);
        }
        self.waiting_since = Instant::now();
        InFlight {
            batches: sender,
            answers: (self.open)(Batches::new(receiver)),
        }
    }

    fn send(&mut self, documents: Documents) {
        let sequence = self.next_sequence;
        let batch = Arc::new(Batch {
            sequence,
            documents,
        });
        self.next_sequence += 1;
        if self.window.is_empty() {
            self.waiting_since = Instant::now();
        }
        if let Some(in_flight) = &self.in_flight {
            put(&in_flight.batches, &batch);
        }
        self.window.push_back(batch);
        debug_assert!(self.window.len() <= WINDOW, "RS3");
    }

    /// Takes the answer to the oldest batch (RS2).
    fn take(&mut self, answer: &Answer) -> Result<Acknowledged, ClientError> {
        let due = |batch: &mut Arc<Batch>| batch.sequence == answer.sequence;
        let batch = self.window.pop_front_if(due);
        let batch = batch.ok_or(ClientError::OutOfTurn(answer.sequence))?;
        self.waiting_since = Instant::now();
        self.patience.after_progress();
        self.failure = None;
        Ok(Acknowledged {
            document_count: batch.documents.keys.len() as u64,
            changed_count: answer.changed_count,
        })
    }

    /// Leaves a stream that failed. Returns when it is time for the next, or the error, if that is
    /// of no use (RS4).
    async fn recover(&mut self, error: ClientError) -> Result<(), ClientError> {
        self.in_flight = None;
        if self.window.is_empty() {
            // No batch waits for an answer.
            return Ok(());
        }
        // A router that did not have the time says it a moment before we would.
        let now = Instant::now();
        let is_late = error.reason() == Some(Reason::DeadlineTooShort)
            || self.waiting_since.elapsed() >= self.timeout;
        let began = if is_late { now } else { self.waiting_since };
        let pause = if error.is_passing() || is_late {
            self.patience.after_failure(began, now)
        } else {
            None
        };
        let Some(pause) = pause else {
            return Err(error);
        };
        if let (Some(tell), Some(left)) = (self.tell, self.patience.overdue(Instant::now())) {
            tell(&error, left);
        }
        self.failure = Some(error);
        tokio::time::sleep(pause).await;
        Ok(())
    }

    fn no_answer(&self, problem: String) -> ClientError {
        let url = self.url.clone();
        ClientError::NoAnswer { url, problem }
    }
}

/// Hands a batch of the window to a stream.
fn put(batches: &mpsc::Sender<Arc<Batch>>, batch: &Arc<Batch>) {
    // It has room for the window. Where the stream broke, its answers say so.
    let _ = batches.try_send(Arc::clone(batch));
}

/// Why the attempt before failed, once the patience ends; never, where nothing failed.
async fn last_failure(failure: &mut Option<ClientError>, end: Option<Instant>) -> ClientError {
    if let (Some(end), true) = (end, failure.is_some()) {
        tokio::time::sleep_until(end).await;
        if let Some(failure) = failure.take() {
            return failure;
        }
    }
    std::future::pending().await
}

/// The next answer of a stream that is open; never, where none is.
async fn answer(in_flight: &mut Option<InFlight>) -> Option<Result<Answer, ClientError>> {
    match in_flight {
        Some(in_flight) => in_flight.answers.next().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::timeout;

    use super::*;
    use crate::batch::Queries;

    fn batch() -> Documents {
        Documents {
            keys: Queries::Texts(vec!["text".to_owned()]),
            ids: vec!["a".to_owned()],
        }
    }

    /// A router that fails each attempt after a while.
    async fn gave_up_after(patience: u64, attempt: Duration) -> Duration {
        let client = Client::new("http://127.0.0.1:1").unwrap();
        let client = client.with_patience(Duration::from_secs(patience));
        let open = move |_: Batches| {
            let failure = async move {
                let _ = timeout(attempt, pending::<()>()).await;
                let (url, problem) = (String::new(), String::new());
                Err(ClientError::NoRouter { url, problem })
            };
            stream::once(failure).boxed()
        };
        let started = Instant::now();
        let answers: Vec<_> = resending(&client, stream::iter([batch()]), open)
            .collect()
            .await;
        assert!(matches!(answers[..], [Err(ClientError::NoRouter { .. })]));
        started.elapsed()
    }

    /// RS4.
    #[tokio::test(start_paused = true)]
    async fn retries_end_with_the_patience_and_the_first_attempt_counts() {
        let attempt = Duration::from_secs(4);
        for (patience, took) in [(0, 4), (3, 4), (5, 5), (10, 10)] {
            let took = Duration::from_secs(took);
            assert_eq!(
                gave_up_after(patience, attempt).await.as_secs(),
                took.as_secs()
            );
        }
    }
}
