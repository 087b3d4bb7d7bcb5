//! Why the messages of a file end early.

use std::io;

use super::flat::Malformed;

/// A file that is damaged, or cannot be read on.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names say what is meant")]
pub enum Fault {
    Malformed(&'static str),
    Unreadable(io::Error),
}

impl From<Malformed> for Fault {
    fn from(_: Malformed) -> Self {
        Self::Malformed("a message leads out of its bytes")
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return Self::Malformed("it ends within a message");
        }
        Self::Unreadable(error)
    }
}
