//! Network namespaces.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A network namespace, as long as a process that holds it runs. That ends with this process.
#[derive(Debug)]
pub(super) struct Namespace(Child);

impl Namespace {
    /// Makes one without any link.
    pub(super) fn make() -> io::Result<Self> {
        let mut holder = Command::new("unshare")
            .args(["--net", "sh", "-c", "echo; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        // It has nothing to say if it may not make a namespace.
        let begun = holder.stdout.as_mut().map(|out| out.read_exact(&mut [0]));
        let namespace = Self(holder);
        begun.unwrap_or(Ok(())).map_err(|_| {
            let reason = "this user may not make network namespaces";
            io::Error::new(io::ErrorKind::PermissionDenied, reason)
        })?;
        Ok(namespace)
    }

    /// The process that holds it.
    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Moves this thread, and those that it starts from now on.
    pub(super) fn enter(&self) -> io::Result<()> {
        let file = File::open(format!("/proc/{}/ns/net", self.id()))?;
        Ok(move_into_link_name_space(
            file.as_fd(),
            Some(LinkNameSpaceType::Network),
        )?)
    }

    /// A program that is to run in it.
    pub(super) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--net", "--target", &self.id().to_string()]);
        command.arg(program);
        command
    }

    /// Changes its links and routes.
    pub(super) fn ip(&self, arguments: &str) -> io::Result<()> {
        let output = self.command("ip").args(arguments.split(' ')).output()?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = format!("`ip {arguments}` fails: {said}");
        Err(io::Error::other(said))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
