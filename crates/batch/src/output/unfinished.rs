//! Files that are being written beside their target, and vanish unless they are finished.
//!
//! # Invariants
//! - W1: a target is as it was before, or whole: it is replaced by a rename alone, after all of the
//!   new content has reached the disk. A target that is finished stays so if the machine fails.
//! - W2: an error, SIGINT, SIGTERM, SIGHUP and SIGQUIT leave no unfinished file behind. A signal waits
//!   for a rename in flight, and one that was ignored at the start stays ignored. A file beyond the limit of the
//!   process is an error, not SIGXFSZ.
//! - W3: of several files of one command none is put in place before all of them are complete.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use parking_lot::{Mutex, MutexGuard};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use tempfile::{TempDir, TempPath};

/// All unfinished files of this process: a signal takes and so removes them.
static UNFINISHED: Mutex<Vec<TempPath>> = Mutex::new(Vec::new());

/// All unfinished folders of this process, likewise. Taken after the files, if both are.
static UNFINISHED_FOLDERS: Mutex<Vec<TempDir>> = Mutex::new(Vec::new());

/// Whether a thread waits for signals.
static WATCHED: Mutex<bool> = Mutex::new(false);

/// The signals that end the process and are watched.
const ENDING: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// The permissions of a new file, before the umask.
const NEW_FILE_MODE: u32 = 0o666;

/// The permissions of a new folder, before the umask.
const NEW_FOLDER_MODE: u32 = 0o777;

/// A file beside its target.
pub(super) struct Unfinished {
    path: PathBuf,
    target: PathBuf,
}

impl Unfinished {
    /// Makes an empty file in the target's folder, with the target's permissions if it exists.
    pub(super) fn create(target: PathBuf) -> io::Result<(Self, File)> {
        once(&WATCHED, watch_signals)?;
        let folder = target.parent().unwrap_or(Path::new("."));
        let mode = Permissions::from_mode(NEW_FILE_MODE);
        // Held until the file is listed: a signal now finds it.
        let mut all = unfinished();
        let new = tempfile::Builder::new()
            .prefix(".simshard-")
            .permissions(mode)
            .tempfile_in(folder)?;
        if let Ok(old) = fs::metadata(&target) {
            new.as_file().set_permissions(old.permissions())?;
        }
        let (file, path) = new.into_parts();
        let made = Self {
            path: path.to_path_buf(),
            target,
        };
        all.push(path);
        Ok((made, file))
    }

    /// Puts the file, which must be complete, in its target's place.
    pub(super) fn finish(self) -> io::Result<()> {
        let mut all = unfinished();
        let Some(path) = self.take(&mut all) else {
            return Err(io::ErrorKind::Interrupted.into());
        };
        path.persist(&self.target)?;
        drop(all);
        make_last(&self.target)
    }

    fn take(&self, all: &mut Vec<TempPath>) -> Option<TempPath> {
        let place = all.iter().position(|path| **path == *self.path)?;
        Some(all.swap_remove(place))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        drop(self.take(&mut unfinished()));
    }
}

/// A folder beside its target.
pub(super) struct UnfinishedFolder {
    path: PathBuf,
    target: PathBuf,
}

impl UnfinishedFolder {
    /// Makes an empty folder in the target's folder.
    pub(super) fn create(target: PathBuf) -> io::Result<Self> {
        once(&WATCHED, watch_signals)?;
        let above = target.parent().unwrap_or(Path::new("."));
        // Held until the folder is listed: a signal now finds it.
        let mut all = UNFINISHED_FOLDERS.lock();
        let mut new = tempfile::Builder::new();
        new.prefix(".simshard-")
            .permissions(Permissions::from_mode(NEW_FOLDER_MODE));
        let new = new.tempdir_in(above)?;
        let path = new.path().to_path_buf();
        all.push(new);
        Ok(Self { path, target })
    }

    /// Where it is until it is finished.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a file in it, and the folders above that.
    pub(super) fn create_file(&self, name: &Path) -> io::Result<File> {
        let path = self.path.join(name);
        // A signal does not remove the folder meanwhile, and no file is made after that.
        let _all = UNFINISHED_FOLDERS.lock();
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        File::create_new(path)
    }

    /// Puts the folder, which must be complete, in its target's place, which is free or an empty
    /// folder.
    pub(super) fn finish(self) -> io::Result<()> {
        let mut all = UNFINISHED_FOLDERS.lock();
        let Some(folder) = self.take(&mut all) else {
            return Err(io::ErrorKind::Interrupted.into());
        };
        fs::rename(folder.path(), &self.target)?;
        // There is nothing left to remove by that name.
        let _ = folder.keep();
        drop(all);
        make_last(&self.target)
    }

    fn take(&self, all: &mut Vec<TempDir>) -> Option<TempDir> {
        let place = all.iter().position(|folder| folder.path() == self.path)?;
        Some(all.swap_remove(place))
    }
}

impl Drop for UnfinishedFolder {
    fn drop(&mut self) {
        drop(self.take(&mut UNFINISHED_FOLDERS.lock()));
    }
}

/// Makes the name of a target last. That takes leave to read its folder, and not only to write in it.
fn make_last(target: &Path) -> io::Result<()> {
    let folder = target.parent().unwrap_or(Path::new("."));
    match File::open(folder) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        opened => opened?.sync_all(),
    }
}

fn unfinished() -> MutexGuard<'static, Vec<TempPath>> {
    UNFINISHED.lock()
}

/// Does something unless it is `done`. What fails is not done: the next caller tries it again.
fn once(done: &Mutex<bool>, action: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let mut done = done.lock();
    if !*done {
        action()?;
        *done = true;
    }
    Ok(())
}

/// Sees to it that a signal that ends the process removes unfinished files first.
fn watch_signals() -> io::Result<()> {
    let ignored = ignored_signals(&fs::read_to_string("/proc/self/status").unwrap_or_default());
    let heeded = |&signal: &i32| ignored >> (signal - 1) & 1 == 0;
    let mut signals = Signals::new(ENDING.into_iter().filter(heeded))?;
    // By default it ends the process. Once it is caught, the write fails instead.
    flag::register(SIGXFSZ, Arc::default())?;
    let watch = move || {
        for signal in signals.forever() {
            // Never released: nothing is finished or begun from now on.
            let mut all = unfinished();
            all.clear();
            let mut folders = UNFINISHED_FOLDERS.lock();
            folders.clear();
            let _ = emulate_default_handler(signal);
        }
    };
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(watch)?;
    Ok(())
}

/// The signals that a process ignores, signal 1 in the lowest bit, by its `/proc/PID/status`. None
/// where that does not say it.
fn ignored_signals(status: &str) -> u64 {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// W2: a file is never made on the word of a watch that failed to begin.
    #[test]
    fn what_failed_once_is_tried_again_and_what_is_done_is_not() {
        let done = Mutex::new(false);
        assert!(once(&done, || Err(io::ErrorKind::OutOfMemory.into())).is_err());
        let mut tried = 0;
        for _ in 0..2 {
            once(&done, || {
                tried += 1;
                Ok(())
            })
            .unwrap();
        }
        assert_eq!(tried, 1);
    }

    #[test]
    fn ignored_signals_are_read_from_the_status() {
        let status = "Name:\tx\nSigBlk:\t00000000000000ff\nSigIgn:\t0000000000001003\n";
        assert_eq!(ignored_signals(status), 0x1003);
        for unknown in ["", "SigIgn:", "SigIgn:\tno mask\n", "Name:\tSigIgn:\t1\n"] {
            assert_eq!(ignored_signals(unknown), 0, "{unknown:?}");
        }
    }
}
