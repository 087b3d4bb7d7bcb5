//! The corpora file on disk: read whole, changed under a lock, replaced by rename.
//!
//! A change is: take the lock, read, decide, write a file beside, fsync it, rename
//! it into place, fsync the folder, release the lock. Reads need no lock, because
//! a rename leaves them either the old file or the new one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use simshard_topology::CorpusUid;

use super::corpora_format::{self, Corpora, FormatError};
use crate::corpus::{CorpusName, CorpusRecord};
use crate::store::MetadataError;

/// The corpora file and its companions. Clones are handles on the same file.
#[derive(Debug, Clone)]
pub(super) struct CorporaFile {
    paths: Arc<Paths>,
}

#[derive(Debug)]
struct Paths {
    corpora: PathBuf,
    /// The next version of the file while it is written.
    next: PathBuf,
    /// Locked during a change. A file of its own, since a rename replaces the other.
    lock: PathBuf,
    folder: PathBuf,
}

impl CorporaFile {
    /// The corpora file that belongs to this layout file.
    pub(super) fn beside(layout: &Path) -> Self {
        let folder = match layout.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            Some(_) | None => PathBuf::from("."),
        };
        let paths = Paths {
            corpora: super::FileStore::corpora_file(layout),
            next: layout.with_extension("corpora.toml.next"),
            lock: layout.with_extension("corpora.lock"),
            folder,
        };
        Self {
            paths: Arc::new(paths),
        }
    }

    /// All corpora; none if the file does not exist yet.
    pub(super) fn read(&self) -> Result<Corpora, MetadataError> {
        let path = &self.paths.corpora;
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Corpora::new()),
            Err(reason) => {
                return Err(MetadataError::Unreadable {
                    path: path.to_owned(),
                    reason,
                });
            }
        };
        corpora_format::parse(&text).map_err(|error| match error {
            FormatError::UnknownVersion { found } => MetadataError::UnknownCorporaVersion {
                path: path.to_owned(),
                found,
            },
            FormatError::Corrupt {
                line,
                column,
                message,
            } => MetadataError::CorruptCorpora {
                path: path.to_owned(),
                line,
                column,
                message,
            },
        })
    }

    /// Adds the corpus if its name is free.
    pub(super) fn create_corpus(&self, record: CorpusRecord) -> Result<(), MetadataError> {
        let _lock = self.lock()?;
        let mut corpora = self.read()?;
        if let Some(taken) = corpora.get(&record.name) {
            return Err(MetadataError::AlreadyExists {
                uid: taken.uid,
                name: record.name,
            });
        }
        corpora.insert(record.name.clone(), record);
        self.replace(&corpora)
    }

    /// Removes the corpus if it is still this one.
    pub(super) fn delete_corpus(
        &self,
        name: &CorpusName,
        uid: CorpusUid,
    ) -> Result<(), MetadataError> {
        let _lock = self.lock()?;
        let mut corpora = self.read()?;
        if corpora.get(name).is_none_or(|record| record.uid != uid) {
            return Err(MetadataError::NotFound {
                name: name.clone(),
                uid,
            });
        }
        corpora.remove(name);
        self.replace(&corpora)
    }

    /// Waits until nobody else changes the corpora. Dropping the file, or the end
    /// of the process, lets the next one in.
    fn lock(&self) -> Result<File, MetadataError> {
        let path = &self.paths.lock;
        OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(false)
            .open(path)
            .and_then(|file| file.lock().map(|()| file))
            .map_err(|reason| unwritable(path, reason))
    }

    /// Makes `corpora` the content of the file. The lock must be held.
    fn replace(&self, corpora: &Corpora) -> Result<(), MetadataError> {
        let paths = &self.paths;
        let text = corpora_format::render(corpora)
            .map_err(|error| unwritable(&paths.corpora, io::Error::other(error)))?;
        let moved = write_durably(&paths.next, &text)
            .and_then(|()| fs::rename(&paths.next, &paths.corpora));
        if let Err(reason) = moved {
            // Only tidiness: a leftover is overwritten by the next change.
            let _leftover = fs::remove_file(&paths.next);
            return Err(unwritable(&paths.corpora, reason));
        }
        File::open(&paths.folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|reason| MetadataError::NotDurable {
                path: paths.corpora.clone(),
                reason,
            })
    }
}

fn write_durably(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn unwritable(path: &Path, reason: io::Error) -> MetadataError {
    MetadataError::Unwritable {
        path: path.to_owned(),
        reason,
    }
}
