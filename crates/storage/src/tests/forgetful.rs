//! A directory in memory that forgets: it counts calls, fails at one of them, runs out of space, holds syncs up, and
//! can be looked at as a crash would leave it.
//!
//! A crash leaves any pieces of the bytes that were not synced, and any of the names that were not: a name is made,
//! changed or removed whole or not at all, as on file systems with a journal, but in any order.

mod content;
mod names;
mod tests;

use std::collections::BTreeMap;
use std::fs::TryLockError;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fastrand::Rng;
use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::io::Errno;

use crate::directory::{Directory, Opening, ReadAt, Space, StoredFile};
use content::Content;
use names::{Names, Node};

/// What goes wrong, at one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The call fails once, for lack of space.
    Full,
    /// The call fails once, as no more files may be open.
    NoFiles,
    /// The call fails once, for lack of memory.
    NoMemory,
    /// The call fails once, with an error of the device.
    Device,
    /// The machine stops: this call is half done, and all later ones fail.
    Crash,
    /// The call panics.
    Panic,
}

impl Trouble {
    fn error(self) -> io::Error {
        match self {
            Self::Full => ErrorKind::StorageFull.into(),
            Self::NoFiles => Errno::MFILE.into(),
            Self::NoMemory => Errno::NOMEM.into(),
            Self::Device | Self::Crash => io::Error::from_raw_os_error(5),
            Self::Panic => panic!("a test of what happens then"),
        }
    }
}

/// The directory, or a folder of it. Clones are the same one.
#[derive(Clone, Debug)]
pub(crate) struct ForgetfulDirectory {
    shared: Arc<(Mutex<State>, Condvar)>,
    path: PathBuf,
    folder: usize,
}

#[derive(Debug)]
struct State {
    /// By number; the first is the directory itself.
    folders: Vec<Names>,
    files: Vec<Content>,
    /// By file: how many have a lock on it, or -1 where one has it alone.
    locks: BTreeMap<usize, i32>,
    calls: usize,
    troubles: Vec<(usize, Trouble)>,
    failing_syncs: bool,
    space: Option<usize>,
    cannot_allocate: bool,
    syncs: usize,
    writes: usize,
    holds_syncs: bool,
    holds_whole_files: bool,
    /// Syncs of bytes or names.
    sync_points: usize,
    crash_at_sync: Option<usize>,
}

/// A file, opened.
#[derive(Debug)]
struct ForgetfulFile {
    directory: ForgetfulDirectory,
    number: usize,
    /// The lock that goes when the file is closed.
    lock: Mutex<Option<i32>>,
}

impl Default for ForgetfulDirectory {
    fn default() -> Self {
        Self::of(vec![Names::default()], Vec::new())
    }
}

impl ForgetfulDirectory {
    fn of(folders: Vec<Names>, files: Vec<Content>) -> Self {
        let state = State {
            folders,
            files,
            locks: BTreeMap::new(),
            calls: 0,
            troubles: Vec::new(),
            failing_syncs: false,
            space: None,
            cannot_allocate: false,
            syncs: 0,
            writes: 0,
            holds_syncs: false,
            holds_whole_files: false,
            sync_points: 0,
            crash_at_sync: None,
        };
        Self {
            shared: Arc::new((Mutex::new(state), Condvar::new())),
            path: "disk".into(),
            folder: 0,
        }
    }

    /// A directory with these files, all of them on disk.
    pub(crate) fn with(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let (mut names, mut contents) = (BTreeMap::new(), Vec::new());
        for (name, now) in files {
            names.insert(name, Node::File(contents.len()));
            contents.push(Content::on_disk(now));
        }
        Self::of(vec![Names::on_disk(names)], contents)
    }

    /// Lets a call fail, counted from 0 over all that change something.
    pub(crate) fn trouble_at(&self, call: usize, trouble: Trouble) {
        self.state().troubles.push((call, trouble));
    }

    /// Stops the machine at a sync of bytes or names, counted from 0 over all of them.
    pub(crate) fn crash_at_sync(&self, sync_point: usize) {
        self.state().crash_at_sync = Some(sync_point);
    }

    /// Lets every sync of bytes fail from now on.
    pub(crate) fn fail_syncs(&self) {
        self.state().failing_syncs = true;
    }

