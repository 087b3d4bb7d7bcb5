//! A cluster of real processes that keep nothing.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::{Process, binary, free_addresses, write_layout_file};

/// Nodes `n1`, `n2`, … without data directories, and a router, each a process.
#[derive(Debug)]
pub struct ForgetfulCluster {
    /// The router.
    pub router: Process,
    /// The nodes.
    pub nodes: Vec<Process>,
    layout: PathBuf,
    /// Where the nodes of the layout file are.
    addresses: Vec<SocketAddr>,
    _folder: tempfile::TempDir,
}

impl ForgetfulCluster {
    /// Starts `nodes` nodes and a router.
    #[must_use]
    pub fn start(nodes: usize) -> Self {
        Self::start_with(nodes, &[], &[])
    }

    /// Starts `nodes` nodes and a router, with more arguments for each node and for the router.
    #[must_use]
    pub fn start_with(nodes: usize, node_args: &[&str], router_args: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let layout = folder.path().join("cluster.toml");
        let addresses = free_addresses(nodes);
        write_layout_file(&layout, &addresses);
        let nodes = 1..=nodes;
        let start = |number| start_node(&layout, &format!("n{number}"), node_args);
        Self {
            nodes: nodes.map(start).collect(),
            router: start_router(&layout, router_args),
            layout,
            addresses,
            _folder: folder,
        }
    }

    /// Adds a node to the layout file, which running processes have read before, and starts it.
    pub fn add_node(&mut self) {
        self.addresses.extend(free_addresses(1));
        write_layout_file(&self.layout, &self.addresses);
        let name = format!("n{}", self.addresses.len());
        self.nodes.push(self.start_node(&name));
    }

    /// Starts a node where one of this name was before.
    #[must_use]
    pub fn start_node(&self, name: &str) -> Process {
        start_node(&self.layout, name, &[])
    }

    /// Ends the router without any warning, and starts another.
    pub fn restart_router(&mut self) {
        self.router.end();
        self.router = self.start_router();
    }

    /// Starts one more router.
    #[must_use]
    pub fn start_router(&self) -> Process {
        start_router(&self.layout, &[])
    }
}

fn start_node(layout: &Path, name: &str, more: &[&str]) -> Process {
    let layout = layout.to_str().expect("a UTF-8 path");
    let args = ["serve", "node", "--cluster", layout, "--name", name];
    Process::serve(binary(), args.iter().chain(more))
}

fn start_router(layout: &Path, more: &[&str]) -> Process {
    let layout = layout.to_str().expect("a UTF-8 path");
    let listen = ["--listen", "127.0.0.1:0"];
    let args = ["serve", "router", "--cluster", layout];
    Process::serve(binary(), args.iter().chain(&listen).chain(more))
}
