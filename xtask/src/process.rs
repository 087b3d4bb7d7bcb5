//! Starting commands: shown before they run, their output streamed as it comes.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

/// The unit in which Linux tells the times of processes.
const MILLISECONDS_A_TICK: u64 = 10;

/// Runs a command on xtask's own terminal; an error unless it succeeds.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    show(command);
    let status = command.status().with_context(|| cannot_start(command))?;
    check(command, status)
}

/// Runs a command like [`run`], also giving every line of its standard output to `each_line`.
/// The caller judges the status, for it may know more from the lines.
pub(crate) fn run_reading(
    command: &mut Command,
    mut each_line: impl FnMut(&str),
) -> anyhow::Result<ExitStatus> {
    show(command);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| cannot_start(command))?;
    let output = child
        .stdout
        .take()
        .context("standard output is not piped")?;
    let mut reader = BufReader::new(output);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line);
        print!("{text}");
        each_line(text.trim_end());
        line.clear();
    }
    Ok(child.wait()?)
}

/// An error unless the command ended well.
pub(crate) fn check(command: &Command, status: ExitStatus) -> anyhow::Result<()> {
    if !status.success() {
        bail!("`{}` failed ({status})", shown(command));
    }
    Ok(())
}

/// Whether a command can be started and succeeds. Shows nothing.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
    quiet
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// What a command prints, or nothing if it fails.
pub(crate) fn output_of(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    output.status.success().then(|| text.trim().to_owned())
}

/// How long all commands that have ended kept a processor busy, those that they started included; Linux tells.
pub(crate) fn processor_time() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // Behind the name, which is in parentheses: the state, and from field 16 on the times of children.
    let (_, fields) = stat.rsplit_once(") ")?;
    let times = fields.split(' ').skip(13).take(2);
    let ticks: u64 = times.filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(Duration::from_millis(ticks * MILLISECONDS_A_TICK))
}

fn show(command: &Command) {
    println!("$ {}", shown(command));
}

fn cannot_start(command: &Command) -> String {
    format!("cannot start `{}`", shown(command))
}

/// The command as one would type it; programs go by their names alone.
fn shown(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program());
    let words = std::iter::once(name).chain(command.get_args());
    let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_command_is_shown_without_the_folder_of_its_program() {
        let mut command = Command::new("/somewhere/bin/cargo");
        command.args(["fmt", "--all"]);
        assert_eq!(shown(&command), "cargo fmt --all");
    }

    #[test]
    fn a_failing_command_is_an_error_that_names_it() {
        let error = run(&mut shell("exit 3")).unwrap_err().to_string();
        assert!(error.contains("sh -c exit 3"), "{error}");
        assert!(error.contains("exit status: 3"), "{error}");
    }

    #[test]
    fn a_missing_program_is_an_error_that_names_it() {
        let mut command = Command::new("no-such-program-anywhere");
        let error = run(&mut command).unwrap_err().to_string();
        assert_eq!(error, "cannot start `no-such-program-anywhere`");
        assert!(!succeeds(&mut command));
        assert_eq!(output_of(&mut command), None);
    }

    #[test]
    fn lines_and_status_are_both_reported() {
        let mut lines = Vec::new();
        let status = run_reading(&mut shell("echo one; printf two; exit 4"), |line| {
            lines.push(line.to_owned());
        });
        assert_eq!(lines, ["one", "two"]);
        assert_eq!(status.unwrap().code(), Some(4));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_time_of_commands_that_ended_is_counted() {
        let before = processor_time().unwrap();
        run(&mut shell(
            "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done",
        ))
        .unwrap();
        assert!(processor_time().unwrap() > before);
    }

    #[test]
    fn output_is_read_only_from_commands_that_succeed() {
        assert_eq!(output_of(&mut shell("echo 7")), Some("7".to_owned()));
        assert_eq!(output_of(&mut shell("echo 7; false")), None);
    }
}
