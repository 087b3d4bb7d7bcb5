//! The machine of the measurements.

use std::fs;
use std::process::Command;
use std::thread;

use crate::process;

/// A machine, a version, a day, and what else went on.
pub(crate) struct Machine {
    pub(super) processor: String,
    /// The instructions that the program uses.
    pub(super) level: String,
    /// Whether the machine has better ones.
    pub(super) is_limited: bool,
    pub(super) threads: usize,
    pub(super) memory_gib: u64,
    pub(super) system: String,
    pub(super) compiler: String,
    pub(super) date: String,
    /// How many tasks ran or waited to, on average over the last minute.
    pub(super) load: Option<f64>,
}

impl Machine {
    /// The title of its section on the page.
    pub(super) fn title(&self) -> String {
        let limited = if self.is_limited { " by --level" } else { "" };
        format!("{}, {}{limited}", self.processor, self.level)
    }

    /// This machine, now. The level is not known yet.
    pub(crate) fn this() -> Self {
        let of = |program: &str, arguments: &[&str]| {
            process::output_of(Command::new(program).args(arguments))
                .unwrap_or_else(|| "unknown".to_owned())
        };
        let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kilobytes = field(&memory, "MemTotal").and_then(|value| {
            let number = value.strip_suffix("kB")?;
            number.trim().parse::<u64>().ok()
        });
        Self {
            processor: processor(&cpus),
            level: String::new(),
            is_limited: false,
            threads: thread::available_parallelism().map_or(1, usize::from),
            memory_gib: (kilobytes.unwrap_or(0) + (1 << 19)) >> 20,
            system: of("uname", &["-sr"]),
            compiler: of("rustc", &["--version"]),
            date: of("date", &["-u", "+%Y-%m-%d"]),
            load: load(&fs::read_to_string("/proc/loadavg").unwrap_or_default()),
        }
    }

    /// With the level of a program, and whether it is below the best one.
    pub(crate) fn with_level(self, level: String, is_limited: bool) -> Self {
        Self {
            level,
            is_limited,
            ..self
        }
    }
}

/// The name of a processor, by the text of `/proc/cpuinfo`. Machines to rent have the same name for several generations,
/// so it has the family and the model too, where there are any.
fn processor(cpus: &str) -> String {
    let name = field(cpus, "model name").unwrap_or("unknown");
    match (field(cpus, "cpu family"), field(cpus, "model")) {
        (Some(family), Some(model)) => format!("{name} (family {family}, model {model})"),
        _ => name.to_owned(),
    }
}

/// The first value of a `name : value` line.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.find_map(|(key, value)| (key.trim() == name).then(|| value.trim()))
}

/// The load average over one minute, by the text of `/proc/loadavg`.
fn load(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_several_fields_is_taken() {
        let text = "processor\t: 0\nmodel name\t: Fast 1\n\nprocessor\t: 1\nmodel name\t: Fast 2\n";
        assert_eq!(field(text, "model name"), Some("Fast 1"));
        assert_eq!(field(text, "bogomips"), None);
    }

    #[test]
    fn generations_of_one_name_are_told_apart() {
        let of =
            |model: u8| format!("cpu family\t: 25\nmodel\t\t: {model}\nmodel name\t: Slow EPYC\n");
        assert_eq!(processor(&of(17)), "Slow EPYC (family 25, model 17)");
        assert_ne!(processor(&of(17)), processor(&of(1)));
        assert_eq!(processor("model name : Neoverse\n"), "Neoverse");
        assert_eq!(processor(""), "unknown");
    }

    #[test]
    fn the_load_is_that_of_the_last_minute() {
        assert_eq!(load("0.52 0.58 0.59 2/345 12345\n"), Some(0.52));
        assert_eq!(load(""), None);
    }
}
