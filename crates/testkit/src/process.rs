//! Real processes of the `simshard` binary.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Output, Stdio};

/// A role that runs until it is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    url: String,
}

impl Process {
    /// Starts `binary` with these arguments and waits until it listens.
    pub fn serve<A: AsRef<OsStr>>(binary: &str, args: impl IntoIterator<Item = A>) -> Self {
        let mut child = command(binary)
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("its output");
        let Some(url) = line.trim().strip_prefix("listening on ") else {
            let _ = child.kill();
            let mut log = String::new();
            let stderr = child.stderr.as_mut().expect("a pipe");
            let _ = stderr.read_to_string(&mut log);
            panic!("it does not listen: {line}{log}");
        };
        // What it logs from now on is read and forgotten, so that it never waits.
        let mut stderr = child.stderr.take().expect("a pipe");
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        Self {
            child,
            url: url.to_owned(),
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Freezes it: its connections stay, but nothing answers.
    pub fn freeze(&self) {
        self.signal("STOP");
    }

    /// Lets a frozen process go on.
    pub fn thaw(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let id = self.id().to_string();
        let kill = Command::new("kill").args(["-s", name, &id]).status();
        assert!(kill.expect("kill starts").success());
    }

    /// Asks it to stop as an operator would; returns its exit code.
    pub fn terminate(mut self) -> Option<i32> {
        self.signal("TERM");
        self.child.wait().expect("its end").code()
    }

    /// Ends it without any warning.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("its end");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `binary` to its end with this on standard input.
pub fn run<A: AsRef<OsStr>>(
    binary: &str,
    args: impl IntoIterator<Item = A>,
    input: impl AsRef<[u8]>,
) -> Output {
    let mut child = command(binary)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.as_ref().to_vec();
    // From a thread of its own: the process may print before it has read all,
    // or end without reading.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("its output");
    writer.join().expect("no panic");
    output
}

/// The binary, without the settings of whoever runs the tests.
fn command(binary: &str) -> Command {
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SIMSHARD_") {
            command.env_remove(name);
        }
    }
    command
}
