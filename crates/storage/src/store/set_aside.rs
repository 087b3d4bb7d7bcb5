//! Setting aside all that a directory holds, so that another store begins in it (`FORMAT.md`, section Set aside).
//!
//! Files and folders are moved one by one into a folder whose name says that it is not finished. A claim of the directory
//! goes on with that before it does anything else. So a crash on the way leaves nothing that is half of one store, and
//! half of another.

use std::io;
use std::path::{Path, PathBuf};

use simshard_topology::replication::StoreId;

use super::open::failed;
use super::{Claim, OpenError, failure, lock};
use crate::directory::Directory;
use crate::files;

/// The folder of what was set aside.
pub(super) const NAME: &str = "aside";

/// Entries that stay where they are.
const STAYS: [&str; 3] = [lock::NAME, NAME, "lost+found"];

impl Claim {
    /// Sets aside all that the directory holds, and lets go of the directory. Answers where that is now: as a directory it
    /// is as it was. The next claim makes a new store.
    ///
    /// # Errors
    /// If something cannot be moved. The next claim goes on with it.
    pub fn set_aside(self) -> Result<PathBuf, OpenError> {
        let directory = &*self.directory;
        let unfinished = begin(directory, self.store)?;
        finish(directory, &unfinished)
    }

    /// The folder of an earlier store of this directory that has failed, if one was set aside.
    ///
    /// # Errors
    /// If what was set aside cannot be read.
    pub fn failed_before(&self) -> Result<Option<PathBuf>, OpenError> {
        for name in names(&*self.directory)? {
            let path = Path::new(NAME).join(name);
            let folder = files::folder(&*self.directory, &path.to_string_lossy())?;
            if failure::read_failure_note(&*folder)?.is_some() {
                return Ok(Some(folder.path().to_owned()));
            }
        }
        Ok(None)
    }
}

/// The folder that is not finished, if the directory was being set aside.
pub(super) fn unfinished(directory: &dyn Directory) -> Result<Option<String>, OpenError> {
    let mut names = names(directory)?.into_iter();
    Ok(names.find(|name| files::is_unfinished(name)))
}

/// What was set aside.
fn names(directory: &dyn Directory) -> Result<Vec<String>, OpenError> {
    match directory.folder(NAME).and_then(|folder| folder.names()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        names => names.map_err(failed("list", &directory.path().join(NAME))),
    }
}

/// Makes the folder that is not finished. From then on the directory is set aside, even after a crash.
fn begin(directory: &dyn Directory, store: StoreId) -> Result<String, OpenError> {
    let name = free_name(&names(directory)?, store);
    let unfinished = files::unfinished_name(&name);
    for folder in [NAME, &format!("{NAME}/{unfinished}")] {
        let made = directory.make_folder(folder);
        made.map_err(failed("make", &directory.path().join(folder)))?;
    }
    files::sync(directory)?;
    files::sync(&*files::folder(directory, NAME)?)?;
    Ok(unfinished)
}

/// A name that no folder has: the store may have been set aside before, and put back since.
fn free_name(taken: &[String], store: StoreId) -> String {
    let mut name = store.to_string();
    while taken.contains(&name) {
        name.push('+');
    }
    name
}

/// Moves what is left, and gives the folder its name.
pub(super) fn finish(directory: &dyn Directory, unfinished: &str) -> Result<PathBuf, OpenError> {
    let folder = format!("{NAME}/{unfinished}");
    let names = directory.names();
    for name in names.map_err(failed("list", directory.path()))? {
        if !STAYS.contains(&&*name) {
            let moved = directory.move_into(&name, &folder);
            moved.map_err(failed("move", &directory.path().join(&name)))?;
        }
    }
    files::sync(&*files::folder(directory, &folder)?)?;
    files::sync(directory)?;
    let all = files::folder(directory, NAME)?;
    let finished = unfinished.trim_end_matches(".new");
    let renamed = all.rename(unfinished, finished);
    renamed.map_err(failed("rename", &directory.path().join(&folder)))?;
    files::sync(&*all)?;
    Ok(all.path().join(finished))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::inspect;
    use crate::store::{Options, Store};
    use simshard_topology::ShardSet;

    fn entries(path: &Path) -> Vec<String> {
        let entries = fs::read_dir(path).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names
    }

    /// A directory that holds a store. Answers which.
    fn with_store(path: &Path) -> StoreId {
        drop(Store::open(path, ShardSet::ALL, Options::default()).unwrap());
        Store::claim(path).unwrap().store
    }

    #[test]
    fn another_store_begins_and_the_one_before_is_whole_in_its_folder() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let first = with_store(path);
        let aside = Store::claim(path).unwrap().set_aside().unwrap();
        assert_eq!(aside, path.join("aside").join(first.to_string()));
        assert_eq!(entries(path), ["aside", "lock"]);
        let claim = Store::claim(path).unwrap();
        assert_ne!(claim.store, first);
        assert_eq!(claim.failed_before().unwrap(), None);
        assert_eq!(inspect(&aside).unwrap().store.into_bytes(), first.0);
        drop(claim);
        // It is put back, and set aside again.
        fs::remove_file(path.join("manifest")).unwrap();
        for folder in ["log", "segments"] {
            fs::remove_dir_all(path.join(folder)).unwrap();
        }
        for name in entries(&aside) {
            let copied = !aside.join(&name).is_dir();
            if copied {
                fs::copy(aside.join(&name), path.join(&name)).unwrap();
            } else {
                fs::rename(aside.join(&name), path.join(&name)).unwrap();
            }
        }
        let claim = Store::claim(path).unwrap();
        assert_eq!(claim.store, first);
        fs::write(path.join("FAILED"), "a test\n").unwrap();
        assert!(claim.check_failure().is_err());
        let again = claim.set_aside().unwrap();
        assert_ne!(again, aside);
        let claim = Store::claim(path).unwrap();
        claim.check_failure().unwrap();
        assert_eq!(claim.failed_before().unwrap(), Some(again));
    }

    /// However far it came before a crash.
    #[test]
    fn a_claim_goes_on_with_what_was_cut_off() {
        for count in 0.. {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path();
            let first = with_store(path);
            let claim = Store::claim(path).unwrap();
            let folder = path
                .join("aside")
                .join(begin(&*claim.directory, first).unwrap());
            drop(claim);
            let moved = entries(path).into_iter();
            let moved: Vec<String> = moved.filter(|name| !STAYS.contains(&&**name)).collect();
            for name in moved.iter().take(count) {
                fs::rename(path.join(name), folder.join(name)).unwrap();
            }
            let claim = Store::claim(path).unwrap();
            assert_ne!(claim.store, first, "{count} of {moved:?}");
            let aside = path.join("aside").join(first.to_string());
            assert_eq!(entries(&aside), moved);
            assert_eq!(inspect(&aside).unwrap().store.into_bytes(), first.0);
            if count == moved.len() {
                return;
            }
        }
    }
}
