//! Streams of batches: several in flight at once, answers in order, and memory that is bounded whatever the client
//! does.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use prost::Message;
use simshard_transport::{Admitted, Taken, Working, explain};
use tokio::time::timeout_at;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use tonic::{Request, Status, Streaming};

use super::reader::Reader;
use super::{AnswerStream, Sink, answers};
use crate::caller::CallerWatch;
use crate::deadline::Deadline;
use crate::error::RouterError;

/// Batches of one stream in flight at once. The next is read when the answer to
/// the first is taken, so a client that stops reading stops its own writing.
const WINDOW: usize = 4;

/// Answers each request of a stream until its deadline; the first error is the last answer. So is one that is not read
/// for `patience`: what the stream holds is given back then. Where the router is `stopping`, what was read is answered,
/// and then that it stops.
///
/// Each batch is a task of its own. A client that does not read holds up its own stream. It holds up no answer of a
/// node half way, and so not the connection that others use.
pub(crate) fn answer_each<Q, A, F>(
    requests: Request<Streaming<Q>>,
    deadline: Option<Deadline>,
    patience: Duration,
    stopping: CancellationToken,
    answer: impl Fn(Q, BatchPermit) -> F + Send + Sync + 'static,
) -> AnswerStream<A>
where
    Q: Send + 'static,
    A: Message + 'static,
    F: Future<Output = Result<A, Status>> + Send + 'static,
{
    let admitted = Admitted::of(&requests);
    admitted.rest();
    let arrived = admitted.clone();
    let requests = requests.into_inner();
    let requests = requests.take_until(stopping.clone().cancelled_owned());
    let tasks = TaskTracker::new();
    let tracker = tasks.clone();
    let turns = admitted.clone();
    let requests = requests.then(move |request| {
        let turns = turns.clone();
        async move {
            // One that is read, and waits, keeps the next ones from being read.
            turns.wait().await;
            request
        }
    });
    let in_flight = |reader: Reader| {
        requests.map(move |request| {
            let memory = arrived.split();
            let task = request.map_err(explain).and_then(|request| {
                let kept = Kept::new(memory, arrived.work()?, reader.clone());
                let answer = answer(request, kept.batch.clone());
                Ok(AbortOnDropHandle::new(tracker.spawn(within(kept, answer))))
            });
            async {
                let outcome = task?.await;
                outcome.unwrap_or_else(|ended| Err(RouterError::from(ended).into()))
            }
        })
    };
    Reader::of(|reader| {
        let in_flight = in_flight(reader).buffered(WINDOW);
        answers(admitted, deadline, patience, |sink| async move {
            hand_on_all(in_flight, sink, tasks).await?;
            if stopping.is_cancelled() {
                Err(Status::from(RouterError::Stopping))
            } else {
                Ok(())
            }
        })
    })
}

/// The memory and the place of a batch, and the reader of its answer. The last clone releases both.
#[derive(Clone, Debug)]
pub(crate) struct BatchPermit {
    _batch: Arc<(Taken, Working)>,
    reader: Reader,
}

impl CallerWatch for BatchPermit {
    async fn is_waiting(&self, deadline: Deadline) -> bool {
        let is_there = timeout_at(deadline.instant(), self.reader.is_there());
        is_there.await.unwrap_or(false)
    }
}

/// The memory of a batch and its answer, until there is room for the answer.
#[derive(Debug)]
struct Kept {
    batch: BatchPermit,
    answer: Taken,
}

impl Kept {
    fn new(mut memory: Taken, working: Working, reader: Reader) -> Self {
        let batch = memory.split();
        Self {
            batch: BatchPermit {
                _batch: Arc::new((batch, working)),
                reader,
            },
            answer: memory,
        }
    }
}

/// An answer, and what it and its request hold.
async fn within<A: Message>(
    mut kept: Kept,
    answer: impl Future<Output = Result<A, Status>>,
) -> Result<(A, Kept), Status> {
    let answer = answer.await?;
    if kept.answer.try_grow(answer.encoded_len()) {
        Ok((answer, kept))
    } else {
        Err(RouterError::NoMemory.into())
    }
}

/// Hands answers on until they end. After an error it waits until the tasks of the other batches have been dropped. So
/// they do nothing more once their client hears of the error.
async fn hand_on_all<A>(
    answers: impl Stream<Item = Result<(A, Kept), Status>>,
    sink: Sink<A>,
    batches: TaskTracker,
) -> Result<(), Status> {
    let end = hand_on(answers, sink).await;
    batches.close();
    batches.wait().await;
    end
}

