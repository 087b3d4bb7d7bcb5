//! Streams: of answers that the router makes by itself, and of answers to a stream of batches.

mod answers;
mod batches;
mod reader;

pub(crate) use answers::{AnswerStream, Sink, answers};
pub(crate) use batches::{BatchPermit, answer_each};