    /// Lets all files together have this many bytes.
    pub(crate) fn limit_space(&self, bytes: Option<usize>) {
        self.state().space = bytes;
    }

    pub(crate) fn forbid_allocation(&self) {
        self.state().cannot_allocate = true;
    }

    /// How often something was changed.
    pub(crate) fn calls(&self) -> usize {
        self.state().calls
    }

    /// How often bytes were written.
    pub(crate) fn writes(&self) -> usize {
        self.state().writes
    }

    /// How often bytes were synced, or began to be.
    pub(crate) fn syncs(&self) -> usize {
        self.state().syncs
    }

    /// Whether the machine has stopped.
    pub(crate) fn has_crashed(&self) -> bool {
        let state = self.state();
        let mut troubles = state.troubles.iter();
        troubles.any(|(at, trouble)| *trouble == Trouble::Crash && *at < state.calls)
    }

    /// Lets syncs of bytes wait until `release_syncs`.
    pub(crate) fn hold_syncs(&self) {
        self.state().holds_syncs = true;
    }

    pub(crate) fn release_syncs(&self) {
        self.state().holds_syncs = false;
        self.shared.1.notify_all();
    }

    /// Lets syncs of new files wait until `release_whole_files`.
    pub(crate) fn hold_whole_files(&self) {
        self.state().holds_whole_files = true;
    }

    pub(crate) fn release_whole_files(&self) {
        self.state().holds_whole_files = false;
        self.shared.1.notify_all();
    }

    /// Waits until this number of syncs has begun.
    pub(crate) fn wait_for_syncs(&self, count: usize) {
        let (_, changed) = &*self.shared;
        changed.wait_while(&mut self.state(), |state| state.syncs < count);
    }

    /// Waits until this number of writes has ended.
    pub(crate) fn wait_for_writes(&self, count: usize) {
        let (_, changed) = &*self.shared;
        changed.wait_while(&mut self.state(), |state| state.writes < count);
    }

    /// The directory as a process finds it that starts now, on this machine, and all of it is on disk.
    pub(crate) fn copy(&self) -> Self {
        let names = self.file_names().into_iter();
        Self::with(
            names
                .map(|name| (name.clone(), self.bytes(&name)))
                .collect::<Vec<_>>(),
        )
    }

    /// The directory as a process finds it that starts now, on this machine, after the one before was killed: what was
    /// not synced is seen, and not yet on disk.
    pub(crate) fn after_kill(&self) -> Self {
        let state = self.state();
        Self::of(state.folders.clone(), state.files.clone())
    }

    pub(crate) fn file_names(&self) -> Vec<String> {
        self.names().unwrap()
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        let file = self.open(name, Opening::Read).unwrap();
        file.read(usize::MAX).unwrap()
    }

    /// What a crash may leave: of all that was not synced any pieces, big or small.
    pub(crate) fn crash_image(&self, rng: &mut Rng) -> Self {
        let state = self.state();
        let piece = [1, 8, 512, 4096][rng.usize(..4)];
        let mut image = Image {
            state: &state,
            piece,
            rng,
            folders: Vec::new(),
            files: Vec::new(),
        };
        image.add_folder(0);
        Self::of(image.folders, image.files)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.0.lock()
    }

    fn file(&self, number: usize) -> Box<dyn StoredFile> {
        Box::new(ForgetfulFile {
            directory: self.clone(),
            number,
            lock: Mutex::default(),
        })
    }
}

/// A directory as a crash leaves it, while it is made.
struct Image<'a> {
    state: &'a State,
    piece: usize,
    rng: &'a mut Rng,
    folders: Vec<Names>,
    files: Vec<Content>,
}

impl Image<'_> {
    /// Adds a folder, and all that is in it. Answers its number.
    fn add_folder(&mut self, number: usize) -> usize {
        let place = self.folders.len();
        self.folders.push(Names::default());
        let mut names = BTreeMap::new();
        for (name, node) in self.state.folders[number].mixed(self.rng) {
            let node = match node {
                Node::Folder(number) => Node::Folder(self.add_folder(number)),
                Node::File(number) => {
                    let content = self.state.files[number].mixed(self.piece, self.rng);
                    self.files.push(Content::on_disk(content));
                    Node::File(self.files.len() - 1)
                }
            };
            names.insert(name, node);
        }
        self.folders[place] = Names::on_disk(names);
        place
    }
}

