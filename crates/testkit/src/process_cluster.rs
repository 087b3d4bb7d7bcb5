//! A cluster of real processes that keep their data, to be killed and started again.

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

    /// A client of the router.
    #[must_use]
    pub fn client(&self) -> Client {
        let client = Client::new(&self.url()).expect("a valid URL");
        client.with_timeout(TIMEOUT)
    }

    /// The process id of a node, counted from 0.
    #[must_use]
    pub fn node_id(&self, number: usize) -> u32 {
        self.nodes[number].as_ref().expect("it runs").id()
    }

    /// The process id of the router.
    #[must_use]
    pub fn router_id(&self) -> u32 {
        self.router.as_ref().expect("it runs").id()
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

    fn layout(&self) -> PathBuf {
        self.folder.path().join("cluster.toml")
    }

    fn start_node(&mut self, number: usize) {
        let name = format!("n{}", number + 1);
        let (layout, data) = (self.layout(), self.folder.path().join(&name));
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
        let layout = self.layout();
        let args = [
            "serve",
            "router",
            "--cluster",
            text(&layout),
            "--listen",
            &self.router_address,
        ];
        self.router = Some(Process::serve(self.binary, args));
    }
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
