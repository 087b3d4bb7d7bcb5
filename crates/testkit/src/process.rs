//! Real processes of the `simshard` binary.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;

use parking_lot::Mutex;

use crate::{PATIENCE, block_until};

/// A role that runs until it is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    url: String,
    log: Arc<Mutex<String>>,
}

impl Process {
    /// Starts `binary` with these arguments and waits until it listens, but not
    /// for more than a minute.
    pub fn serve<A: AsRef<OsStr>>(binary: &str, args: impl IntoIterator<Item = A>) -> Self {
        Self::start(binary, args, Stdio::piped())
    }

    /// The same, with its log in a file.
    pub fn serve_with_log<A: AsRef<OsStr>>(
        binary: &str,
        args: impl IntoIterator<Item = A>,
        log: &Path,
    ) -> Self {
        let log = File::create(log).expect("a file for the log");
        Self::start(binary, args, log.into())
    }

    fn start<A: AsRef<OsStr>>(binary: &str, args: impl IntoIterator<Item = A>, log: Stdio) -> Self {
        Waiting::spawn(binary, args, log).listening()
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

    /// What it has logged since it listens, unless its log is in a file.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.lock().clone()
    }

    /// Freezes it: its connections stay, but nothing answers.
    pub fn freeze(&self) {
        freeze(self.id());
    }

    /// Lets a frozen process go on.
    pub fn thaw(&self) {
        thaw(self.id());
    }

    fn signal(&self, name: &str) {
        signal(self.id(), name);
    }

    /// Asks it to stop as an operator would; returns its exit code.
    pub fn terminate(mut self) -> Option<i32> {
        self.signal("TERM");
        self.child.wait().expect("its end").code()
    }

    /// Ends it without any warning.
    pub fn kill(mut self) {
        self.end();
    }

