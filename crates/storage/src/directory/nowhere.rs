//! A directory that keeps nothing, for stores that live in memory.

use std::fs::TryLockError;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::{Directory, Opening, ReadAt, Space, StoredFile};

/// The directory, and each file in it.
#[derive(Debug)]
pub(crate) struct Nowhere;

impl Directory for Nowhere {
    fn path(&self) -> &Path {
        Path::new("memory")
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn open(&self, _: &str, _: Opening) -> io::Result<Box<dyn StoredFile>> {
        Ok(Box::new(Self))
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn move_into(&self, _: &str, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn make_folder(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn folder(&self, _: &str) -> io::Result<Arc<dyn Directory>> {
        Ok(Arc::new(Self))
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn space(&self) -> io::Result<Space> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl ReadAt for Nowhere {
    fn length(&self) -> io::Result<u64> {
        Ok(0)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let nothing: &[u8] = &[];
        nothing.read_exact_at(buffer, offset)
    }
}

impl StoredFile for Nowhere {
    fn read(&self, _: usize) -> io::Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Ok(())
    }

    fn allocate(&self, _: u64) -> io::Result<bool> {
        Ok(true)
    }

    fn truncate(&self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }

    fn try_lock(&self) -> Result<(), TryLockError> {
        Ok(())
    }

    fn try_lock_shared(&self) -> Result<(), TryLockError> {
        Ok(())
    }
}
