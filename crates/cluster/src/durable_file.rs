//! A value in a file that processes of one machine share: read whole, changed under a lock, replaced by rename.
//!
//! A change reads, fsyncs the folder unless that was done for what was read, and decides. Then it writes a file of its
//! own beside, and fsyncs that. Only now it takes the lock. If the file still holds what was read, it renames its own
//! into place; else it decides anew. It releases the lock, and fsyncs the folder. So a process that is stopped is
//! unlikely to hold the lock meanwhile. A change that loses several times in a row holds the lock from the start.
//!
//! Reads need no lock, because a rename leaves them either the old file or the new one. What was read last is kept with
//! what it says, and is not parsed again while the file has the same bytes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use uuid::Uuid;

/// How often a change is tried without the lock.
const UNLOCKED_TRIES: usize = 4;

/// What a file holds. A file that is missing holds the default.
pub(crate) trait Content: Clone + Default + PartialEq {
    /// Why bytes hold no such value.
    type Damage;

    /// Understands the bytes of a file. No file is empty.
    fn parse(bytes: &[u8]) -> Result<Self, Self::Damage>;

    /// The text of a file that holds this.
    fn render(&self) -> io::Result<String>;
}

/// Why a file could not be read or changed. `D` says what is wrong with its content.
#[derive(Debug)]
pub(crate) enum FileError<D> {
    /// The bytes cannot be read.
    Unreadable { path: PathBuf, reason: io::Error },
    /// The bytes are no value.
    Damaged { path: PathBuf, damage: D },
    /// Nothing has changed.
    Unwritable { path: PathBuf, reason: io::Error },
    /// The change is made, and may be lost by a power cut.
    NotDurable { path: PathBuf, reason: io::Error },
}

/// The file and its companions. Clones are handles on the same file.
#[derive(Debug, Clone)]
pub(crate) struct DurableFile<C> {
    paths: Arc<Paths>,
    last: Arc<Mutex<Understood<C>>>,
}

/// The bytes of the file when it was last read or written, and what they say. Empty bytes mean the default.
#[derive(Debug, Default)]
struct Understood<C> {
    bytes: Vec<u8>,
    content: Arc<C>,
    /// Whether this process has synced the folder since.
    is_durable: bool,
}

#[derive(Debug)]
struct Paths {
    file: PathBuf,
    /// Locked while a change replaces the file. A file of its own, since a rename replaces the other.
    lock: PathBuf,
    folder: PathBuf,
}

impl<C: Content> DurableFile<C> {
    /// The file at `file`, guarded by the file at `lock`. Both appear with the first change.
    pub(crate) fn new(file: PathBuf, lock: PathBuf) -> Self {
        let folder = match file.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            Some(_) | None => PathBuf::from("."),
        };
        let paths = Paths { file, lock, folder };
        Self {
            paths: Arc::new(paths),
            last: Arc::default(),
        }
    }

    /// Where the file is.
    pub(crate) fn path(&self) -> &Path {
        &self.paths.file
    }

    /// What the file holds.
    pub(crate) fn read(&self) -> Result<Arc<C>, FileError<C::Damage>> {
        let path = &self.paths.file;
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Arc::default()),
            Err(reason) => {
                return Err(FileError::Unreadable {
                    path: path.to_owned(),
                    reason,
                });
            }
        };
        if let Some(content) = self.understood(&bytes) {
            return Ok(content);
        }
        let content = C::parse(&bytes).map_err(|damage| FileError::Damaged {
            path: path.to_owned(),
            damage,
        })?;
        let content = Arc::new(content);
        self.understand(bytes, Arc::clone(&content));
        Ok(content)
    }

    /// Makes a change, unless it is refused or leaves all as it is. It may be decided several times: the last counts.
    pub(crate) fn change<T, E: From<FileError<C::Damage>>>(
        &self,
        mut change: impl FnMut(&mut C) -> Result<T, E>,
    ) -> Result<T, E> {
        for _ in 0..UNLOCKED_TRIES {
            let (before, after, changed) = self.decide(&mut change)?;
            if after == *before {
                return Ok(changed);
            }
            let next = self.write_next(after)?;
            let lock = self.lock()?;
            if self.read()? == before {
                let content = self.put_in_place(next)?;
                drop(lock);
                self.make_durable(&content)?;
                return Ok(changed);
            }
        }
        let lock = self.lock()?;
        let (before, after, changed) = self.decide(&mut change)?;
        if after != *before {
            let content = self.put_in_place(self.write_next(after)?)?;
            drop(lock);
            self.make_durable(&content)?;
        }
        Ok(changed)
    }

    /// What the file holds, what it is to hold, and what the change says of that. Survives a power cut.
    fn decide<T, E: From<FileError<C::Damage>>>(
        &self,
        change: &mut impl FnMut(&mut C) -> Result<T, E>,
    ) -> Result<(Arc<C>, C, T), E> {
        let before = self.read()?;
        self.make_durable(&before)?;
        let mut after = C::clone(&before);
        let changed = change(&mut after)?;
        Ok((before, after, changed))
    }

    /// The value in these bytes, if these equal those parsed last. No file is empty, so none is mistaken for
    /// one that is missing.
    fn understood(&self, bytes: &[u8]) -> Option<Arc<C>> {
        let last = self.last.lock();
        let is_same = !bytes.is_empty() && last.bytes == bytes;
        is_same.then(|| Arc::clone(&last.content))
    }

    fn understand(&self, bytes: Vec<u8>, content: Arc<C>) {
        let mut last = self.last.lock();
        *last = Understood {
            bytes,
            content,
            is_durable: false,
        };
    }

    /// Has a value that was just read or put in place survive a power cut: the last rename may not have been synced.
    fn make_durable(&self, content: &Arc<C>) -> Result<(), FileError<C::Damage>> {
        let is_it = |last: &Understood<C>| Arc::ptr_eq(&last.content, content);
        {
            let last = self.last.lock();
            if last.is_durable && is_it(&last) {
                return Ok(());
            }
        }
        self.sync_folder()?;
        let mut last = self.last.lock();
        last.is_durable = is_it(&last);
        Ok(())
    }

    /// Waits for the lock on changes. Dropping the file, or the end of the process, releases it.
    fn lock(&self) -> Result<File, FileError<C::Damage>> {
        let path = &self.paths.lock;
        OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(false)
            .open(path)
            .and_then(|file| file.lock().map(|()| file))
            .map_err(|reason| unwritable(path, reason))
    }

    /// Writes `content` into a file of its own, durably.
    fn write_next(&self, content: C) -> Result<Next<C>, FileError<C::Damage>> {
        let path = &self.paths.file;
        let text = content.render();
        let text = text.map_err(|reason| unwritable(path, reason))?;
        let mut name = path.clone().into_os_string();
        name.push(format!(".next-{}", Uuid::new_v4()));
        let next = Next {
            path: name.into(),
            bytes: text.into_bytes(),
            content: Arc::new(content),
        };
        let written = write_durably(&next.path, &next.bytes);
        written.map_err(|reason| unwritable(path, reason))?;
        Ok(next)
    }

    /// Makes what was written the content of the file. The lock must be held.
    fn put_in_place(&self, mut next: Next<C>) -> Result<Arc<C>, FileError<C::Damage>> {
        let path = &self.paths.file;
        fs::rename(&next.path, path).map_err(|reason| unwritable(path, reason))?;
        let content = Arc::clone(&next.content);
        self.understand(std::mem::take(&mut next.bytes), Arc::clone(&content));
        Ok(content)
    }

    fn sync_folder(&self) -> Result<(), FileError<C::Damage>> {
        let paths = &self.paths;
        File::open(&paths.folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|reason| FileError::NotDurable {
                path: paths.file.clone(),
                reason,
            })
    }
}

