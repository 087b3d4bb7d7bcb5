//! Whether the reader of a stream is still there.
//!
//! The server looks for a cancelled stream before it asks for answers, and then takes as many as are ready. It drops
//! the answers of a stream that was cancelled. So a reader that asks again, after a question came and no answer was
//! ready, was not known to have left when the question came.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;
use tokio::sync::{mpsc, oneshot};

use super::AnswerStream;

type Question = oneshot::Sender<()>;

/// Asks the server whether a stream is still read.
#[derive(Clone, Debug)]
pub(crate) struct Reader(mpsc::UnboundedSender<Question>);

impl Reader {
    /// Makes a stream of answers that tells whether it is read.
    pub(crate) fn of<T: 'static>(make: impl FnOnce(Self) -> AnswerStream<T>) -> AnswerStream<T> {
        let (asking, arriving) = mpsc::unbounded_channel();
        Box::pin(Read {
            answers: make(Self(asking)),
            arriving,
            arrived: Vec::new(),
            looked_after: Vec::new(),
        })
    }

    /// Whether the server did not know, when this was called, that the reader has gone. While the reader takes
    /// nothing, this waits.
    pub(crate) async fn is_there(&self) -> bool {
        let (question, answer) = oneshot::channel();
        self.0.send(question).is_ok() && answer.await.is_ok()
    }
}

/// Answers, and the questions whether they are read.
struct Read<T> {
    answers: AnswerStream<T>,
    arriving: mpsc::UnboundedReceiver<Question>,
    /// What arrived, and may have arrived after the server looked last.
    arrived: Vec<Question>,
    /// What arrived before no answer was ready. When the server asks the next time, it has looked since.
    looked_after: Vec<Question>,
}

impl<T> Stream for Read<T> {
    type Item = <AnswerStream<T> as Stream>::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        for question in this.looked_after.drain(..) {
            // The task that asked may have ended.
            let _ = question.send(());
        }
        while let Poll::Ready(Some(question)) = this.arriving.poll_recv(context) {
            this.arrived.push(question);
        }
        let answer = this.answers.as_mut().poll_next(context);
        if answer.is_pending() && !this.arrived.is_empty() {
            this.looked_after.append(&mut this.arrived);
            context.waker().wake_by_ref();
        }
        answer
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::pin::pin;

    use futures_util::{FutureExt, StreamExt, poll, stream};

    use super::*;

    /// A stream that waits after some answers, and its reader.
    fn answering(first: Vec<u8>) -> (AnswerStream<u8>, Reader) {
        let mut reader = None;
        let answers = Reader::of(|made| {
            reader = Some(made);
            let first = stream::iter(first).map(Ok);
            first.chain(stream::pending()).boxed()
        });
        (answers, reader.unwrap())
    }

    /// A stream without an answer, and its reader.
    pub(crate) fn silent() -> (AnswerStream<u8>, Reader) {
        answering(Vec::new())
    }

    /// The server may have looked before the question came, and asked for an answer after it.
    #[tokio::test]
    async fn a_reader_is_there_if_it_asks_for_an_answer_twice_after_the_question() {
        let (mut answers, reader) = silent();
        let mut is_there = pin!(reader.is_there());
        assert!(poll!(&mut is_there).is_pending());
        assert!(answers.next().now_or_never().is_none());
        assert!(poll!(&mut is_there).is_pending());
        assert!(answers.next().now_or_never().is_none());
        assert_eq!(poll!(&mut is_there), Poll::Ready(true));
    }

    /// The server asks for the next answer without looking.
    #[tokio::test]
    async fn an_answer_between_says_nothing_of_the_reader() {
        let (mut answers, reader) = answering(vec![1, 2]);
        let mut is_there = pin!(reader.is_there());
        assert!(poll!(&mut is_there).is_pending());
        for is_ready in [true, true, false] {
            assert_eq!(answers.next().now_or_never().is_some(), is_ready);
            assert!(poll!(&mut is_there).is_pending());
        }
        assert!(answers.next().now_or_never().is_none());
        assert_eq!(poll!(&mut is_there), Poll::Ready(true));
    }

    #[tokio::test]
    async fn a_question_wakes_who_waits_for_answers() {
        let (mut answers, reader) = silent();
        tokio::select! {
            biased;
            _ = answers.next() => unreachable!("there is no answer"),
            is_there = reader.is_there() => assert!(is_there),
        }
    }

    #[tokio::test]
    async fn a_reader_that_left_is_not_there() {
        let (mut answers, reader) = silent();
        let mut is_there = pin!(reader.is_there());
        assert!(poll!(&mut is_there).is_pending());
        assert!(answers.next().now_or_never().is_none());
        drop(answers);
        assert_eq!(poll!(&mut is_there), Poll::Ready(false));
        assert!(!reader.is_there().await);
    }
}
