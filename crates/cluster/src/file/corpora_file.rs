//! The corpora file on disk: read whole, changed under a lock, replaced by rename.
//!
//! A change is: take the lock, read, fsync the folder, decide, write a file beside, fsync it, rename
//! it into place, fsync the folder, release the lock. Reads need no lock, because
//! a rename leaves them either the old file or the new one. What was read last is kept with what it says, and is
//! not parsed again while the file has the same bytes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::corpora_format::{self, FormatError};
use crate::corpora::Corpora;
use crate::store::MetadataError;

/// The corpora file and its companions. Clones are handles on the same file.
#[derive(Debug, Clone)]
pub(super) struct CorporaFile {
    paths: Arc<Paths>,
    last: Arc<Mutex<Understood>>,
}

/// The bytes of the file when it was last read or written, and what they say. Nothing says: no corpora.
#[derive(Debug, Default)]
struct Understood {
    bytes: Vec<u8>,
    corpora: Arc<Corpora>,
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
            last: Arc::default(),
        }
    }

    /// All corpora; none, at revision 0, if the file does not exist.
    pub(super) fn read(&self) -> Result<Arc<Corpora>, MetadataError> {
        let path = &self.paths.corpora;
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Arc::default()),
            Err(reason) => {
                return Err(MetadataError::Unreadable {
                    path: path.to_owned(),
                    reason,
                });
            }
        };
        if let Some(corpora) = self.understood(&bytes) {
            return Ok(corpora);
        }
        let corpora = corpora_format::parse(&bytes).map_err(|error| self.refusal(error))?;
        let corpora = Arc::new(corpora);
        self.understand(bytes, Arc::clone(&corpora));
        Ok(corpora)
    }

    /// Makes a change, unless it is refused or leaves all as it is.
    pub(super) fn change<T>(
        &self,
        change: impl FnOnce(&mut Corpora) -> Result<T, MetadataError>,
    ) -> Result<T, MetadataError> {
        let _lock = self.lock()?;
        let before = self.read()?;
        // The state that this change reads must survive a power cut: the last rename may not have been synced.
        self.sync_folder()?;
        let mut corpora = Corpora::clone(&before);
        let changed = change(&mut corpora)?;
        if corpora.revision() != before.revision() {
            self.replace(corpora)?;
        }
        Ok(changed)
    }

    /// The corpora in these bytes, if these equal those parsed last. No file is empty, so none is mistaken for
    /// one that is missing.
    fn understood(&self, bytes: &[u8]) -> Option<Arc<Corpora>> {
        let last = self.last.lock();
        let is_same = !bytes.is_empty() && last.bytes == bytes;
        is_same.then(|| Arc::clone(&last.corpora))
    }

    fn understand(&self, bytes: Vec<u8>, corpora: Arc<Corpora>) {
        let mut last = self.last.lock();
        *last = Understood { bytes, corpora };
    }

    fn refusal(&self, error: FormatError) -> MetadataError {
        let path = self.paths.corpora.clone();
        match error {
            FormatError::UnknownVersion { found } => {
                MetadataError::UnknownCorporaVersion { path, found }
            }
            FormatError::Corrupt(damage) => MetadataError::CorruptCorpora { path, damage },
        }
    }

    /// Waits for the lock on changes of the corpora. Dropping the file, or the end
    /// of the process, releases it.
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
    fn replace(&self, corpora: Corpora) -> Result<(), MetadataError> {
        let paths = &self.paths;
        let text = corpora_format::render(&corpora)
            .map_err(|error| unwritable(&paths.corpora, io::Error::other(error)))?;
        let moved = write_durably(&paths.next, &text)
            .and_then(|()| fs::rename(&paths.next, &paths.corpora));
        if let Err(reason) = moved {
            // Only tidiness: a leftover is overwritten by the next change.
            let _leftover = fs::remove_file(&paths.next);
            return Err(unwritable(&paths.corpora, reason));
        }
        self.understand(text.into_bytes(), Arc::new(corpora));
        self.sync_folder()
    }

    fn sync_folder(&self) -> Result<(), MetadataError> {
        let paths = &self.paths;
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

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::{CorpusName, CorpusRecord, CorpusState, random_corpus_uid};

    fn corpus(name: &str) -> CorpusRecord {
        CorpusRecord {
            name: CorpusName::new(name).unwrap(),
            uid: random_corpus_uid(),
            blocks: 5,
            distance: 3,
            recipe: "words-v1".to_owned(),
            create_time: SystemTime::UNIX_EPOCH,
            state: CorpusState::Live,
        }
    }

    /// The file in a folder of this name. A folder that is missing fails each sync.
    fn synced(file: &CorporaFile, folder: &Path) -> CorporaFile {
        let paths = Paths {
            corpora: file.paths.corpora.clone(),
            next: file.paths.next.clone(),
            lock: file.paths.lock.clone(),
            folder: folder.to_owned(),
        };
        CorporaFile {
            paths: Arc::new(paths),
            last: Arc::default(),
        }
    }

    /// FS11.
    #[test]
    fn a_repeated_change_confirms_nothing_before_the_folder_is_synced() {
        let folder = tempfile::tempdir().unwrap();
        let file = CorporaFile::beside(&folder.path().join("cluster.toml"));
        let failing = synced(&file, &folder.path().join("missing"));
        let record = corpus("c");
        // The state after a rename whose sync failed.
        let mut corpora = Corpora::default();
        corpora.create(record.clone(), 9).unwrap();
        let unsynced = failing.replace(corpora);
        assert!(matches!(unsynced, Err(MetadataError::NotDurable { .. })));
        let create = |file: &CorporaFile| file.change(|all| all.create(corpus("c"), 9));
        let delete =
            |file: &CorporaFile| file.change(|all| all.begin_deletion(&record.name, &record.uid));
        for _ in 0..2 {
            let (created, deleted) = (create(&failing), delete(&failing));
            assert!(matches!(created, Err(MetadataError::NotDurable { .. })));
            assert!(matches!(deleted, Err(MetadataError::NotDurable { .. })));
            let created = create(&file);
            assert!(matches!(created, Err(MetadataError::AlreadyExists { .. })));
            delete(&file).unwrap();
        }
    }
}
