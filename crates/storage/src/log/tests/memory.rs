//! A directory in memory: it counts calls, fails at one of them, runs out of space, holds syncs up, and can
//! be looked at as a crash would leave it.

mod content;

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use fastrand::Rng;
use rustix::io::Errno;

use crate::log::disk::{Directory, LogFile};
use content::Content;

/// What goes wrong, at one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
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

/// The directory. Clones are the same one.
#[derive(Clone, Default)]
pub(super) struct Memory {
    shared: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    names: BTreeMap<String, usize>,
    synced_names: BTreeMap<String, usize>,
    files: Vec<Content>,
    calls: usize,
    troubles: Vec<(usize, Trouble)>,
    failing_syncs: bool,
    space: Option<usize>,
    cannot_allocate: bool,
    syncs: usize,
    writes: usize,
    holds_syncs: bool,
}

struct MemoryFile {
    memory: Memory,
    number: usize,
}

impl Memory {
    /// A directory with these files, all of them on disk.
    pub(super) fn with(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let memory = Self::default();
        let mut state = memory.state();
        for (number, (name, now)) in files.into_iter().enumerate() {
            state.files.push(Content::on_disk(now));
            state.names.insert(name, number);
        }
        state.synced_names = state.names.clone();
        drop(state);
        memory
    }

    /// Lets a call fail, counted from 0 over all that change something.
    pub(super) fn trouble_at(&self, call: usize, trouble: Trouble) {
        self.state().troubles.push((call, trouble));
    }

    /// Lets every sync of bytes fail from now on.
    pub(super) fn fail_syncs(&self) {
        self.state().failing_syncs = true;
    }

    /// Lets all files together have this many bytes.
    pub(super) fn limit_space(&self, bytes: Option<usize>) {
        self.state().space = bytes;
    }

    pub(super) fn forbid_allocation(&self) {
        self.state().cannot_allocate = true;
    }

    /// How often something was changed.
    pub(super) fn calls(&self) -> usize {
        self.state().calls
    }

    /// How often bytes were written.
    pub(super) fn writes(&self) -> usize {
        self.state().writes
    }

    /// How often bytes were synced, or began to be.
    pub(super) fn syncs(&self) -> usize {
        self.state().syncs
    }

    /// Lets syncs of bytes wait until `release_syncs`.
    pub(super) fn hold_syncs(&self) {
        self.state().holds_syncs = true;
    }

    pub(super) fn release_syncs(&self) {
        self.state().holds_syncs = false;
        self.shared.1.notify_all();
    }

    /// Waits until so many syncs have begun.
    pub(super) fn wait_for_syncs(&self, count: usize) {
        let (_, changed) = &*self.shared;
        let waited = changed.wait_while(self.state(), |state| state.syncs < count);
        drop(waited.unwrap());
    }

    /// Waits until so many writes have ended.
    pub(super) fn wait_for_writes(&self, count: usize) {
        let (_, changed) = &*self.shared;
        let waited = changed.wait_while(self.state(), |state| state.writes < count);
        drop(waited.unwrap());
    }

    /// The directory as a process finds it that starts now, on this machine.
    pub(super) fn copy(&self) -> Memory {
        let names = self.file_names().into_iter();
        Memory::with(
            names
                .map(|name| (name.clone(), self.bytes(&name)))
                .collect::<Vec<_>>(),
        )
    }

    pub(super) fn file_names(&self) -> Vec<String> {
        self.state().names.keys().cloned().collect()
    }

    pub(super) fn bytes(&self, name: &str) -> Vec<u8> {
        let state = self.state();
        state.files[state.names[name]].now.clone()
    }

    /// What a crash may leave: of all that was not synced any pieces, big or small.
    pub(super) fn crash_image(&self, rng: &mut Rng) -> Memory {
        let state = self.state();
        let names = match rng.bool() {
            true => &state.names,
            false => &state.synced_names,
        };
        let piece = [1, 8, 512, 4096][rng.usize(..4)];
        let files = names.iter().map(|(name, number)| {
            let image = state.files[*number].mixed(piece, rng);
            (name.clone(), image)
        });
        Memory::with(files.collect::<Vec<_>>())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let state = self.shared.0.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, number: usize) -> Box<dyn LogFile> {
        Box::new(MemoryFile {
            memory: self.clone(),
            number,
        })
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
        let mut result = self.call();
        if self.failing_syncs {
            result = result.and(Err(Trouble::Device));
        }
        match result {
            Ok(()) => self.files[number].sync(then),
            Err(_) => self.files[number].give_up(),
        }
        result.map_err(Trouble::error)
    }
}

impl Directory for Memory {
    fn path(&self) -> &Path {
        Path::new("log")
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.file_names())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn LogFile>> {
        let mut state = self.state();
        state.call().map_err(Trouble::error)?;
        let number = state.files.len();
        state.files.push(Content::default());
        state.names.insert(name.to_owned(), number);
        Ok(self.file(number))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn LogFile>> {
        let number = self.state().names.get(name).copied();
        Ok(self.file(number.ok_or(ErrorKind::NotFound)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.call().map_err(Trouble::error)?;
        for (name, number) in &state.names {
            let file = &state.files[*number];
            assert!(file.now == file.synced, "L7: {name} is not on disk");
        }
        let number = state.names.remove(from).ok_or(ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), number);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.call().map_err(Trouble::error)?;
        state.names.remove(name);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state();
        state.call().map_err(Trouble::error)?;
        state.synced_names = state.names.clone();
        Ok(())
    }
}

impl LogFile for MemoryFile {
    fn read(&self, limit: usize) -> io::Result<Vec<u8>> {
        let mut bytes = self.memory.state().files[self.number].now.clone();
        bytes.truncate(limit);
        Ok(bytes)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.memory.state();
        let offset = offset as usize;
        let result = state.call();
        let fitting = state.room(self.number).saturating_sub(offset);
        let written = match result {
            Ok(()) => bytes.len().min(fitting),
            Err(_) if state.is_before_crash() => bytes.len() / 2,
            Err(_) => 0,
        };
        state.files[self.number].write(&bytes[..written], offset);
        state.writes += 1;
        self.memory.shared.1.notify_all();
        let is_full = result == Err(Trouble::Full) || written < bytes.len();
        if is_full {
            // A system may bring bytes to the disk long before a sync.
            let file = &mut state.files[self.number];
            file.sync(file.now.clone());
        }
        result.map_err(Trouble::error)?;
        match is_full {
            true => Err(Trouble::Full.error()),
            false => Ok(()),
        }
    }

    fn allocate(&self, length: u64) -> io::Result<bool> {
        let mut state = self.memory.state();
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
        let mut state = self.memory.state();
        state.call().map_err(Trouble::error)?;
        let file = &mut state.files[self.number];
        file.resize(file.now.len().min(length as usize));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let (_, changed) = &*self.memory.shared;
        let mut state = self.memory.state();
        state.syncs += 1;
        // What is written while a sync runs is not part of it.
        let now = state.files[self.number].now.clone();
        changed.notify_all();
        let mut state = changed
            .wait_while(state, |state| state.holds_syncs)
            .unwrap();
        state.sync(self.number, now)
    }

    fn sync_all(&self) -> io::Result<()> {
        let mut state = self.memory.state();
        let now = state.files[self.number].now.clone();
        state.sync(self.number, now)
    }
}
