//! Making a data directory: its folders, then the log, then the first manifest. From then on nothing may be missing.

use std::io;
use std::sync::Arc;

use simshard_topology::ShardSet;
use uuid::Uuid;

use super::open::failed;
use super::{LOG, OpenError, SEGMENTS, lock, set_aside};
use crate::directory::Directory;
use crate::files;
use crate::log;
use crate::manifest::{Manifest, NAME as MANIFEST};

/// Entries that a new or unfinished directory may have: the first files of a store, what was set aside, and `lost+found`
/// of a new disk.
const BEGINNINGS: [&str; 5] = [lock::NAME, LOG, SEGMENTS, set_aside::NAME, "lost+found"];

/// Refuses to make a store among files of others.
pub(super) fn check_is_free(directory: &dyn Directory) -> Result<(), OpenError> {
    let names = directory.names();
    let names = names.map_err(failed("list", directory.path()))?;
    let has_manifest = names.iter().any(|name| name == MANIFEST);
    if has_manifest || is_used(directory)? {
        return Ok(());
    }
    let is_ours = |name: &String| BEGINNINGS.contains(&&**name) || name.starts_with(MANIFEST);
    match names.into_iter().find(|name| !is_ours(name)) {
        None => Ok(()),
        Some(name) => Err(OpenError::Occupied {
            path: directory.path().to_owned(),
            name,
        }),
    }
}

/// The first manifest of a directory that is new, or was not finished.
pub(super) fn manifest(
    directory: &Arc<dyn Directory>,
    owned: ShardSet,
) -> Result<Manifest, OpenError> {
    if is_used(&**directory)? {
        return Err(OpenError::NoManifest {
            path: directory.path().to_owned(),
        });
    }
    for name in [LOG, SEGMENTS] {
        let made = directory.make_folder(name);
        made.map_err(failed("make", &directory.path().join(name)))?;
    }
    // Even if they were there: a process that was killed may have left their names in memory only.
    files::sync(&**directory)?;
    let mut manifest = Manifest::new(Uuid::new_v4());
    log::begin(&files::folder(&**directory, LOG)?, manifest.store)?;
    manifest.generation = 1;
    manifest.shards = owned;
    manifest.write(directory)?;
    Ok(manifest)
}

/// Whether a store was made here, and may hold documents.
fn is_used(directory: &dyn Directory) -> Result<bool, OpenError> {
    let has_files = |folder: &dyn Directory| folder.names().map(|names| !names.is_empty());
    Ok(is_so(directory, LOG, log::has_begun)? || is_so(directory, SEGMENTS, has_files)?)
}

/// Whether something is so in a folder. Nothing is where there is no folder.
fn is_so(
    directory: &dyn Directory,
    name: &str,
    what: impl FnOnce(&dyn Directory) -> io::Result<bool>,
) -> Result<bool, OpenError> {
    match directory.folder(name).and_then(|folder| what(&*folder)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        answer => answer.map_err(failed("list", &directory.path().join(name))),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::directory::DiskDirectory;

    #[test]
    fn a_store_is_not_made_among_files_of_others() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let opened = &DiskDirectory::open(path).unwrap();
        for ours in ["lock", "lost+found", "manifest.new"] {
            fs::write(path.join(ours), "").unwrap();
        }
        check_is_free(opened).unwrap();
        fs::write(path.join("cluster.toml"), "").unwrap();
        let refused = check_is_free(opened).unwrap_err().to_string();
        assert!(refused.contains("cluster.toml"), "{refused}");
        fs::write(path.join(MANIFEST), "").unwrap();
        check_is_free(opened).unwrap();
    }
}
