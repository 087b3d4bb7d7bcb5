//! The file of a checkpoint: read once, replaced as the load goes on.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use simshard_batch::{OutputError, Replaced};
use simshard_input::Position;

use super::{Checkpoint, Subject, Unusable};

/// How often the checkpoint is written. A killed load repeats at most the documents of this time.
const INTERVAL: Duration = Duration::from_secs(1);

/// Why a checkpoint cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckpointError {
    #[error(
        "{file} is the checkpoint of another load ({}): delete it to start anew, or name another \
         file",
        differences.join("; ")
    )]
    OtherLoad {
        file: String,
        differences: Vec<String>,
    },
    #[error(
        "the first {documents} documents are not those that the checkpoint {file} counts, though \
         their files look untouched: delete it to start anew"
    )]
    OtherDocuments { file: String, documents: u64 },
    #[error("{file} is no checkpoint, or damaged ({problem}): delete it to start anew")]
    Damaged { file: String, problem: String },
    #[error(
        "{file} is a checkpoint of version {version}, which this program does not know: use the \
         one that wrote it, or delete it to start anew"
    )]
    UnknownVersion { file: String, version: u64 },
    #[error("cannot read the checkpoint {file}: {error}")]
    Unreadable { file: String, error: io::Error },
    #[error("cannot keep the checkpoint")]
    Unwritable(#[from] OutputError),
    #[error("cannot write the checkpoint as JSON")]
    Json(#[from] serde_json::Error),
}

impl CheckpointError {
    /// Whether the arguments or the input are to blame: then nothing was done.
    pub(crate) fn is_bad_argument(&self) -> bool {
        match self {
            Self::OtherLoad { .. }
            | Self::OtherDocuments { .. }
            | Self::Damaged { .. }
            | Self::UnknownVersion { .. }
            | Self::Unreadable { .. } => true,
            // Of the former the cause says it.
            Self::Unwritable(_) | Self::Json(_) => false,
        }
    }
}

/// A checkpoint that is kept on disk.
#[derive(Debug)]
pub(crate) struct CheckpointFile {
    file: Replaced,
    checkpoint: Checkpoint,
    /// When it was written last with documents of this process in it.
    written: Option<Instant>,
}

impl CheckpointFile {
    /// The checkpoint at `path`, or a new one if there is none, of a load of this subject that reads
    /// `inputs`. Nothing is written yet.
    pub(crate) fn open(
        path: &Path,
        subject: Subject,
        inputs: &[PathBuf],
    ) -> Result<Self, CheckpointError> {
        let file = Replaced::at(path, inputs)?;
        let name = || file.name().to_owned();
        let bytes = file.read().map_err(|error| CheckpointError::Unreadable {
            file: name(),
            error,
        })?;
        let checkpoint = match bytes.as_deref().map(Checkpoint::parse) {
            None => Checkpoint::new(subject),
            Some(Ok(found)) if found.subject == subject => found,
            Some(Ok(other)) => {
                return Err(CheckpointError::OtherLoad {
                    file: name(),
                    differences: subject.differences(&other.subject),
                });
            }
            Some(Err(Unusable::Version(version))) => {
                return Err(CheckpointError::UnknownVersion {
                    file: name(),
                    version,
                });
            }
            Some(Err(Unusable::Damaged(problem))) => {
                return Err(CheckpointError::Damaged {
                    file: name(),
                    problem,
                });
            }
        };
        Ok(Self {
            file,
            checkpoint,
            written: None,
        })
    }

    /// Its name in messages.
    pub(crate) fn name(&self) -> &str {
        self.file.name()
    }

    /// The number of documents that are durable.
    pub(crate) fn documents(&self) -> u64 {
        self.checkpoint.position.documents
    }

    /// Whether the load is complete.
    pub(crate) fn is_complete(&self) -> bool {
        self.checkpoint.complete
    }

    /// Continues the load from `position` in the input. Refused unless the documents before it are
    /// those that the checkpoint counts. Writes the checkpoint, so that a file that cannot be written
    /// is reported before anything is inserted.
    pub(crate) fn go_on_from(&self, position: Position) -> Result<(), CheckpointError> {
        if position != self.checkpoint.position {
            return Err(CheckpointError::OtherDocuments {
                file: self.name().to_owned(),
                documents: self.documents(),
            });
        }
        self.write()
    }

    /// Notes that all before `position` is durable; writes it if that is due.
    pub(crate) fn advance(&mut self, position: Position) -> Result<(), CheckpointError> {
        self.checkpoint.position = position;
        if self
            .written
            .is_none_or(|written| written.elapsed() >= INTERVAL)
        {
            self.write()?;
            self.written = Some(Instant::now());
        }
        Ok(())
    }

    /// Notes that all is durable.
    pub(crate) fn complete(&mut self) -> Result<(), CheckpointError> {
        self.checkpoint.complete = true;
        self.write()
    }

    /// Writes what is known by now.
    pub(crate) fn write(&self) -> Result<(), CheckpointError> {
        Ok(self.file.replace(&self.checkpoint.to_json()?)?)
    }
}
