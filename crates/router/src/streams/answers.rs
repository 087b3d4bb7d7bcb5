//! Streams of answers: a task makes them, and waits while the client does not read.
//!
//! # Invariants
//! - SR1: at most two answers of a stream wait to be read.
//! - SR2: the work of a stream ends when its reader goes, at its deadline, or when its reader took nothing for the
//!   `patience` of the stream.
//! - SR3: a stream holds its place among the requests in flight only while its work goes on. Once the work has ended,
//!   the place is free, even if the last answers are unread.
//! - SR4: an answer that waits to be read counts. Where nothing was read for as long as the stream has patience, it is
//!   dropped.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::{Stream, stream};
use parking_lot::Mutex;
use simshard_transport::{Admitted, Taken};
use tokio::sync::mpsc;
use tokio::time::{timeout, timeout_at};
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;

use crate::deadline::Deadline;
use crate::error::RouterError;

pub(crate) type AnswerStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Where the answers of a stream go.
#[derive(Debug)]
pub(crate) struct Sink<T> {
    answers: mpsc::Sender<Waiting<T>>,
    /// The receiving end: an answer that stays unread is dropped from it.
    unread: Weak<Mutex<mpsc::Receiver<Waiting<T>>>>,
    patience: Duration,
}

/// An answer that waits to be read, and its memory, if that counts.
type Waiting<T> = (T, Option<Taken>);

impl<T> Sink<T> {
    /// Sends an answer, once there is room for it.
    pub(crate) async fn send(&self, answer: T) -> Result<(), RouterError> {
        self.room().await?.send((answer, None));
        Ok(())
    }

    /// Sends an answer, once there is room for it; its memory counts until it is read.
    pub(crate) async fn send_counted(&self, answer: T, memory: Taken) -> Result<(), RouterError> {
        self.room().await?.send((answer, Some(memory)));
        Ok(())
    }

    /// Waits until the answer before is read. Drops it if it is not.
    async fn room(&self) -> Result<mpsc::Permit<'_, Waiting<T>>, RouterError> {
        match timeout(self.patience, self.answers.reserve()).await {
            Ok(Ok(room)) => Ok(room),
            // The reader has gone, so this error is never seen.
            Ok(Err(_)) => Err(RouterError::Stopping),
            Err(_) => {
                if let Some(unread) = self.unread.upgrade() {
                    drop(unread.lock().try_recv());
                }
                Err(RouterError::Stalled(self.patience))
            }
        }
    }
}