impl State {
    /// Counts a call that changes something, and fails if it is to fail.
    fn call(&mut self) -> Result<(), Trouble> {
        let call = self.calls;
        self.calls += 1;
        let mut met = self
            .troubles
            .iter()
            .filter(|(at, trouble)| *at == call || (*trouble == Trouble::Crash && *at < call));
        met.next().map_or(Ok(()), |(_, trouble)| Err(*trouble))
    }

    /// Counts a call that syncs something.
    fn sync_call(&mut self) -> Result<(), Trouble> {
        if self.crash_at_sync == Some(self.sync_points) {
            self.troubles.push((self.calls, Trouble::Crash));
        }
        self.sync_points += 1;
        self.call()
    }

    fn is_before_crash(&self) -> bool {
        let mut crashes = self.troubles.iter();
        !crashes.any(|(at, trouble)| *trouble == Trouble::Crash && *at + 1 < self.calls)
    }

    /// How far a file can grow.
    fn room(&self, number: usize) -> usize {
        let all: usize = self.files.iter().map(|file| file.now.len()).sum();
        let others = all - self.files[number].now.len();
        self.space
            .map_or(usize::MAX, |space| space.saturating_sub(others))
    }

    /// Ends a sync of a file as it was when that began.
    fn sync(&mut self, number: usize, then: Vec<u8>) -> io::Result<()> {
        let mut result = self.sync_call();
        if self.failing_syncs {
            result = result.and(Err(Trouble::Device));
        }
        match result {
            Ok(()) => self.files[number].sync(then),
            // A process that is killed meanwhile leaves the system what is to be written.
            Err(Trouble::Crash) => {}
            Err(_) => self.files[number].give_up(),
        }
        result.map_err(Trouble::error)
    }

    /// Makes a file, empty even if it was there.
    fn make(&mut self, folder: usize, name: &str, there: Option<usize>) -> usize {
        if let Some(number) = there {
            self.files[number].resize(0);
            return number;
        }
        let number = self.files.len();
        self.files.push(Content::default());
        self.folders[folder].add(name, Node::File(number));
        number
    }
}

impl Directory for ForgetfulDirectory {
    fn path(&self) -> &Path {
        &self.path
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let state = self.state();
        Ok(state.folders[self.folder].now.keys().cloned().collect())
    }

    fn open(&self, name: &str, opening: Opening) -> io::Result<Box<dyn StoredFile>> {
        let mut state = self.state();
        let there = match state.folders[self.folder].now.get(name) {
            Some(Node::File(number)) => Some(*number),
            Some(Node::Folder(_)) => return Err(ErrorKind::IsADirectory.into()),
            None => None,
        };
        let number = match (opening, there) {
            (Opening::Read | Opening::Write | Opening::Create, Some(number)) => number,
            (Opening::Read | Opening::Write, None) => return Err(ErrorKind::NotFound.into()),
            (Opening::CreateNew, Some(_)) => return Err(ErrorKind::AlreadyExists.into()),
            (Opening::Create | Opening::CreateNew | Opening::Truncate, there) => {
                state.call().map_err(Trouble::error)?;
                state.make(self.folder, name, there)
            }
        };
        drop(state);
        Ok(self.file(number))
    }

