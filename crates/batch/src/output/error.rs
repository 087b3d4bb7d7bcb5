//! Why results cannot be written.

use std::io;
use std::path::PathBuf;

/// Why results cannot be written. Each message is complete but for the cause below it.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum OutputError {
    #[error("{output} is the input {input} as well: choose another output")]
    IsInput { output: String, input: String },
    #[error("{output} is in the folder {} that is read: choose another output", folder.display())]
    InInput { output: String, folder: PathBuf },
    #[error("cannot write {output}: {reason}")]
    Refused { output: String, reason: String },
    #[error("cannot write {output}")]
    Failed {
        output: String,
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
