//! A cluster of real processes that keep their data, to be killed and started again.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use simshard_client::Client;

use crate::end::End;
use crate::metadata::Metadata;
use crate::process::Waiting;
use crate::{Certificates, Process, Shape, binary, free_addresses, run, write_layout_file};

/// How long its clients wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Nodes `n1`, `n2`, … with data directories, and one router or more, each a process. Nodes and routers are counted
/// from 0, and keep their numbers and addresses when they end and start again.
#[derive(Debug)]
pub struct ProcessCluster {
    routers: Vec<Router>,
    nodes: Vec<Option<Process>>,
    node_addresses: Vec<SocketAddr>,
    metadata: Metadata,
    /// What etcd asks for, as arguments.
    access: Vec<String>,
    /// Of a cluster whose processes know each other by them.
    certificates: Option<Certificates>,
    shape: Shape,
    /// What processes start with from now on.
    program: String,
    /// Goes after the processes have ended: one that lives on without its files gives odd answers.
    folder: tempfile::TempDir,
}

#[derive(Debug)]
struct Router {
    address: SocketAddr,
    process: Option<Process>,
}

impl ProcessCluster {
    /// Starts a cluster whose nodes register themselves in a file.
    #[must_use]
    pub fn start(shape: Shape) -> Self {
        Self::start_of(shape, binary())
    }

    /// The same, of another program than the one that was built with the test.
    #[must_use]
    pub fn start_of(shape: Shape, program: &str) -> Self {
        let mut cluster = Self::new_in_file(shape);
        cluster.use_program(program);
        cluster.begin_with_routers()
    }

    /// The same as the first, with certificates of the cluster.
    #[must_use]
    pub fn start_certified(shape: Shape, certificates: Certificates) -> Self {
        let mut cluster = Self::new_in_file(shape);
        cluster.certificates = Some(certificates);
        cluster.begin_with_routers()
    }

    /// The certificates of the cluster.
    ///
    /// # Panics
    /// If it has none.
    #[must_use]
    pub const fn certificates(&self) -> &Certificates {
        self.certificates.as_ref().expect("it has certificates")
    }

    /// The certificate of one of their owners, as arguments.
    fn certificate_args(&self, owner: &str) -> Vec<String> {
        let certificates = self.certificates.as_ref();
        certificates.map_or_else(Vec::new, |certificates| certificates.cluster_args(owner))
    }

    /// From now on, starts processes of this program.
    pub fn use_program(&mut self, program: &str) {
        program.clone_into(&mut self.program);
    }

    /// The same at an address that `--metadata` takes.
    #[must_use]
    pub fn start_at(shape: Shape, address: &str) -> Self {
        Self::new(shape, Metadata::Store(address.to_owned())).begin_with_routers()
    }

    /// The same, where etcd asks for more: with these arguments.
    #[must_use]
    pub fn start_at_with(shape: Shape, address: &str, access: Vec<String>) -> Self {
        let mut cluster = Self::new(shape, Metadata::Store(address.to_owned()));
        cluster.access = access;
        cluster.begin_with_routers()
    }

    /// Starts a cluster of this many nodes that a layout file names.
    #[must_use]
    pub fn start_by_layout(nodes: usize) -> Self {
        Self::new(Shape::of(nodes), Metadata::Files).start_all()
    }

    /// The same, with the corpora at an address that `--metadata` takes.
    #[must_use]
    pub fn start_by_layout_at(nodes: usize, address: &str) -> Self {
        let metadata = Metadata::FileAndStore(address.to_owned());
        Self::new(Shape::of(nodes), metadata).start_all()
    }

    fn new_in_file(shape: Shape) -> Self {
        let mut cluster = Self::new(shape, Metadata::Files);
        let file = format!("file:{}", text(&cluster.metadata_file()));
        cluster.metadata = Metadata::Store(file);
        cluster
    }

