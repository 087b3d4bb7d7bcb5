//! Clocks that are wrong on purpose, by libfaketime.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
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

    pub(super) fn environment(&self) -> [(&'static str, OsString); 5] {
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

/// The library for programs of several threads, as the program `faketime` preloads it.
fn library() -> OsString {
    let shell = "printf %s \"$LD_PRELOAD\"";
    let output = Command::new("faketime")
        .args(["-m", "-f", "+0", "sh", "-c", shell])
        .output();
    let output = output.expect("faketime is installed: `cargo xtask test --only tests` does that");
    assert!(output.status.success(), "{output:?}");
    let preloaded = String::from_utf8(output.stdout).expect("a path");
    preloaded.into()
}
