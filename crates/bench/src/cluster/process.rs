//! A process of its own: started, connected to, and ended.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};
use simshard_client::{Access, Client, Stub};

/// How a process is ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// As an operator does.
    Stop,
    /// Without any warning.
    Kill,
}

/// A process that is killed when it is dropped.
pub(super) struct Process {
    pub(super) child: Child,
    /// Where it listens.
    pub(super) url: String,
}

impl Process {
    /// Starts a role, and waits until it listens.
    pub(super) fn start(command: Command) -> anyhow::Result<Self> {
        let mut process = Self::spawn(command)?;
        process.until_it_listens()?;
        Ok(process)
    }

    /// Starts a role.
    pub(super) fn spawn(command: Command) -> anyhow::Result<Self> {
        Self::spawn_with(command, "warn")
    }

    /// Starts a role that says some of what it does.
    pub(super) fn spawn_with(mut command: Command, says: &str) -> anyhow::Result<Self> {
        // The user's own settings must not change what is measured.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("SIMSHARD_") {
                command.env_remove(name);
            }
        }
        command.env("SIMSHARD_LOG", says);
        // A lower level of instructions is that of all processes.
        command.env("SIMSHARD_CPU", simshard_simhash::level());
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
        Ok(Self {
            child: command.spawn()?,
            url: String::new(),
        })
    }

    /// New connections to it.
    pub(super) fn connections(&self, count: usize, access: &Access) -> anyhow::Result<Vec<Stub>> {
        let connect = |_| {
            let client = Client::with_access(&self.url, access)?;
            Ok(client.into_stub().max_decoding_message_size(usize::MAX))
        };
        (0..count).map(connect).collect()
    }

    pub(super) fn until_it_listens(&mut self) -> anyhow::Result<()> {
        let mut line = String::new();
        if let Some(stdout) = self.child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let url = line.trim_end().strip_prefix("listening on ");
        self.url = url.context("it ended before it listened")?.to_owned();
        Ok(())
    }

    /// Ends it, and waits until it has.
    pub(super) fn end(&mut self, end: End) -> anyhow::Result<()> {
        match end {
            End::Stop => kill_process(Pid::from_child(&self.child), Signal::TERM)?,
            End::Kill => self.child.kill()?,
        }
        let status = self.child.wait()?;
        let is_due = status.success() || matches!(end, End::Kill);
        ensure!(is_due, "it did not stop in order: {status}");
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended already is left in peace.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_use_the_level_of_the_one_that_measures_them() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo listening on $SIMSHARD_CPU"]);
        let mut process = Process::start(shell).unwrap();
        assert_eq!(process.url, simshard_simhash::level());
        process.end(End::Kill).unwrap();
    }
}