/// Hands answers on until they end. Each keeps what its batch holds until there is room for it, and its own memory
/// until it is read. From then on it counts as part of what leaves.
async fn hand_on<A>(
    answers: impl Stream<Item = Result<(A, Kept), Status>>,
    sink: Sink<A>,
) -> Result<(), Status> {
    let mut answers = std::pin::pin!(answers);
    while let Some(answer) = answers.next().await {
        let (answer, kept) = answer?;
        sink.send_counted(answer, kept.answer).await?;
        drop(kept.batch);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use simshard_proto::Reason;
    use simshard_proto::v1::InsertResponse;
    use simshard_transport::Budget;

    use super::*;
    use crate::streams::reader::tests::silent;

    const SHORT: Duration = Duration::from_millis(30);

    /// The memory and place of a batch of this size.
    fn holding(memory: Taken) -> Kept {
        let admitted = Admitted::new(&Budget::new(0), None);
        Kept {
            answer: memory,
            ..Kept::new(admitted.split(), admitted.work().unwrap(), silent().1)
        }
    }

    /// The answers 1 to 4, of which each takes 10 bytes.
    fn four(budget: &Budget) -> AnswerStream<InsertResponse> {
        let answer =
            |inserted_count, memory| Ok((InsertResponse { inserted_count }, holding(memory)));
        let made = [1, 2, 3, 4].map(|number| answer(number, budget.take(10)));
        answers(Admitted::new(budget, None), None, SHORT, |sink| {
            hand_on(futures_util::stream::iter(made), sink)
        })
    }

    /// CH1.
    #[tokio::test]
    async fn batches_in_flight_have_ended_when_their_client_hears_of_an_error() {
        let tasks = TaskTracker::new();
        let (in_flight, mut ended) = tokio::sync::oneshot::channel::<()>();
        let waits = AbortOnDropHandle::new(tasks.spawn(async move {
            let _in_flight = in_flight;
            std::future::pending::<()>().await;
        }));
        tokio::task::yield_now().await;
        let error = Err(RouterError::Stopping.into());
        let made = futures_util::stream::iter([error]).chain(futures_util::stream::once(async {
            waits.await.unwrap();
            Err(RouterError::Stopping.into())
        }));
        let (handed_on, end) = tokio::sync::oneshot::channel();
        let unlimited = Admitted::new(&Budget::new(0), None);
        let mut stream = answers(
            unlimited,
            None,
            SHORT,
            |sink: Sink<InsertResponse>| async move {
                let end = hand_on_all(made, sink, tasks).await;
                let _ = handed_on.send(ended.try_recv());
                end
            },
        );
        assert!(stream.next().await.unwrap().is_err());
        let closed = tokio::sync::oneshot::error::TryRecvError::Closed;
        assert_eq!(end.await.unwrap(), Err(closed));
    }

    /// SR4.
    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_keeps_memory_until_it_is_cut_off() {
        let budget = Budget::new(40);
        let mut stream = four(&budget);
        tokio::time::sleep(SHORT / 2).await;
        assert!(budget.try_take(1).is_none());
        assert_eq!(stream.next().await.unwrap().unwrap().inserted_count, 1);
        assert!(budget.try_take(10).is_some());
        assert!(budget.try_take(11).is_none());
        tokio::time::sleep(SHORT + SHORT / 2).await;
        assert!(budget.try_take(40).is_some());
        let status = stream.next().await.unwrap().unwrap_err();
        assert_eq!(Reason::of(&status), Some(Reason::DeadlineTooShort));
        assert!(stream.next().await.is_none());
    }

    #[tokio::test]
    async fn a_client_that_reads_gets_all() {
        let budget = Budget::new(40);
        let read = four(&budget).map(|answer| answer.unwrap().inserted_count);
        assert_eq!(read.collect::<Vec<_>>().await, [1, 2, 3, 4]);
        assert!(budget.try_take(40).is_some());
    }

    #[tokio::test]
    async fn an_answer_without_room_is_an_error() {
        let budget = Budget::new(10);
        let answer = InsertResponse { inserted_count: 7 };
        let bytes = answer.encoded_len();
        let ready = || async { Ok(answer) };
        let memory = budget.try_take(10 - bytes).unwrap();
        let held = within(holding(memory), ready()).await.unwrap();
        assert!(budget.try_take(1).is_none());
        drop(held);
        let memory = budget.try_take(10).unwrap();
        let status = within(holding(memory), ready()).await.unwrap_err();
        assert_eq!(Reason::of(&status), Some(Reason::Overloaded));
        assert!(budget.try_take(10).is_some());
    }
}
