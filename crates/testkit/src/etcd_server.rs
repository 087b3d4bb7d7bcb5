//! A real etcd.

use std::env;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

use crate::process::{freeze, thaw};
use crate::{Certificates, Host, PATIENCE, block_until};

/// A running etcd of one member, with its data in a temporary folder. It ends when this is dropped.
#[derive(Debug)]
pub struct EtcdServer {
    /// Ends before its folder goes.
    process: Ending,
    host: Host,
    folder: tempfile::TempDir,
    addresses: Addresses,
    /// Where it has TLS. Then it asks clients for certificates, too.
    certificates: Option<Certificates>,
    /// The name and the password of its root, once it has users.
    root: Option<String>,
}

/// Where it takes connections.
#[derive(Clone, Copy, Debug)]
struct Addresses {
    clients: SocketAddr,
    peers: SocketAddr,
    /// Of those that ask for its health, always without TLS.
    health: SocketAddr,
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
        Self::start_with(host, false)
    }

    /// Starts a server that has TLS, and takes only clients that show a certificate of the same authority.
    #[must_use]
    pub fn start_with_tls() -> Self {
        Self::start_with(Host::here(), true)
    }

    fn start_with(host: Host, has_tls: bool) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let free = host.addresses(3);
        let addresses = Addresses {
            clients: free[0],
            peers: free[1],
            health: free[2],
        };
        let certificates = has_tls.then(|| Certificates::of_server(addresses.clients.ip()));
        let process = spawn(&host, folder.path(), addresses, certificates.as_ref());
        Self {
            host,
            folder,
            addresses,
            certificates,
            root: None,
            process,
        }
    }

    /// Its certificates.
    #[must_use]
    pub fn certificates(&self) -> &Certificates {
        self.certificates.as_ref().expect("it has TLS")
    }

    /// Lets only users in from now on. One of this name may do what it likes below `simshard/`.
    pub fn ask_for_users(&mut self, name: &str, password: &str) {
        for arguments in [
            &["user", "add", "root:root-word"][..],
            &["user", "grant-role", "root", "root"],
            &["role", "add", "of-simshard"],
            &[
                "role",
                "grant-permission",
                "of-simshard",
                "--prefix=true",
                "readwrite",
                "simshard/",
            ],
            &["user", "add", &format!("{name}:{password}")],
            &["user", "grant-role", name, "of-simshard"],
            &["auth", "enable"],
        ] {
            self.control(arguments);
        }
        self.root = Some("root:root-word".to_owned());
    }

    /// Gives a user another password. etcd forgets its tokens.
    pub fn change_password(&self, name: &str, password: &str) {
        // Of its ways to read a password, this one needs no terminal.
        self.control(&["user", "delete", name]);
        self.control(&["user", "add", &format!("{name}:{password}")]);
        self.control(&["user", "grant-role", name, "of-simshard"]);
    }

    fn control(&self, arguments: &[&str]) {
        let done = self.etcdctl(arguments);
        assert!(done.status.success(), "{arguments:?}: {done:?}");
    }

    fn etcdctl(&self, arguments: &[&str]) -> Output {
        let mut command = self.host.command(program("etcdctl"));
        command.env("ETCDCTL_API", "3");
        if let Some(root) = &self.root {
            command.args(["--user", root]);
        }
        let scheme = if let Some(certificates) = &self.certificates {
            let [certificate, key] = certificates.client();
            command.arg("--cacert").arg(certificates.authority());
            command.arg("--cert").arg(certificate).arg("--key").arg(key);
            "https"
        } else {
            "http"
        };
        let endpoint = format!("{scheme}://{}", self.addresses.clients);
        command.args(["--endpoints", &endpoint]).args(arguments);
        command.output().expect("etcdctl is beside etcd")
    }

    /// Where it takes connections of clients.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.addresses.clients
    }

    /// Its address, as `--metadata` takes it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("etcd://{}", self.addresses.clients)
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
        let certificates = self.certificates.as_ref();
        self.process = spawn(&self.host, self.folder.path(), self.addresses, certificates);
    }

    /// Ends it without any warning.
    pub fn stop(&mut self) {
        // It may have been stopped before.
        let _ = self.process.0.kill();
        let _ = self.process.0.wait();
    }

    /// What it has counted, by the beginning of the name of its counter.
    #[must_use]
    pub fn counted(&self, name: &str) -> u64 {
        let counters = get(self.addresses.health, "/metrics").expect("its counters");
        let line = counters.lines().find(|line| line.starts_with(name));
        let count = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
        count.expect("a counter of this name")
    }

    /// Lets it forget all revisions but the newest.
    pub fn compact(&self) {
        let status = self.etcdctl(&["endpoint", "status", "--write-out=fields"]);
        let status = status.stdout;
        let status = String::from_utf8(status).expect("text");
        let mut lines = status.lines();
        let revision = lines.find_map(|line| line.strip_prefix("\"Revision\" : "));
        let revision = revision.expect("the revision of an etcd that answers");
        let compacted = self.etcdctl(&["compact", revision]);
        // Where nothing was written since the last time, there is nothing to forget.
        let complaint = String::from_utf8_lossy(&compacted.stderr);
        let is_done = complaint.contains("required revision has been compacted");
        assert!(compacted.status.success() || is_done, "{compacted:?}");
    }
}

fn spawn(
    host: &Host,
    folder: &Path,
    addresses: Addresses,
    certificates: Option<&Certificates>,
) -> Ending {
    let scheme = certificates.map_or("http", |_| "https");
    let clients = format!("{scheme}://{}", addresses.clients);
    let [peers, health] = [addresses.peers, addresses.health].map(|at| format!("http://{at}"));
    let mut command = host.command(program("etcd"));
    command
        .arg("--data-dir")
        .arg(folder.join("etcd"))
        .args(["--listen-client-urls", &clients])
        .args(["--advertise-client-urls", &clients])
        .args(["--listen-peer-urls", &peers])
        .args(["--initial-advertise-peer-urls", &peers])
        .args(["--initial-cluster", &format!("default={peers}")])
        .args(["--listen-metrics-urls", &health]);
    if let Some(certificates) = certificates {
        let [certificate, key] = certificates.server();
        command.arg("--cert-file").arg(certificate);
        command.arg("--key-file").arg(key).arg("--client-cert-auth");
        let authority = certificates.authority();
        command.arg("--trusted-ca-file").arg(authority);
    }
    let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let process = process.expect("etcd is installed: `cargo xtask test --only tests` does that");
    let mut process = Ending(process);
    block_until("etcd answers", || {
        let ended = process.0.try_wait().expect("its state");
        assert!(ended.is_none(), "etcd does not start: {ended:?}");
        is_healthy(addresses.health).unwrap_or(false)
    });
    process
}

/// Whether it has a leader.
fn is_healthy(address: SocketAddr) -> io::Result<bool> {
    let answer = get(address, "/health")?;
    Ok(answer.contains("\"health\":\"true\""))
}

/// What it says of itself.
fn get(address: SocketAddr, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
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
