//! The file `lock`: one process uses a directory, or any number look at it.

use std::fs::TryLockError;
use std::io;

use super::OpenError;
use super::open::failed;
use crate::directory::{Directory, Opening, StoredFile};

/// The name of the file.
pub(super) const NAME: &str = "lock";

/// Keeps other processes out of a directory, as long as the file is open.
pub(super) fn lock(directory: &dyn Directory) -> Result<Box<dyn StoredFile>, OpenError> {
    let path = directory.path().join(NAME);
    let opened = directory.open(NAME, Opening::Create);
    let file = opened.map_err(failed("open", &path))?;
    if let Err(error) = file.try_lock() {
        // A reader leaves no note; a note that is there is of a process that has ended.
        let holder = match file.try_lock_shared() {
            Ok(()) => "one that inspects or verifies it".to_owned(),
            Err(_) => noted(directory),
        };
        return Err(not_locked(directory, error, holder));
    }
    // The note on the holder is for people; the lock itself does not depend on it.
    let note = format!("process {}\n", std::process::id());
    let cut = file.truncate(0);
    if let Err(error) = cut.and_then(|()| file.write_at(note.as_bytes(), 0)) {
        let path = path.display();
        tracing::warn!(%path, %error, "cannot note which process uses the directory");
    }
    Ok(file)
}

/// Keeps out who would use a directory that is looked at, and writes nothing: it may be read-only here, or
/// belong to another user. `None` if there is no file to lock.
pub(crate) fn lock_for_looking(
    directory: &dyn Directory,
) -> Result<Option<Box<dyn StoredFile>>, OpenError> {
    let file = match directory.open(NAME, Opening::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed("open", &directory.path().join(NAME)))?,
    };
    let locked = file.try_lock_shared();
    locked.map_err(|error| not_locked(directory, error, noted(directory)))?;
    Ok(Some(file))
}

/// Which process used the directory last, or does now.
fn noted(directory: &dyn Directory) -> String {
    let opened = directory.open(NAME, Opening::Read);
    let note = opened.and_then(|file| file.read(usize::MAX));
    let note = String::from_utf8(note.unwrap_or_default());
    note.unwrap_or_default().trim().to_owned()
}

fn not_locked(directory: &dyn Directory, error: TryLockError, holder: String) -> OpenError {
    let path = directory.path().to_owned();
    match error {
        TryLockError::WouldBlock => OpenError::Locked { path, holder },
        TryLockError::Error(source) => failed("lock", &path.join(NAME))(source),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::process::Command;

    use super::*;
    use crate::directory::DiskDirectory;

    #[test]
    fn who_looks_and_who_uses_a_directory_keep_each_other_out() {
        let directory = tempfile::tempdir().unwrap();
        let directory = &DiskDirectory::open(directory.path()).unwrap();
        let user = lock(directory).unwrap();
        let process = format!("in use by another process (process {})", std::process::id());
        for refused in [lock(directory).err(), lock_for_looking(directory).err()] {
            let refused = refused.unwrap().to_string();
            assert!(refused.contains(&process), "{refused}");
        }
        drop(user);

        let look = || lock_for_looking(directory).unwrap().unwrap();
        let looking = [look(), look()];
        let refused = lock(directory).unwrap_err().to_string();
        let process = "in use by another process (one that inspects or verifies it)";
        assert!(refused.contains(process), "{refused}");
        drop(looking);
        lock(directory).unwrap();
    }

    #[test]
    fn who_looks_makes_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let opened = DiskDirectory::open(directory.path()).unwrap();
        assert!(lock_for_looking(&opened).unwrap().is_none());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_that_cannot_be_locked_for_another_reason_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "no directory").unwrap();
        let file = DiskDirectory::open(&file).unwrap();
        for refused in [lock(&file).err(), lock_for_looking(&file).err()] {
            let refused = refused.unwrap().to_string();
            assert!(refused.starts_with("cannot open"), "{refused}");
        }
    }

    /// As on a disk that is full.
    #[test]
    fn a_directory_is_locked_even_if_it_cannot_be_noted_by_whom() {
        let directory = tempfile::tempdir().unwrap();
        // It can be locked, and not be cut.
        let pipe = directory.path().join(NAME);
        let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let opened = DiskDirectory::open(directory.path()).unwrap();
        let _user = lock(&opened).unwrap();
        let other = OpenOptions::new().read(true).write(true).open(&pipe);
        assert!(other.unwrap().try_lock().is_err());
    }
}
