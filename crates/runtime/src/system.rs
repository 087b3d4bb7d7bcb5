//! Figures of the operating system about this process and others.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Resident memory of this process in bytes, or `None` where the system does not
/// publish it as Linux does.
pub fn resident_memory() -> Option<u64> {
    own_status("VmRSS:")
}

/// The most memory that was ever resident in this process, in bytes, or `None` as
/// [`resident_memory`].
pub fn peak_resident_memory() -> Option<u64> {
    own_status("VmHWM:")
}

/// Raises the number of files that this process may have open as far as it may, and returns it. `None` means that there
/// is no limit, or that the system does not say.
pub fn raise_open_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    }
}

/// Resident memory of another process that no file stands behind, in bytes, or `None` as [`resident_memory`], or
/// because there is no such process.
pub fn anonymous_memory_of(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    bytes(&status, "RssAnon:")
}

/// Ticks of the clock, a hundred a second as a rule, that another process has kept a processor busy, or `None` as
/// [`anonymous_memory_of`].
pub fn processor_ticks_of(process: u32) -> Option<u64> {
    ticks(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

fn own_status(name: &str) -> Option<u64> {
    // `status` counts in kilobytes, `statm` in pages whose size we would have to ask for.
    let status = fs::read_to_string("/proc/self/status").ok()?;
    bytes(&status, name)
}

/// Finds `VmRSS:    1234 kB`, say, among the lines of `/proc/self/status`.
fn bytes(status: &str, name: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = value.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// The ticks in the program and in the system, by the text of `/proc/PID/stat`.
fn ticks(stat: &str) -> Option<u64> {
    // The second field is the program's name in brackets, and may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    next()?.checked_add(next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_asked_for_is_found_and_scaled() {
        let status = "Name:\tsimshard\nVmHWM:\t    9999 kB\nVmRSS:\t    1234 kB\nThreads:\t2\n";
        assert_eq!(bytes(status, "VmRSS:"), Some(1234 * 1024));
        assert_eq!(bytes(status, "VmHWM:"), Some(9999 * 1024));
    }

    #[test]
    fn an_unfamiliar_status_gives_nothing() {
        for status in [
            "",
            "VmRSS:\tmany kB\n",
            "VmRSS:\t12 pages\n",
            "VmRSS:\t18446744073709551615 kB\n",
        ] {
            assert_eq!(bytes(status, "VmRSS:"), None, "{status}");
        }
    }

    #[test]
    fn ticks_are_found_behind_any_name() {
        let stat = "7 (a) b) c) S 1 7 7 0 -1 4 10 0 0 0 25 17 3 4 20 0 1 0 99 0 0\n";
        assert_eq!(ticks(stat), Some(42));
        for stat in ["", "7 (a) S 1 7", "7 (a) S 1 7 7 0 -1 4 10 0 0 0 x 17"] {
            assert_eq!(ticks(stat), None, "{stat}");
        }
    }

    #[test]
    fn as_many_files_as_allowed_may_be_open() {
        let most = raise_open_files();
        assert_eq!(getrlimit(Resource::Nofile).current, most);
        assert_eq!(raise_open_files(), most);
    }
}