/// The answers that `work` sends, and its error, if it fails, as the last one.
pub(crate) fn answers<T, E, F>(
    admitted: Admitted,
    deadline: Option<Deadline>,
    patience: Duration,
    work: impl FnOnce(Sink<T>) -> F,
) -> AnswerStream<T>
where
    T: Send + 'static,
    E: Into<Status> + From<RouterError> + Send + 'static,
    F: Future<Output = Result<(), E>> + Send + 'static,
{
    let (answers, receiver) = mpsc::channel(1);
    let receiver = Arc::new(Mutex::new(receiver));
    let sink = |answers| Sink {
        answers,
        unread: Arc::downgrade(&receiver),
        patience,
    };
    let last = sink(answers.clone());
    let work = work(sink(answers));
    let task = tokio::spawn(async move {
        let end = match deadline {
            None => work.await,
            Some(deadline) => timeout_at(deadline.instant(), work)
                .await
                .unwrap_or(Err(RouterError::OutOfTime.into())),
        };
        admitted.leave();
        let read = last.room().await.map(drop);
        end.and(read.map_err(E::from))
    });
    let in_flight = Some((receiver, AbortOnDropHandle::new(task)));
    Box::pin(stream::unfold(in_flight, async |in_flight| {
        let (receiver, task) = in_flight?;
        let answer = poll_fn(|context| receiver.lock().poll_recv(context));
        if let Some((answer, _)) = answer.await {
            return Some((Ok(answer), Some((receiver, task))));
        }
        let end = task.await;
        let end = end.unwrap_or_else(|ended| Err(RouterError::from(ended).into()));
        end.err().map(|error| (Err(error.into()), None))
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::StreamExt;
    use simshard_proto::Reason;
    use simshard_transport::{Budget, Peer, Places};
    use tokio::sync::oneshot;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(600);

    fn unlimited() -> Admitted {
        Admitted::new(&Budget::new(usize::MAX), None)
    }

    /// Counts without an end; what it made so far.
    fn counting(deadline: Option<Deadline>) -> (AnswerStream<usize>, Arc<AtomicUsize>) {
        let made = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&made);
        let stream = answers(unlimited(), deadline, PATIENCE, |sink| async move {
            loop {
                let number = counter.fetch_add(1, Ordering::Relaxed);
                sink.send(number).await?;
            }
            #[expect(unreachable_code, reason = "tells the type of the error")]
            Ok::<_, RouterError>(())
        });
        (stream, made)
    }

    /// SR1, SR2, SR4.
    #[tokio::test(start_paused = true)]
    async fn a_reader_that_stops_stops_the_work_and_is_cut_off_in_the_end() {
        let (mut stream, made) = counting(None);
        assert_eq!(stream.next().await.unwrap().unwrap(), 0);
        tokio::time::sleep(PATIENCE - Duration::from_secs(1)).await;
        assert_eq!(made.load(Ordering::Relaxed), 3);
        assert_eq!(stream.next().await.unwrap().unwrap(), 1);
        tokio::time::sleep(PATIENCE + Duration::from_secs(1)).await;
        let rest: Vec<_> = stream.collect().await;
        let [Err(status)] = &rest[..] else {
            panic!("{rest:?}");
        };
        assert_eq!(Reason::of(status), Some(Reason::DeadlineTooShort));
    }

    /// SR2.
    #[tokio::test(start_paused = true)]
    async fn the_deadline_of_the_client_ends_the_work() {
        let deadline = Deadline::within(Duration::from_secs(5));
        let (mut stream, _) = counting(Some(deadline));
        let end = loop {
            tokio::time::sleep(Duration::from_millis(10)).await;
            if let Err(status) = stream.next().await.unwrap() {
                break status;
            }
        };
        assert_eq!(Reason::of(&end), Some(Reason::DeadlineTooShort));
        assert!(stream.next().await.is_none());
    }

    #[tokio::test]
    async fn work_that_panics_is_a_fault_and_no_stop_after_which_clients_send_again() {
        let panics = |_: Sink<usize>| async {
            assert_eq!(1, 2, "a fault");
            Ok::<(), RouterError>(())
        };
        let mut stream = answers(unlimited(), None, PATIENCE, panics);
        let status = stream.next().await.unwrap().unwrap_err();
        assert_eq!(Reason::of(&status), Some(Reason::Internal));
    }

    /// SR2.
    #[tokio::test]
    async fn the_work_ends_when_its_reader_goes() {
        let (ending, ended) = oneshot::channel::<()>();
        let stream = answers(
            unlimited(),
            None,
            PATIENCE,
            |sink: Sink<usize>| async move {
                let _ending = ending;
                sink.send(1).await?;
                std::future::pending::<Result<(), RouterError>>().await
            },
        );
        drop(stream);
        assert!(ended.await.is_err());
    }

    /// SR4.
    #[tokio::test(start_paused = true)]
    async fn the_last_answer_counts_until_it_is_read_or_its_reader_is_cut_off() {
        for is_read in [true, false] {
            let budget = Budget::new(10);
            let memory = budget.take(10);
            let mut stream = answers(unlimited(), None, PATIENCE, |sink| async move {
                sink.send_counted(7, memory).await
            });
            tokio::time::sleep(PATIENCE - Duration::from_secs(1)).await;
            assert!(budget.try_take(1).is_none());
            if is_read {
                assert_eq!(stream.next().await.unwrap().unwrap(), 7);
                assert!(budget.try_take(10).is_some());
                assert!(stream.next().await.is_none());
            } else {
                tokio::time::sleep(Duration::from_secs(2)).await;
                assert!(budget.try_take(10).is_some());
                let status = stream.next().await.unwrap().unwrap_err();
                assert_eq!(Reason::of(&status), Some(Reason::DeadlineTooShort));
                assert!(stream.next().await.is_none());
            }
        }
    }

    /// SR3.
    #[tokio::test(start_paused = true)]
    async fn a_reader_that_is_cut_off_leaves_its_place_to_others() {
        let places = Places::new(1);
        let place = places.take(Peer::UNKNOWN);
        let admitted = Admitted::new(&Budget::new(0), place);
        let _unread = answers(admitted, None, PATIENCE, |sink| async move {
            for number in 0..3 {
                sink.send(number).await?;
            }
            Ok::<_, RouterError>(())
        });
        tokio::time::sleep(PATIENCE - Duration::from_secs(1)).await;
        assert_eq!(places.free(), 0);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(places.free(), 1);
    }
}