    fn move_into(&self, _: &str, _: &str) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.call().map_err(Trouble::error)?;
        if to.ends_with(".log") {
            for (name, node) in &state.folders[self.folder].now {
                if let Node::File(number) = node {
                    let file = &state.files[*number];
                    assert!(file.now == file.synced, "L7: {name} is not on disk");
                }
            }
        }
        if state.folders[self.folder].rename(from, to) {
            Ok(())
        } else {
            Err(ErrorKind::NotFound.into())
        }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.call().map_err(Trouble::error)?;
        state.folders[self.folder].remove(name);
        Ok(())
    }

    fn make_folder(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.call().map_err(Trouble::error)?;
        match state.folders[self.folder].now.get(name) {
            Some(Node::Folder(_)) => Ok(()),
            Some(Node::File(_)) => Err(ErrorKind::AlreadyExists.into()),
            None => {
                let number = state.folders.len();
                state.folders.push(Names::default());
                state.folders[self.folder].add(name, Node::Folder(number));
                Ok(())
            }
        }
    }

    fn folder(&self, name: &str) -> io::Result<Arc<dyn Directory>> {
        match self.state().folders[self.folder].now.get(name) {
            Some(Node::Folder(number)) => Ok(Arc::new(Self {
                shared: Arc::clone(&self.shared),
                path: self.path.join(name),
                folder: *number,
            })),
            Some(Node::File(_)) => Err(ErrorKind::NotADirectory.into()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state();
        state.sync_call().map_err(Trouble::error)?;
        state.folders[self.folder].sync();
        Ok(())
    }

    fn space(&self) -> io::Result<Space> {
        Ok(Space {
            used: 0,
            free: u64::MAX,
        })
    }
}

impl ReadAt for ForgetfulFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.directory.state().files[self.number].now.len() as u64)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let state = self.directory.state();
        (&*state.files[self.number].now).read_exact_at(buffer, offset)
    }
}

impl StoredFile for ForgetfulFile {
    fn read(&self, limit: usize) -> io::Result<Vec<u8>> {
        let mut bytes = self.directory.state().files[self.number].now.clone();
        bytes.truncate(limit);
        Ok(bytes)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.directory.state();
        let offset = offset as usize;
        let result = state.call();
        let fitting = state.room(self.number).saturating_sub(offset);
        let written = match result {
            Ok(()) => bytes.len().min(fitting),
            Err(_) if state.is_before_crash() => bytes.len() / 2,
            Err(_) => 0,
        };
        if written > 0 {
            state.files[self.number].write(&bytes[..written], offset);
        }
        state.writes += 1;
        self.directory.shared.1.notify_all();
        let is_full = result == Err(Trouble::Full) || written < bytes.len();
        if is_full {
            // A system may bring bytes to the disk long before a sync.
            let file = &mut state.files[self.number];
            file.sync(file.now.clone());
        }
        result.map_err(Trouble::error)?;
        if is_full {
            Err(Trouble::Full.error())
        } else {
            Ok(())
        }
    }

    fn allocate(&self, length: u64) -> io::Result<bool> {
        let mut state = self.directory.state();
        state.call().map_err(Trouble::error)?;
        if state.cannot_allocate {
            return Ok(false);
        }
        if length as usize > state.room(self.number) {
            return Err(Trouble::Full.error());
        }
        let file = &mut state.files[self.number];
        file.resize(file.now.len().max(length as usize));
        Ok(true)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        let mut state = self.directory.state();
        state.call().map_err(Trouble::error)?;
        let file = &mut state.files[self.number];
        file.resize(file.now.len().min(length as usize));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let (_, changed) = &*self.directory.shared;
        let mut state = self.directory.state();
        state.syncs += 1;
        // What is written while a sync runs is not part of it.
        let now = state.files[self.number].now.clone();
        changed.notify_all();
        changed.wait_while(&mut state, |state| state.holds_syncs);
        state.sync(self.number, now)
    }

    fn sync_all(&self) -> io::Result<()> {
        let (_, changed) = &*self.directory.shared;
        let mut state = self.directory.state();
        let now = state.files[self.number].now.clone();
        changed.wait_while(&mut state, |state| state.holds_whole_files);
        state.sync(self.number, now)
    }

    fn try_lock(&self) -> Result<(), TryLockError> {
        self.lock(-1)
    }

    fn try_lock_shared(&self) -> Result<(), TryLockError> {
        self.lock(1)
    }
}

impl ForgetfulFile {
    /// Takes the lock alone, for -1, or with others, for 1.
    fn lock(&self, more: i32) -> Result<(), TryLockError> {
        let mut state = self.directory.state();
        let held = state.locks.entry(self.number).or_default();
        if *held < 0 || (more < 0 && *held > 0) {
            return Err(TryLockError::WouldBlock);
        }
        *held += more;
        let mut lock = self.lock.lock();
        assert_eq!(lock.replace(more), None, "a file is locked once");
        Ok(())
    }
}

impl Drop for ForgetfulFile {
    fn drop(&mut self) {
        let mut lock = self.lock.lock();
        if let Some(held) = lock.take() {
            let mut state = self.directory.state();
            *state.locks.entry(self.number).or_default() -= held;
        }
    }
}
