//! The log: what was acknowledged stands here, on disk, before anything else is done with it.
//!
//! ```text
//! append ─ encode ─► queue ─ batch ─► write, fdatasync ─► sink          one thread writes, another delivers;
//!                      └ the next one gathers meanwhile                 an idle log writes at once
//!
//! file   | header | frame | frame | frame | mark | zeros ...            a frame is a record
//! ```
//!
//! Every frame says how far its file was on disk when it was written. That tells a write which was cut off by
//! a crash, and never acknowledged, from damage to what was acknowledged: the first goes, the second is refused.
//! `FORMAT.md` describes the bytes.
//!
//! | module | job |
//! |---|---|
//! | `record`, `frame`, `tail` | pure: bytes, and the verdict on what stands behind the last sound frame |
//! | `file` | the files: their names, the first of them, and which there are |
//! | `recover` | reading a log back |
//! | `appender` | the open end: batches, marks, shortages, new files |
//! | `queue`, `writer` | group commit |
//! | `error` | what can go wrong |
//!
//! # Invariants
//! - L1: what the sink hears is committed is on disk, in order of sequence, and recovery finds it.
//! - L2: recovery finds a prefix of what was appended, byte for byte, or refuses.
//! - L3: what a later frame, mark or file shows to have been on disk is never cut off.
//! - L4: after a sync or write has failed nothing is written, synced or acknowledged any more.
//! - L5: what was refused for lack of space, or of file descriptors, never shows up, and what comes later is written
//!   once there is enough.
//! - L6: all that queues during a sync goes out with the next one, as far as a batch reaches.
//! - L7: a file begins only when all of the one before it is on disk.
//! - L8: what waits is bounded, and nothing is allocated because damaged bytes say so.
//! - L9: trimming deletes only files without a needed record. Recovery refuses a log without files, a log with a gap
//!   between two files, and a log that begins after the first needed record. It also refuses a log that ends before
//!   that record, unless it ends right before it. Otherwise it does not notice that the newest files are gone.
//! - L10: every accepted ticket comes back once. If a thread panics, the process ends, so no caller waits for it.
//! - L11: what recovery found is on disk when it returns, even if a sync of it had failed before.

mod appender;
mod error;
mod file;
mod frame;
mod queue;
mod record;
mod recover;
mod tail;
#[cfg(test)]
pub(crate) mod tests;
mod writer;

pub(crate) use appender::LogOptions;
#[cfg(test)]
pub(crate) use appender::{Appender, Fault};
pub(crate) use error::LogError;
pub(crate) use file::{begin, has_begun};
pub(crate) use record::Record;
pub(crate) use recover::{recover, survey};
pub(crate) use tail::Tail;
pub use tail::{AbruptEnd, Torn};
pub(crate) use writer::{AppendError, Committed, Log, Sink};
