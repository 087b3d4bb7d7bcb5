//! A cluster whose processes run on hosts of their own, with its records in etcd: to be disturbed in all ways.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;

use simshard_client::Client;
use simshard_hosts::{Link, Network};

use crate::process::{command, freeze, signal, thaw};
use crate::{EtcdServer, Host, Shape, binary, block_until, run};

/// A part of a cluster. Nodes and routers are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say what they are")]
pub enum ClusterPart {
    Node(usize),
    Router(usize),
    Etcd,
}

/// Nodes, routers and etcd. What they log stays if the test fails, and so do their data.
#[derive(Debug)]
pub struct HostCluster {
    nodes: Vec<Member>,
    routers: Vec<Member>,
    etcd: EtcdServer,
    etcd_host: Host,
    network: Option<Network>,
    folder: tempfile::TempDir,
}

/// A process, or one to be.
#[derive(Debug)]
struct Member {
    host: Host,
    address: SocketAddr,
    arguments: Vec<String>,
    log: PathBuf,
    child: Option<Child>,
}

impl HostCluster {
    /// Starts a cluster, whose hosts are on this network if there is one.
    #[must_use]
    pub fn start(shape: Shape, mut network: Option<Network>) -> Self {
        let mut host = || match &mut network {
            None => Host::here(),
            Some(network) => Host::on(network.add_host().expect("one more host")),
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let etcd_host = host();
        let etcd = EtcdServer::start_on(etcd_host.clone());
        let mut member = |name: String, role: &[&str]| {
            let host = host().with_clock();
            let address = host.addresses(1)[0];
            let listen = ["--insecure", "--listen", &address.to_string()].map(str::to_owned);
            let metadata = ["--metadata", &etcd.url()].map(str::to_owned);
            let role = role.iter().map(|&argument| argument.to_owned());
            Member {
                arguments: ["serve".to_owned()]
                    .into_iter()
                    .chain(role)
                    .chain(listen)
                    .chain(metadata)
                    .collect(),
                log: folder.path().join(format!("{name}.log")),
                child: None,
                host,
                address,
            }
        };
        let node = |number: usize| {
            let name = format!("n{}", number + 1);
            let data = folder.path().join(&name);
            let data = data.to_str().expect("a UTF-8 path");
            let role = [
                "node",
                "--name",
                &name,
                "--data",
                data,
                "--memtable-mib",
                "1",
            ];
            let more = shape.node_args();
            let more = more.iter().map(String::as_str);
            let role: Vec<&str> = role.into_iter().chain(more).collect();
            member(name.clone(), &role)
        };
        let nodes = (0..shape.nodes).map(node).collect();
        let routers =
            (0..shape.routers).map(|number| member(format!("r{}", number + 1), &["router"]));
        let routers = routers.collect();
        let mut cluster = Self {
            nodes,
            routers,
            etcd,
            etcd_host,
            network,
            folder,
        };
        cluster.begin(shape);
        cluster
    }

    fn begin(&mut self, shape: Shape) {
        for node in &mut self.nodes {
            node.start();
        }
        let mut args = shape.init_args();
        args.extend(["--metadata".to_owned(), self.metadata()]);
        let begun = run(binary(), args, "");
        assert!(
            begun.status.success(),
            "{}",
            String::from_utf8_lossy(&begun.stderr)
        );
        for router in &mut self.routers {
            router.start();
        }
        for member in self.nodes.iter().chain(&self.routers) {
            member.until_listening();
        }
    }

    /// Whether hosts can be cut off each other.
    #[must_use]
    pub const fn has_network(&self) -> bool {
        self.network.is_some()
    }

    /// The address of its records, as `--metadata` takes it.
    #[must_use]
    pub fn metadata(&self) -> String {
        self.etcd.url()
    }

    /// Its etcd.
    pub const fn etcd(&mut self) -> &mut EtcdServer {
        &mut self.etcd
    }

    /// A client of a router.
    #[must_use]
    pub fn client_of(&self, router: usize) -> Client {
        let url = format!("http://{}", self.routers[router].address);
        Client::new(&url).expect("a valid URL")
    }

    /// Starts a node or a router that has ended. Does not wait for it.
    pub fn start_part(&mut self, part: ClusterPart) {
        self.member_mut(part).start();
    }

    /// Ends a node or a router without any warning.
    pub fn kill(&mut self, part: ClusterPart) {
        let mut child = self.member_mut(part).child.take().expect("it runs");
        child.kill().expect("it runs");
        child.wait().expect("its end");
    }

    /// Ends a node or a router in order.
    pub fn stop(&mut self, part: ClusterPart) {
        let mut child = self.member_mut(part).child.take().expect("it runs");
        signal(child.id(), "TERM");
        let status = child.wait().expect("its end");
        // It may not have heard of signals yet.
        let is_in_order = status.success() || status.signal() == Some(15);
        assert!(
            is_in_order,
            "{part:?} ends with {status}: {}",
            self.log(part)
        );
    }

    /// Freezes a part: its connections stay, but nothing answers.
    pub fn freeze(&self, part: ClusterPart) {
        match part {
            ClusterPart::Etcd => self.etcd.freeze(),
            ClusterPart::Node(_) | ClusterPart::Router(_) => freeze(self.id(part)),
        }
    }

    /// Lets a frozen part go on.
    pub fn thaw(&self, part: ClusterPart) {
        match part {
            ClusterPart::Etcd => self.etcd.thaw(),
            ClusterPart::Node(_) | ClusterPart::Router(_) => thaw(self.id(part)),
        }
    }

    /// Shifts the clock of a node or a router.
    pub fn shift_clock(&self, part: ClusterPart, seconds: i64) {
        self.member(part).host.shift_clock(seconds);
    }

    /// Loses all packets from one part to another from now on.
    pub fn cut(&self, from: ClusterPart, to: ClusterPart) {
        let network = self.network.as_ref().expect("a network");
        let cut = network.cut(self.link(from, to));
        cut.expect("a rule of the own network");
    }

    /// Loses them no longer.
    pub fn mend(&self, from: ClusterPart, to: ClusterPart) {
        let network = self.network.as_ref().expect("a network");
        let mended = network.mend(self.link(from, to));
        mended.expect("a rule of the own network");
    }

    fn link(&self, from: ClusterPart, to: ClusterPart) -> Link<'_> {
        Link::Between(self.host(from).place(), self.host(to).place())
    }