/// The next version of a file, written beside it. Dropped, it leaves nothing behind.
struct Next<C> {
    path: PathBuf,
    bytes: Vec<u8>,
    content: Arc<C>,
}

impl<C> Drop for Next<C> {
    fn drop(&mut self) {
        // It is not there once it is in place. Else only tidiness: nothing reads it.
        let _leftover = fs::remove_file(&self.path);
    }
}

fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn unwritable<D>(path: &Path, reason: io::Error) -> FileError<D> {
    FileError::Unwritable {
        path: path.to_owned(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number in a file.
    #[derive(Debug, Clone, Default, PartialEq)]
    struct Number(u32);

    impl Content for Number {
        type Damage = std::num::ParseIntError;

        fn parse(bytes: &[u8]) -> Result<Self, Self::Damage> {
            String::from_utf8_lossy(bytes).parse().map(Self)
        }

        fn render(&self) -> io::Result<String> {
            Ok(self.0.to_string())
        }
    }

    type Error = FileError<std::num::ParseIntError>;

    /// The file in a folder of this name. A folder that is missing fails each sync.
    fn synced(file: &DurableFile<Number>, folder: &Path) -> DurableFile<Number> {
        let paths = Paths {
            file: file.paths.file.clone(),
            lock: file.paths.lock.clone(),
            folder: folder.to_owned(),
        };
        DurableFile {
            paths: Arc::new(paths),
            last: Arc::default(),
        }
    }

    /// FS11. It holds for changes that find nothing to do, too.
    #[test]
    fn a_repeated_change_confirms_nothing_before_the_folder_is_synced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("number");
        let file = DurableFile::new(path, folder.path().join("lock"));
        let failing = synced(&file, &folder.path().join("missing"));
        // The state after a rename whose sync failed.
        failing
            .put_in_place(failing.write_next(Number(7)).unwrap())
            .unwrap();
        let set = |file: &DurableFile<Number>| {
            file.change(|number| {
                *number = Number(7);
                Ok::<(), Error>(())
            })
        };
        for _ in 0..2 {
            assert!(matches!(set(&failing), Err(FileError::NotDurable { .. })));
            set(&file).unwrap();
        }
    }
    fn number_in(folder: &Path) -> DurableFile<Number> {
        DurableFile::new(folder.join("number"), folder.join("lock"))
    }

    /// A process that is stopped while it decides and writes must not stop the others.
    #[test]
    fn a_change_is_decided_and_written_without_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let file = number_in(folder.path());
        let other = number_in(folder.path());
        let mut decided = 0;
        let add = |number: &mut Number| {
            decided += 1;
            number.0 += 1;
            if decided == 1 {
                other.change(|number| {
                    number.0 += 10;
                    Ok::<(), Error>(())
                })?;
            }
            Ok::<(), Error>(())
        };
        file.change(add).unwrap();
        assert_eq!((decided, file.read().unwrap().0), (2, 11));
        let names = fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["lock", "number"]);
    }

    #[test]
    fn changes_of_several_processes_are_all_made() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let file = number_in(folder.path());
                    for _ in 0..25 {
                        file.change(|number| {
                            number.0 += 1;
                            Ok::<(), Error>(())
                        })
                        .unwrap();
                    }
                });
            }
        });
        assert_eq!(number_in(folder.path()).read().unwrap().0, 100);
    }
}
