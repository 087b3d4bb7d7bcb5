//! Clocks that are wrong on purpose, by libfaketime.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The clock of a host: processes read by how much it is wrong from a file.
#[derive(Debug)]
pub(super) struct Clock {
    folder: tempfile::TempDir,
    library: OsString,
}

impl Clock {
    /// One that is right.
    pub(super) fn right() -> Self {
        let clock = Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
            library: library(),
        };
        clock.shift(0);
        clock
    }

    pub(super) fn shift(&self, seconds: i64) {
        let next = self.folder.path().join("next");
        fs::write(&next, format!("{seconds:+}")).expect("a file for the clock");
        // No process reads half of it.
        fs::rename(next, self.file()).expect("a file for the clock");
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("shift")
    }

    /// The environment of a process that starts now.
    pub(super) fn environment(&self) -> [(&'static str, OsString); 5] {
        remove_leftovers();
        [
            ("LD_PRELOAD", self.library.clone()),
            ("FAKETIME_TIMESTAMP_FILE", self.file().into()),
            // Processes look again after a second. Their waits are as long as ever.
            ("FAKETIME_CACHE_DURATION", "1".into()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
            ("NO_FAKE_STAT", "1".into()),
        ]
    }
}

/// Where the library keeps what threads of a process share: files that are named by the process.
const SHARED: &str = "/dev/shm";

/// Removes what killed processes left there. The library refuses to start in a process whose number one of them had.
fn remove_leftovers() {
    for file in fs::read_dir(SHARED).into_iter().flatten().flatten() {
        let name = file.file_name();
        let name = name.to_string_lossy();
        let prefixes = ["faketime_shm_", "sem.faketime_sem_"];
        let mut process = prefixes
            .into_iter()
            .filter_map(|prefix| name.strip_prefix(prefix));
        if let Some(process) = process.next()
            && !Path::new("/proc").join(process).exists()
        {
            // Another test may have removed it.
            let _ = fs::remove_file(file.path());
        }
    }
}

/// The library for programs of several threads, as the program `faketime` preloads it.
fn library() -> OsString {
    remove_leftovers();
    let shell = "printf %s \"$LD_PRELOAD\"";
    let output = Command::new("faketime")
        .args(["-m", "-f", "+0", "sh", "-c", shell])
        .output();
    let output = output.expect("faketime is installed: `cargo xtask test --only tests` does that");
    assert!(output.status.success(), "{output:?}");
    let preloaded = String::from_utf8(output.stdout).expect("a path");
    preloaded.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No process has these numbers: they are above the most that there may be.
    #[test]
    fn what_ended_processes_left_is_removed_and_what_others_use_stays() {
        let file =
            |prefix: &str, process: u32| Path::new(SHARED).join(format!("{prefix}{process}"));
        let ended = std::process::id() + (1 << 23);
        let left = ["faketime_shm_", "sem.faketime_sem_"].map(|prefix| file(prefix, ended));
        let used = file("faketime_shm_", std::process::id());
        for file in left.iter().chain([&used]) {
            fs::write(file, "").expect("a file");
        }
        remove_leftovers();
        assert_eq!(left.map(|file| file.exists()), [false, false]);
        assert!(used.exists());
        fs::remove_file(used).expect("a file");
    }
}
