//! Making a data directory: its folders, then the log, then the first manifest. From then on nothing may be missing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use simshard_topology::ShardSet;
use uuid::Uuid;

use super::open::failed;
use super::{LOG, OpenError, SEGMENTS, lock};
use crate::files::Folder;
use crate::log;
use crate::manifest::{Manifest, NAME as MANIFEST, is_data_directory};

/// Makes a folder, and those above it that are missing. Their names last when this returns.
pub(super) fn folder(path: &Path) -> Result<(), OpenError> {
    let parents = parents_of_missing(path);
    fs::create_dir_all(path).map_err(failed("make", path))?;
    for parent in parents {
        Folder::open(parent)?.sync()?;
    }
    Ok(())
}

/// The folders that get a new name in them when this one is made.
fn parents_of_missing(path: &Path) -> Vec<PathBuf> {
    let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let missing = path.ancestors().take_while(is_missing);
    let parents = missing.filter_map(Path::parent);
    parents.map(|parent| Path::new(".").join(parent)).collect()
}

/// What a directory may hold that is new, or was not finished: the beginnings of ours, and what a new file system has.
const BEGINNINGS: [&str; 4] = [lock::NAME, LOG, SEGMENTS, "lost+found"];

/// Refuses to make a store among files of others.
pub(super) fn check_is_free(directory: &Path) -> Result<(), OpenError> {
    if is_data_directory(directory) || is_used(directory)? {
        return Ok(());
    }
    for entry in fs::read_dir(directory).map_err(failed("list", directory))? {
        let name = entry.map_err(failed("list", directory))?.file_name();
        let is_ours = name
            .to_str()
            .is_some_and(|name| BEGINNINGS.contains(&name) || name.starts_with(MANIFEST));
        if !is_ours {
            return Err(OpenError::Occupied {
                path: directory.to_owned(),
                name: name.to_string_lossy().into_owned(),
            });
        }
    }
    Ok(())
}

/// The first manifest of a directory that is new, or was not finished.
pub(super) fn manifest(directory: &Path, owned: ShardSet) -> Result<Manifest, OpenError> {
    let [log, segments] = [LOG, SEGMENTS].map(|name| directory.join(name));
    if is_used(directory)? {
        return Err(OpenError::NoManifest {
            path: directory.to_owned(),
        });
    }
    folder(&log)?;
    folder(&segments)?;
    let mut manifest = Manifest::new(Uuid::new_v4());
    log::begin(&log, manifest.store)?;
    manifest.generation = 1;
    manifest.shards = owned;
    manifest.write(&Folder::open(directory.to_owned())?)?;
    Ok(manifest)
}

/// Whether a store was made here, and may hold documents.
fn is_used(directory: &Path) -> Result<bool, OpenError> {
    let log = directory.join(LOG);
    let has_begun = log::has_begun(&log).map_err(failed("list", &log))?;
    Ok(has_begun || !is_empty(&directory.join(SEGMENTS))?)
}

fn is_empty(folder: &Path) -> Result<bool, OpenError> {
    match fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(failed("list", folder)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_not_made_among_files_of_others() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        for ours in ["lock", "lost+found", "manifest.new"] {
            fs::write(path.join(ours), "").unwrap();
        }
        check_is_free(path).unwrap();
        fs::write(path.join("cluster.toml"), "").unwrap();
        let refused = check_is_free(path).unwrap_err().to_string();
        assert!(refused.contains("cluster.toml"), "{refused}");
        fs::write(path.join(MANIFEST), "").unwrap();
        check_is_free(path).unwrap();
    }

    #[test]
    fn each_new_folder_is_a_name_in_the_one_above() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().join("a");
        let path = top.join("b/c");
        let parents = [top.join("b"), top.clone(), directory.path().to_owned()];
        assert_eq!(parents_of_missing(&path), parents);
        folder(&path).unwrap();
        assert!(parents_of_missing(&path).is_empty());
        let relative = Path::new("a-folder-that-is-not-there/below");
        let parents = ["./a-folder-that-is-not-there", "."].map(PathBuf::from);
        assert_eq!(parents_of_missing(relative), parents);
    }
}