    /// Whether there is a copy of the data of a node.
    #[must_use]
    pub fn has_copy(&self, node: usize) -> bool {
        self.copy_of(node).exists()
    }

    /// Copies the data of a node as they are at one moment, in place of an earlier copy.
    pub fn copy_data(&self, node: usize) {
        let copy = self.copy_of(node);
        let _ = fs::remove_dir_all(&copy);
        freeze(self.id(ClusterPart::Node(node)));
        copy_folder(&self.data(node), &copy);
        thaw(self.id(ClusterPart::Node(node)));
    }

    /// Puts that copy in the place of the data of a node that has ended.
    pub fn roll_back(&self, node: usize) {
        self.lose_data(node);
        fs::rename(self.copy_of(node), self.data(node)).expect("a copy");
    }

    /// Deletes the data of a node that has ended.
    pub fn lose_data(&self, node: usize) {
        fs::remove_dir_all(self.data(node)).expect("its data");
    }

    /// The nodes and routers that ended by themselves, with what they logged.
    pub fn ended(&mut self) -> Vec<(ClusterPart, String)> {
        let nodes = (0..self.nodes.len()).map(ClusterPart::Node);
        let parts = nodes.chain((0..self.routers.len()).map(ClusterPart::Router));
        let parts: Vec<ClusterPart> = parts.collect();
        let mut ended = Vec::new();
        for part in parts {
            let child = &mut self.member_mut(part).child;
            let has_ended = |child: &mut Child| child.try_wait().expect("its state").is_some();
            if child.as_mut().is_some_and(has_ended) {
                *child = None;
                ended.push((part, self.log(part)));
            }
        }
        ended
    }

    /// What a node or a router has logged since it last started.
    fn log(&self, part: ClusterPart) -> String {
        fs::read_to_string(&self.member(part).log).expect("a log")
    }

    fn id(&self, part: ClusterPart) -> u32 {
        self.member(part).child.as_ref().expect("it runs").id()
    }

    /// Where a node keeps its data.
    #[must_use]
    pub fn data(&self, node: usize) -> PathBuf {
        self.folder.path().join(format!("n{}", node + 1))
    }

    fn copy_of(&self, node: usize) -> PathBuf {
        self.folder.path().join(format!("copy of n{}", node + 1))
    }

    fn host(&self, part: ClusterPart) -> &Host {
        match part {
            ClusterPart::Etcd => &self.etcd_host,
            ClusterPart::Node(_) | ClusterPart::Router(_) => &self.member(part).host,
        }
    }

    fn member(&self, part: ClusterPart) -> &Member {
        match part {
            ClusterPart::Node(number) => &self.nodes[number],
            ClusterPart::Router(number) => &self.routers[number],
            ClusterPart::Etcd => panic!("etcd is no part of Simshard"),
        }
    }

    fn member_mut(&mut self, part: ClusterPart) -> &mut Member {
        match part {
            ClusterPart::Node(number) => &mut self.nodes[number],
            ClusterPart::Router(number) => &mut self.routers[number],
            ClusterPart::Etcd => panic!("etcd is no part of Simshard"),
        }
    }
}

impl Drop for HostCluster {
    fn drop(&mut self) {
        if thread::panicking() {
            self.folder.disable_cleanup(true);
            println!("the logs are in {}", self.folder.path().display());
        }
    }
}

impl Member {
    fn start(&mut self) {
        if self.log.exists() {
            let earlier = self.log.with_extension("earlier.log");
            let logged = fs::read(&self.log).expect("a log");
            let mut all = File::options()
                .create(true)
                .append(true)
                .open(earlier)
                .expect("a log");
            std::io::Write::write_all(&mut all, &logged).expect("a log");
        }
        let log = File::create(&self.log).expect("a file for the log");
        let mut process = command(self.host.command(binary()));
        process
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        self.child = Some(process.spawn().expect("the binary starts"));
    }

    fn until_listening(&self) {
        block_until("it listens", || TcpStream::connect(self.address).is_ok());
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let copy = to.join(entry.file_name());
        if entry.file_type().expect("its type").is_dir() {
            copy_folder(&entry.path(), &copy);
        } else {
            fs::copy(entry.path(), copy).expect("a copy");
        }
    }
}
