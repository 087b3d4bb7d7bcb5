//! Streams of batches: several under way at once, answers in order, and memory that is bounded whatever the client
//! does.

use std::pin::Pin;
use std::time::Duration;

use futures_util::StreamExt;
use prost::Message;
use simshard_proto::transport::{Received, Taken, explain_size};
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::task::AbortOnDropHandle;
use tonic::{Request, Status, Streaming};

use crate::error::RouterError;

/// Batches of one stream under way at once. The next is read when the answer to
/// the first is taken, so a client that stops reading stops its own writing.
const WINDOW: usize = 4;

/// A stream of answers.
pub(crate) type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Answers each request of a stream; the first error is the last answer. So is one that is not read for
/// `patience`: what the stream holds is given back then.
///
/// Each batch is a task of its own: a client that does not read holds up its
/// own stream, but no answer of a node half way, and with it the connection
/// that others use.
pub(crate) fn answers<Q, A, F>(
    requests: Request<Streaming<Q>>,
    patience: Duration,
    answer: impl Fn(Q) -> F + Send + Sync + 'static,
) -> Answers<A>
where
    Q: Send + 'static,
    A: Message + 'static,
    F: Future<Output = Result<A, Status>> + Send + 'static,
{
    let received = Received::of(&requests);
    let under_way = requests.into_inner().map(move |request| {
        let memory = received.split();
        let task = request.map_err(explain_size).map(|request| {
            let answer = answer(request);
            AbortOnDropHandle::new(tokio::spawn(within(memory, answer)))
        });
        async {
            // A task fails only where the runtime is going down.
            task?
                .await
                .unwrap_or_else(|_| Err(RouterError::Stopping.into()))
        }
    });
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let read = hand_on(under_way.buffered(WINDOW), &sender, patience).await;
        if let Err(not_read) = read {
            let _ = sender.send(Err(not_read.into())).await;
        }
    });
    Box::pin(ReceiverStream::new(receiver))
}

/// An answer, and the memory that it and its request take.
async fn within<A: Message>(
    mut memory: Taken,
    answer: impl Future<Output = Result<A, Status>>,
) -> Result<(A, Taken), Status> {
    let answer = answer.await?;
    match memory.try_grow(answer.encoded_len()) {
        true => Ok((answer, memory)),
        false => Err(RouterError::NoMemory.into()),
    }
}

/// Hands answers on until they end, or the client goes; an error if it is there, but takes none.
async fn hand_on<A>(
    answers: impl Stream<Item = Result<(A, Taken), Status>>,
    sender: &mpsc::Sender<Result<A, Status>>,
    patience: Duration,
) -> Result<(), RouterError> {
    let mut answers = std::pin::pin!(answers);
    loop {
        let answer = tokio::select! {
            answer = answers.next() => answer,
            () = sender.closed() => None,
        };
        let Some(answer) = answer else {
            return Ok(());
        };
        let place = tokio::time::timeout(patience, sender.reserve()).await;
        let Ok(place) = place.map_err(|_| RouterError::Stalled(patience))? else {
            return Ok(());
        };
        // From here on it counts as part of the answer that leaves.
        place.send(answer.map(|(answer, _memory)| answer));
    }
}

#[cfg(test)]
mod tests {
    use simshard_proto::Reason;
    use simshard_proto::transport::Budget;
    use simshard_proto::v1::InsertResponse;

    use super::*;

    const SHORT: Duration = Duration::from_millis(30);

    fn answers(
        budget: &Budget,
    ) -> impl Stream<Item = Result<(InsertResponse, Taken), Status>> + use<> {
        let answer = |inserted_count, memory| Ok((InsertResponse { inserted_count }, memory));
        let answers = [1, 2, 3].map(|number| answer(number, budget.take(10)));
        futures_util::stream::iter(answers)
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_keeps_no_memory() {
        let budget = Budget::new(30);
        let (sender, mut receiver) = mpsc::channel(1);
        let answers = answers(&budget);
        let error = hand_on(answers, &sender, SHORT).await.unwrap_err();
        assert_eq!(error.reason(), Reason::DeadlineTooShort);
        assert!(budget.try_take(30).is_some(), "nothing is held");
        assert_eq!(receiver.recv().await.unwrap().unwrap().inserted_count, 1);
    }

    #[tokio::test]
    async fn a_client_that_reads_gets_all() {
        let budget = Budget::new(30);
        let (sender, receiver) = mpsc::channel(1);
        let answers = answers(&budget);
        tokio::spawn(async move { hand_on(answers, &sender, SHORT).await });
        let read = ReceiverStream::new(receiver).map(|answer| answer.unwrap().inserted_count);
        assert_eq!(read.collect::<Vec<_>>().await, [1, 2, 3]);
        assert!(budget.try_take(30).is_some());
    }

    #[tokio::test]
    async fn an_answer_without_room_is_an_error() {
        let budget = Budget::new(10);
        let answer = InsertResponse { inserted_count: 7 };
        let bytes = answer.encoded_len();
        let ready = || async { Ok(answer) };
        let memory = budget.try_take(10 - bytes).unwrap();
        let held = within(memory, ready()).await.unwrap();
        assert!(budget.try_take(1).is_none());
        drop(held);
        let memory = budget.try_take(10).unwrap();
        let status = within(memory, ready()).await.unwrap_err();
        assert_eq!(Reason::of(&status), Some(Reason::Overloaded));
        assert!(budget.try_take(10).is_some());
    }
}
