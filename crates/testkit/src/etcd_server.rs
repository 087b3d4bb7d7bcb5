//! A real etcd.

use std::env;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::process::{freeze, thaw};
use crate::{Host, PATIENCE, block_until};

/// A running etcd of one member, with its data in a temporary folder. It ends when this is dropped.
#[derive(Debug)]
pub struct EtcdServer {
    /// Ends before its folder goes.
    process: Ending,
    host: Host,
    folder: tempfile::TempDir,
    clients: SocketAddr,
    peers: SocketAddr,
}

impl EtcdServer {
    /// Starts a server, and waits until it takes connections.
    #[must_use]
    pub fn start() -> Self {
        Self::start_on(Host::here())
    }

    /// The same, on a host.
    #[must_use]
    pub fn start_on(host: Host) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let addresses = host.addresses(2);
        let (clients, peers) = (addresses[0], addresses[1]);
        let process = spawn(&host, folder.path(), clients, peers);
        Self {
            host,
            folder,
            clients,
            peers,
            process,
        }
    }

    /// Where it takes connections of clients.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.clients
    }

    /// Its address, as `--metadata` takes it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("etcd://{}", self.clients)
    }

    /// Freezes it: its connections stay, but nothing answers.
    pub fn freeze(&self) {
        freeze(self.process.0.id());
    }

    /// Lets a frozen server go on.
    pub fn thaw(&self) {
        thaw(self.process.0.id());
    }

    /// Ends it without any warning, and starts it again with its data.
    pub fn restart(&mut self) {
        self.stop();
        self.process = spawn(&self.host, self.folder.path(), self.clients, self.peers);
    }

    /// Ends it without any warning.
    pub fn stop(&mut self) {
        // It may have been stopped before.
        let _ = self.process.0.kill();
        let _ = self.process.0.wait();
    }

    /// Lets it forget all revisions but the newest.
    pub fn compact(&self) {
        let address = self.clients.to_string();
        let etcdctl = |arguments: &[&str]| {
            let mut command = self.host.command(program("etcdctl"));
            command.args(["--endpoints", &address]).args(arguments);
            command.output().expect("etcdctl is beside etcd")
        };
        let status = etcdctl(&["endpoint", "status", "--write-out=fields"]).stdout;
        let status = String::from_utf8(status).expect("text");
        let mut lines = status.lines();
        let revision = lines.find_map(|line| line.strip_prefix("\"Revision\" : "));
        let revision = revision.expect("the revision of an etcd that answers");
        let compacted = etcdctl(&["compact", revision]);
        // Where nothing was written since the last time, there is nothing to forget.
        let complaint = String::from_utf8_lossy(&compacted.stderr);
        let is_done = complaint.contains("required revision has been compacted");
        assert!(compacted.status.success() || is_done, "{compacted:?}");
    }
}

fn spawn(host: &Host, folder: &Path, clients: SocketAddr, peers: SocketAddr) -> Ending {
    let (clients_url, peers_url) = (format!("http://{clients}"), format!("http://{peers}"));
    let process = host
        .command(program("etcd"))
        .arg("--data-dir")
        .arg(folder.join("etcd"))
        .args(["--listen-client-urls", &clients_url])
        .args(["--advertise-client-urls", &clients_url])
        .args(["--listen-peer-urls", &peers_url])
        .args(["--initial-advertise-peer-urls", &peers_url])
        .args(["--initial-cluster", &format!("default={peers_url}")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let process = process.expect("etcd is installed: `cargo xtask test --only tests` does that");
    let mut process = Ending(process);
    block_until("etcd answers", || {
        let ended = process.0.try_wait().expect("its state");
        assert!(ended.is_none(), "etcd does not start: {ended:?}");
        is_healthy(clients).unwrap_or(false)
    });
    process
}

/// Whether it has a leader.
fn is_healthy(clients: SocketAddr) -> io::Result<bool> {
    let mut stream = TcpStream::connect(clients)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET /health HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.contains("\"health\":\"true\""))
}

/// A process that ends when this is dropped.
#[derive(Debug)]
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program that [`EtcdServer`] runs.
#[must_use]
pub fn etcd_program() -> OsString {
    program("etcd")
}

/// The etcd that `cargo xtask test` installed, else that of the system, or another program of it.
fn program(name: &str) -> OsString {
    let test = env::current_exe().expect("a test knows its own path");
    let target = test.ancestors().nth(3).expect("a target folder");
    let installed: PathBuf = target.join("tools/python/bin").join(name);
    if installed.exists() {
        installed.into()
    } else {
        name.into()
    }
}
