//! A cluster of real processes that keep their data, to be killed and started again.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use simshard_client::Client;

use crate::{Process, free_addresses, write_layout_file};

/// How long its clients wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Nodes `n1`, `n2`, … with data directories, and a router, each a process.
#[derive(Debug)]
pub struct ProcessCluster {
    binary: &'static str,
    folder: tempfile::TempDir,
    nodes: Vec<Option<Process>>,
    router: Option<Process>,
    router_address: String,
    node_addresses: Vec<SocketAddr>,
}

impl ProcessCluster {
    /// Starts so many nodes and a router.
    #[must_use]
    pub fn start(binary: &'static str, nodes: usize) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let addresses = free_addresses(nodes + 1);
        write_layout_file(&folder.path().join("cluster.toml"), &addresses[..nodes]);
        let mut cluster = Self {
            binary,
            nodes: (0..nodes).map(|_| None).collect(),
            router: None,
            router_address: addresses[nodes].to_string(),
            node_addresses: addresses[..nodes].to_vec(),
            folder,
        };
        for number in 0..nodes {
            cluster.start_node(number);
        }
        cluster.start_router();
        cluster
    }

    /// A folder for whatever goes when the cluster goes.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The router's URL, the same after each start.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.router_address)
    }

    /// Where the nodes listen.
    #[must_use]
    pub fn node_addresses(&self) -> &[SocketAddr] {
        &self.node_addresses
    }

    /// Where a node, counted from 0, keeps its data.
    fn data(&self, number: usize) -> PathBuf {
        self.folder.path().join(format!("n{}", number + 1))
    }

    /// The layout file.
    #[must_use]
    pub fn layout(&self) -> PathBuf {
        self.folder.path().join("cluster.toml")
    }

    /// Starts one more router, which knows the nodes by these addresses, and the corpora that there are now.
    #[must_use]
    pub fn start_router_to(&self, nodes: &[SocketAddr]) -> Process {
        let layout = self.folder.path().join("other.toml");
        write_layout_file(&layout, nodes);
        let corpora = |layout: &Path| layout.with_extension("corpora.toml");
        fs::copy(corpora(&self.layout()), corpora(&layout)).expect("there is a corpus");
        start_router(self.binary, &layout, "127.0.0.1:0")
    }

    /// Ends a node, counted from 0, in order, for `work` on its data, and starts it again.
    pub fn while_stopped<T>(&mut self, number: usize, work: impl FnOnce(&Path) -> T) -> T {
        End::Stopped.of(self.nodes[number].take().expect("it runs"));
        let done = work(&self.data(number));
        self.start_node(number);
        done
    }

    /// A client of the router.
    #[must_use]
    pub fn client(&self) -> Client {
        let client = Client::new(&self.url()).expect("a valid URL");
        client.with_timeout(TIMEOUT)
    }

    /// Ends a node, counted from 0, and starts it again.
    pub fn restart_node(&mut self, number: usize, end: End) {
        end.of(self.nodes[number].take().expect("it runs"));
        self.start_node(number);
    }

    /// Ends the router, and starts it again.
    pub fn restart_router(&mut self, end: End) {
        end.of(self.router.take().expect("it runs"));
        self.start_router();
    }

    fn start_node(&mut self, number: usize) {
        let name = format!("n{}", number + 1);
        let (layout, data) = (self.layout(), self.data(number));
        let args = [
            "serve",
            "node",
            "--cluster",
            text(&layout),
            "--name",
            &name,
            "--data",
            text(&data),
            "--memtable-mib",
            "1",
        ];
        self.nodes[number] = Some(Process::serve(self.binary, args));
    }

    fn start_router(&mut self) {
        let router = start_router(self.binary, &self.layout(), &self.router_address);
        self.router = Some(router);
    }
}

fn start_router(binary: &str, layout: &Path, listen: &str) -> Process {
    let args = ["serve", "router", "--cluster", text(layout)];
    Process::serve(binary, args.iter().chain(&["--listen", listen]))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a UTF-8 path")
}

/// How a process ends.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// Without warning.
    Killed,
    /// When it has done what it was about: it must do so in order.
    Stopped,
}

impl End {
    fn of(self, process: Process) {
        match self {
            Self::Killed => process.kill(),
            Self::Stopped => assert_eq!(process.terminate(), Some(0)),
        }
    }
}
