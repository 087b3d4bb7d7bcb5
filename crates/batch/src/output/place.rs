//! The meaning of an output path: a file by its name, or a stream that is open already.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Links that are followed one after another, as many as the operating system follows.
const MOST_LINKS: usize = 40;

/// The descriptors of standard output and standard error.
const STDOUT: &str = "1";
const STDERR: &str = "2";

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Standard output, by whatever name.
    Stdout,
    /// Standard error.
    Stderr,
    /// Another open descriptor, such as `/dev/fd/3`: written to as it is, never replaced.
    Descriptor(PathBuf),
    /// A name in a folder, whether something stands there or not. It is no link.
    Named(PathBuf),
}

impl Place {
    /// Follows the links of `path`, up to one that stands for an open descriptor.
    ///
    /// # Errors
    /// If links lead in a circle.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let mut path = std::path::absolute(path)?;
        for _ in 0..MOST_LINKS {
            let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
                return Ok(Self::Named(path));
            };
            // If the folder is unusable, creating the file in it reports why.
            let Ok(folder) = fs::canonicalize(folder) else {
                return Ok(Self::Named(path));
            };
            if let Some(open) = Self::open(&folder, name) {
                return Ok(open);
            }
            let here = folder.join(name);
            let Ok(next) = fs::read_link(&here) else {
                return Ok(Self::Named(here));
            };
            path = folder.join(next);
        }
        Err(io::Error::other("its links lead in a circle"))
    }

    /// The descriptor of this name, if the folder is one of descriptors, such as `/proc/7/fd`.
    fn open(folder: &Path, name: &OsStr) -> Option<Self> {
        let in_proc = folder.starts_with("/proc") && folder.ends_with("fd");
        if !in_proc && folder != Path::new("/dev/fd") {
            return None;
        }
        let own = fs::canonicalize("/proc/self").is_ok_and(|own| folder.starts_with(own));
        let own = own || !in_proc;
        Some(if own && name == STDOUT {
            Self::Stdout
        } else if own && name == STDERR {
            Self::Stderr
        } else {
            Self::Descriptor(folder.join(name))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn descriptors_are_known_by_all_their_names() {
        let of = |path: &str| Place::of(Path::new(path)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        symlink("/dev/stdout", &link).unwrap();
        for path in [
            "/dev/stdout",
            "/dev/fd/1",
            "/proc/self/fd/1",
            "/proc/self/../self/fd/1",
            "/proc/thread-self/fd/1",
            link.to_str().unwrap(),
        ] {
            assert_eq!(of(path), Place::Stdout, "{path}");
        }
        assert_eq!(of("/dev/stderr"), Place::Stderr);
        assert!(matches!(of("/dev/fd/7"), Place::Descriptor(_)));
        // Standard output of another process is not ours.
        assert!(matches!(of("/proc/1/fd/1"), Place::Descriptor(_)));
        assert_eq!(of("/dev/null"), Place::Named("/dev/null".into()));
    }

    #[test]
    fn links_are_followed_to_what_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let folder = fs::canonicalize(folder.path()).unwrap();
        symlink("second", folder.join("first")).unwrap();
        symlink(folder.join("none"), folder.join("second")).unwrap();
        let place = Place::of(&folder.join("first")).unwrap();
        assert_eq!(place, Place::Named(folder.join("none")));
        symlink("circle", folder.join("circle")).unwrap();
        assert!(Place::of(&folder.join("circle")).is_err());
    }
}
