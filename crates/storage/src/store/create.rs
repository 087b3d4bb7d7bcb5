//! Making a data directory: its folders, then the log, then the first manifest. From then on nothing may be missing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use simshard_topology::ShardSet;
use uuid::Uuid;

use super::open::failed;
use super::{LOG, OpenError, SEGMENTS};
use crate::files::Folder;
use crate::log;
use crate::manifest::Manifest;

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

/// The first manifest of a directory that is new, or was not finished.
pub(super) fn manifest(directory: &Path, owned: ShardSet) -> Result<Manifest, OpenError> {
    let [log, segments] = [LOG, SEGMENTS].map(|name| directory.join(name));
    let is_used = log::has_begun(&log).map_err(failed("list", &log))?;
    if is_used || !is_empty(&segments)? {
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
