//! Why results cannot be written.

use std::io;
use std::path::PathBuf;

/// Why results cannot be written. Each message is complete but for the cause below it.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The output is one of the inputs, perhaps by another name.
    #[error("{output} is the input {input} as well: choose another output")]
    IsInput {
        /// The output.
        output: String,
        /// The input, as it was given.
        input: String,
    },
    /// The output lies in a folder whose files are the input.
    #[error("{output} is in the folder {} that is read: choose another output", folder.display())]
    InInput {
        /// The output.
        output: String,
        /// The folder.
        folder: PathBuf,
    },
    /// The output cannot be opened.
    #[error("cannot write {output}: {reason}")]
    Refused {
        /// The output.
        output: String,
        /// The reason.
        reason: String,
    },
    /// Writing failed midway.
    #[error("cannot write {output}")]
    Failed {
        /// The output.
        output: String,
        /// The operating system's reason.
        #[source]
        error: io::Error,
    },
}

impl OutputError {
    /// Says which output it was that failed.
    pub fn failed(output: String) -> impl Fn(io::Error) -> Self {
        move |error| Self::Failed {
            output: output.clone(),
            error,
        }
    }

    /// Whether the arguments are to blame: then nothing was done.
    #[must_use]
    pub fn is_bad_argument(&self) -> bool {
        match self {
            Self::IsInput { .. } | Self::InInput { .. } | Self::Refused { .. } => true,
            Self::Failed { .. } => false,
        }
    }
}