    fn new(shape: Shape, metadata: Metadata) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let addresses = free_addresses(shape.nodes);
        write_layout_file(&folder.path().join("cluster.toml"), &addresses);
        Self {
            nodes: (0..shape.nodes).map(|_| None).collect(),
            routers: Vec::new(),
            node_addresses: addresses,
            metadata,
            access: Vec::new(),
            certificates: None,
            shape,
            program: binary().to_owned(),
            folder,
        }
    }

    fn begin_with_routers(mut self) -> Self {
        self.begin();
        self.with_routers()
    }

    fn start_all(mut self) -> Self {
        for number in 0..self.nodes.len() {
            self.start_node(number);
        }
        self.with_routers()
    }

    fn with_routers(mut self) -> Self {
        for _ in 0..self.shape.routers {
            self.add_router();
        }
        self
    }

    /// Starts the nodes, which register themselves, then a cluster of them: also where the metadata was lost.
    pub fn begin(&mut self) {
        self.try_begin(&[]).expect("a cluster that begins");
    }

    /// The same, with more arguments of `cluster init`. Answers what it said if it failed; then no node runs.
    pub fn try_begin(&mut self, more: &[&str]) -> Result<(), String> {
        // Each waits until the cluster has begun.
        let start = |number| Waiting::start(&self.program, self.node_args(number));
        let starting: Vec<Waiting> = (0..self.nodes.len()).map(start).collect();
        let mut args = self.shape.init_args();
        args.extend(more.iter().map(|&arg| arg.to_owned()));
        args.extend(self.metadata_args());
        args.extend(self.certificate_args("client"));
        let begun = run(&self.program, args, "");
        if !begun.status.success() {
            return Err(String::from_utf8_lossy(&begun.stderr).into_owned());
        }
        for (number, node) in starting.into_iter().enumerate() {
            self.nodes[number] = Some(node.listening());
        }
        Ok(())
    }

    /// A folder for whatever goes when the cluster goes.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The first router's URL, the same after each start.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_of(0)
    }

    /// Where the nodes listen.
    #[must_use]
    pub fn node_addresses(&self) -> &[SocketAddr] {
        &self.node_addresses
    }

    /// Starts one more router, which knows the nodes by these addresses, and the corpora that there are now.
    #[must_use]
    pub fn start_router_to(&self, nodes: &[SocketAddr]) -> Process {
        let layout = self.folder.path().join("other.toml");
        write_layout_file(&layout, nodes);
        let corpora = |layout: &Path| layout.with_extension("corpora.toml");
        fs::copy(corpora(&self.layout()), corpora(&layout)).expect("there is a corpus");
        let place = ["--cluster".to_owned(), text(&layout).to_owned()];
        Process::serve(&self.program, router_args("127.0.0.1:0", place.into()))
    }

    /// The file of the metadata of nodes that register themselves in one.
    #[must_use]
    pub fn metadata_file(&self) -> PathBuf {
        self.folder().join("metadata")
    }

    /// The file that a process locks while it changes the corpora.
    #[must_use]
    pub fn corpora_lock(&self) -> PathBuf {
        let name = match self.metadata {
            Metadata::Files | Metadata::FileAndStore(_) => "cluster.corpora.lock",
            Metadata::Store(_) => "metadata.lock",
        };
        self.folder().join(name)
    }

    /// Ends a node in order, for `work` on its data, and starts it again.
    pub fn while_stopped<T>(&mut self, number: usize, work: impl FnOnce(&Path) -> T) -> T {
        self.end_node(number, End::Stopped);
        let done = work(&self.data(number));
        self.start_node(number);
        done
    }

    /// A client of the first router.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client_of(0)
    }

    /// A router's URL, the same after each start.
    #[must_use]
    pub fn url_of(&self, router: usize) -> String {
        format!("http://{}", self.routers[router].address)
    }

    /// A client of a router.
    #[must_use]
    pub fn client_of(&self, router: usize) -> Client {
        let client = Client::new(&self.url_of(router)).expect("a valid URL");
        client.with_timeout(TIMEOUT)
    }

    /// Starts one more router, and returns its number.
    pub fn add_router(&mut self) -> usize {
        let number = self.routers.len();
        self.routers.push(Router {
            address: free_addresses(1)[0],
            process: None,
        });
        self.start_router(number);
        number
    }

    /// The process id of a node.
    #[must_use]
    pub fn node_id(&self, number: usize) -> u32 {
        self.nodes[number].as_ref().expect("it runs").id()
    }

    /// What a node has logged since it listens.
    #[must_use]
    pub fn node_log(&self, number: usize) -> String {
        self.nodes[number].as_ref().expect("it runs").log()
    }

    /// The process id of the first router.
    #[must_use]
    pub fn router_id(&self) -> u32 {
        self.routers[0].process.as_ref().expect("it runs").id()
    }

    /// Ends a node, and starts it again.
    pub fn restart_node(&mut self, number: usize, end: End) {
        self.end_node(number, end);
        self.start_node(number);
    }

    /// Ends the first router, and starts it again.
    pub fn restart_router(&mut self, end: End) {
        self.end_router(0, end);
        self.start_router(0);
    }

    /// Removes the data of a node that has ended.
    pub fn lose_data(&self, number: usize) {
        fs::remove_dir_all(self.data(number)).expect("a directory");
    }

    /// Ends a node.
    pub fn end_node(&mut self, number: usize, end: End) {
        end.of(self.nodes[number].take().expect("it runs"));
    }

    /// Freezes a node: its connections stay, but nothing answers.
    pub fn freeze_node(&self, number: usize) {
        self.nodes[number].as_ref().expect("it runs").freeze();
    }

    /// Lets a frozen node go on.
    pub fn thaw_node(&self, number: usize) {
        self.nodes[number].as_ref().expect("it runs").thaw();
    }

    /// Ends a router.
    pub fn end_router(&mut self, number: usize, end: End) {
        end.of(self.routers[number].process.take().expect("it runs"));
    }

    /// The layout file.
    #[must_use]
    pub fn layout(&self) -> PathBuf {
        self.folder.path().join("cluster.toml")
    }

    /// Where a node keeps its data.
    #[must_use]
    pub fn data(&self, number: usize) -> PathBuf {
        self.folder.path().join(format!("n{}", number + 1))
    }

    /// Starts a node that has ended, with the data that it had.
    pub fn start_node(&mut self, number: usize) {
        let args = self.node_args(number);
        self.nodes[number] = Some(Process::serve(&self.program, args));
    }

    /// The same, with more arguments.
    pub fn start_node_with(&mut self, number: usize, more: &[&str]) {
        let args = self.node_args(number);
        let args = args
            .into_iter()
            .chain(more.iter().map(|arg| (*arg).to_owned()));
        self.nodes[number] = Some(Process::serve(&self.program, args));
    }

    /// The same; returns what the node logs until it listens.
    pub fn start_node_with_log(&mut self, number: usize) -> String {
        let log = self.folder.path().join(format!("n{}.log", number + 1));
        let args = self.node_args(number);
        self.nodes[number] = Some(Process::serve_with_log(&self.program, args, &log));
        fs::read_to_string(log).expect("a log")
    }

    /// The arguments that a node starts with.
    #[must_use]
    pub fn node_args(&self, number: usize) -> Vec<String> {
        let name = format!("n{}", number + 1);
        let listen = self.node_addresses[number].to_string();
        let data = self.data(number);
        let role = ["serve", "node", "--name", &name, "--listen", &listen];
        let store = ["--data", text(&data), "--memtable-mib", "1"];
        let args = role.into_iter().chain(store).map(str::to_owned);
        args.chain(self.shape.node_args())
            .chain(self.metadata_args())
            .chain(self.certificate_args("server"))
            .collect()
    }

    fn metadata_args(&self) -> Vec<String> {
        [self.metadata.args(&self.layout()), self.access.clone()].concat()
    }

    /// Starts a router that has ended, where it was.
    pub fn start_router(&mut self, number: usize) {
        let args = self.router_args(number);
        self.routers[number].process = Some(Process::serve(&self.program, args));
    }

    /// The arguments that a router starts with.
    #[must_use]
    pub fn router_args(&self, number: usize) -> Vec<String> {
        let address = self.routers[number].address.to_string();
        let mut args = router_args(&address, self.metadata_args());
        args.extend(self.certificate_args("router"));
        args
    }
}

fn router_args(listen: &str, place: Vec<String>) -> Vec<String> {
    let args = ["serve", "router", "--listen", listen].map(str::to_owned);
    args.into_iter().chain(place).collect()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a UTF-8 path")
}
