//! What the tests of several modules share: a directory that forgets, golden files, damage for fuzz targets, and
//! processes of their own.

mod forgetful;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};

pub(crate) use forgetful::{ForgetfulDirectory, Trouble};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use rustix::process::{Resource, Rlimit, Signal, setrlimit};

/// Set for a test that runs in a process of its own.
const ALONE: &str = "SIMSHARD_TEST_ALONE";

/// Names what runs this program, where another processor emulates its own.
const EMULATOR: &str = "SIMSHARD_TEST_EMULATOR";

/// Runs `work` in a process of its own: that of the test of this name, which must be the one that calls. Answers there
/// is none in that process.
pub(crate) fn alone(test: &str, work: impl FnOnce()) -> Option<Output> {
    if std::env::var_os(ALONE).is_some() {
        work();
        return None;
    }
    let mut process = this_program();
    let process = process
        .args(["--exact", test, "--nocapture"])
        .env(ALONE, "1");
    Some(process.output().unwrap())
}

/// The command that starts this program again.
fn this_program() -> Command {
    let program = std::env::current_exe().unwrap();
    let Some(emulator) = std::env::var_os(EMULATOR) else {
        return Command::new(program);
    };
    let mut command = Command::new(emulator);
    command.arg(program);
    command
}

/// Runs `work` as [`alone`], and sees to it that it ends the process by `abort`, and has its panic printed before.
pub(crate) fn ends_by_abort(test: &str, work: impl FnOnce()) {
    let no_core_file = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let work = || {
        setrlimit(Resource::Core, no_core_file).unwrap();
        work();
    };
    if let Some(output) = alone(test, work) {
        assert_eq!(
            output.status.signal(),
            Some(Signal::ABORT.as_raw()),
            "{output:?}"
        );
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("a test of what happens then"), "{text}");
    }
}

/// Compares bytes with those of a golden file, which `UPDATE_GOLDEN=1` rewrites.
pub(crate) fn compare_with_golden(name: &str, actual: &[u8]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let path = folder.join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, actual).unwrap();
    }
    let expected = fs::read(&path).unwrap_or_default();
    assert!(
        actual == expected,
        "{name} differs: a change of the format needs another format version. UPDATE_GOLDEN=1 rewrites it"
    );
}

/// Whether tests may take long.
pub(crate) fn is_long() -> bool {
    std::env::var_os("SIMSHARD_LONG").is_some()
}

/// Cases of a fuzz target.
pub(crate) fn fuzz_cases() -> ProptestConfig {
    ProptestConfig::with_cases(if is_long() { 1_000_000 } else { 20_000 })
}

/// Numbers that are wrong in most fields.
const VALUES: [u64; 12] = [
    0,
    1,
    2,
    7,
    0xff,
    0xffff,
    0x1_0000,
    0x1_0001,
    0x7fff_ffff,
    0xffff_ffff,
    0x1_0000_0000,
    u64::MAX,
];

/// A change of some bytes.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// Another number, this many bytes wide.
    Put { at: usize, width: usize, value: u64 },
    /// One more or less than there was.
    Add { at: usize, value: u8 },
    /// All bytes from here on go.
    Cut { at: usize },
    /// Another byte in between.
    Insert { at: usize, byte: u8 },
}

/// A few changes of bytes, before this place.
pub(crate) fn changes(end: usize) -> impl Strategy<Value = Vec<Change>> {
    let add = (0..end, select(&[1, 255, 8, 128][..]));
    let put = (0..end, select(&[1, 2, 4, 8][..]), select(&VALUES[..]));
    let change = prop_oneof![
        6 => put.prop_map(|(at, width, value)| Change::Put { at: at / 4 * 4, width, value }),
        4 => add.prop_map(|(at, value)| Change::Add { at, value }),
        1 => (0..end, any::<u8>()).prop_map(|(at, byte)| Change::Insert { at, byte }),
        1 => (0..end).prop_map(|at| Change::Cut { at }),
    ];
    vec(change, 1..=3)
}

/// Bytes after changes; places beyond the end count from the start again.
pub(crate) fn changed(bytes: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for change in changes {
        let length = bytes.len();
        if length == 0 {
            break;
        }
        match *change {
            Change::Put { at, width, value } => {
                let at = at % length;
                let end = (at + width).min(length);
                bytes[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
            }
            Change::Add { at, value } => {
                bytes[at % length] = bytes[at % length].wrapping_add(value);
            }
            Change::Cut { at } => bytes.truncate(at % length),
            Change::Insert { at, byte } => bytes.insert(at % length, byte),
        }
    }
    bytes
}