    pub(crate) fn end(&mut self) {
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

/// A role that has started, and may not listen yet. It is killed when it is dropped.
#[derive(Debug)]
pub struct Waiting(Process);

impl Waiting {
    /// Starts `binary` with these arguments.
    pub fn start<A: AsRef<OsStr>>(binary: &str, args: impl IntoIterator<Item = A>) -> Self {
        Self::spawn(binary, args, Stdio::piped())
    }

    fn spawn<A: AsRef<OsStr>>(binary: &str, args: impl IntoIterator<Item = A>, log: Stdio) -> Self {
        let child = command(Command::new(binary))
            .args(args)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("the binary starts");
        Self(Process {
            child,
            url: String::new(),
            log: Arc::default(),
        })
    }

    /// Waits until a line of its log has this text, for [`PATIENCE`](crate::PATIENCE) at most. Call it once.
    pub fn until_logged(&mut self, text: &str) {
        let stderr = self.0.child.stderr.take().expect("a pipe");
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            // It is read on until the process ends, so that it never waits for a reader.
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let mut log = String::new();
        while !log.contains(text) {
            let line = receiver.recv_timeout(PATIENCE);
            log += &line.unwrap_or_else(|_| panic!("it does not say `{text}`: {log}"));
            log.push('\n');
        }
    }

    /// Asks it to stop as an operator would; returns its exit code.
    pub fn terminate(self) -> Option<i32> {
        self.0.terminate()
    }

    /// Waits until it listens, for [`PATIENCE`](crate::PATIENCE) at most.
    pub fn listening(self) -> Process {
        let mut process = self.0;
        let child = &mut process.child;
        let line = first_line(child.stdout.take().expect("a pipe"));
        let Some(url) = line.trim().strip_prefix("listening on ") else {
            let _ = child.kill();
            let mut log = String::new();
            if let Some(stderr) = child.stderr.as_mut() {
                let _ = stderr.read_to_string(&mut log);
            }
            panic!("it does not listen: {line}{log}");
        };
        if let Some(stderr) = child.stderr.take() {
            show(child.id(), stderr, Arc::clone(&process.log));
        }
        url.clone_into(&mut process.url);
        process
    }
}

/// Prints and keeps what a process logs, so that it never waits for a reader. The output of a test is seen if the test
/// fails.
fn show(process: u32, log: ChildStderr, kept: Arc<Mutex<String>>) {
    thread::spawn(move || {
        for line in BufReader::new(log).lines().map_while(Result::ok) {
            println!("process {process}: {line}");
            let mut kept = kept.lock();
            kept.push_str(&line);
            kept.push('\n');
        }
    });
}

/// A command that runs to its end, unless it is killed or dropped before.
#[derive(Debug)]
pub struct Running(Option<Child>);

impl Running {
    /// Starts `binary` with these arguments, without standard input.
    pub fn start<A: AsRef<OsStr>>(binary: &str, args: impl IntoIterator<Item = A>) -> Self {
        let child = command(Command::new(binary))
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        Self(Some(child.expect("the binary starts")))
    }

    /// Whether it has come to its end.
    pub fn has_ended(&mut self) -> bool {
        let child = self.0.as_mut().expect("it was started");
        child.try_wait().expect("its state").is_some()
    }

    /// Freezes it.
    pub fn freeze(&self) {
        freeze(self.id());
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        thaw(self.id());
    }

    fn id(&self) -> u32 {
        self.0.as_ref().expect("it was started").id()
    }

    /// Ends it without any warning.
    pub fn kill(self) {
        drop(self);
    }

    /// Waits for its end.
    pub fn output(mut self) -> Output {
        let child = self.0.take().expect("it was started");
        child.wait_with_output().expect("its output")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs `binary` to its end with this on standard input.
pub fn run<A: AsRef<OsStr>>(
    binary: &str,
    args: impl IntoIterator<Item = A>,
    input: impl AsRef<[u8]>,
) -> Output {
    let mut child = start_piped(binary, args);
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.as_ref().to_vec();
    // From a thread of its own: the process may print before it has read all,
    // or end without reading.
    let writer = thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("its output");
    writer.join().expect("no panic");
    output
}

/// Runs `binary` to its end with this on standard input, which stays open: it
/// has to end by itself, within a minute.
pub fn run_with_open_input<A: AsRef<OsStr>>(
    binary: &str,
    args: impl IntoIterator<Item = A>,
    input: impl AsRef<[u8]>,
) -> Output {
    let mut child = start_piped(binary, args);
    let id = child.id();
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.as_ref().to_vec();
    let writer = thread::spawn(move || {
        // It may end without reading all.
        let _ = stdin.write_all(&input);
        stdin
    });
    let (sender, receiver) = mpsc::channel();
    let waiter = thread::spawn(move || sender.send(child.wait_with_output()));
    let ended = receiver.recv_timeout(PATIENCE);
    if ended.is_err() {
        signal(id, "KILL");
    }
    let _ = waiter.join();
    drop(writer.join());
    let output = ended.expect("it ends while its standard input is open");
    output.expect("its output")
}

/// The first line that a process prints; empty if it prints none for long.
fn first_line(stdout: ChildStdout) -> String {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(stdout).read_line(&mut line);
        sender.send(line)
    });
    receiver.recv_timeout(PATIENCE).unwrap_or_default()
}

/// Freezes a process.
pub(crate) fn freeze(id: u32) {
    signal(id, "STOP");
    // The signal reaches each thread when that next enters the system.
    block_until("the process is frozen", || is_frozen(id));
}

fn is_frozen(id: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{id}/task")).expect("it runs");
    tasks.flatten().all(|task| {
        let status = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        // Behind the name, which is in parentheses.
        let state = status
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.chars().next());
        matches!(state, None | Some('T' | 'Z'))
    })
}

/// Lets a frozen process go on.
pub(crate) fn thaw(id: u32) {
    signal(id, "CONT");
}

pub(crate) fn signal(id: u32, name: &str) {
    let kill = Command::new("kill")
        .args(["-s", name, &id.to_string()])
        .status();
    assert!(kill.expect("kill starts").success());
}

/// The binary, started, with a pipe at each end.
fn start_piped<A: AsRef<OsStr>>(binary: &str, args: impl IntoIterator<Item = A>) -> Child {
    command(Command::new(binary))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts")
}

/// The binary, without the settings of the user who runs the tests.
pub(crate) fn command(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SIMSHARD_") {
            command.env_remove(name);
        }
    }
    command
}
