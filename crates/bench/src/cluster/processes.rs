//! A cluster of real processes on this machine, made of the program that runs now, and gone when it is dropped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};
use simshard_client::{Access, Stub};
use simshard_proto::shard::v1 as shard;
use simshard_proto::shard::v1::shard_service_client::ShardServiceClient;
use simshard_topology::MapDigest;
use tempfile::TempDir;
use tonic::transport::Channel;
use tonic_health::ServingStatus;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use super::place::{Agreed, Place};
use super::process::{End, Process};
use super::requests::refused;
use super::secrets::Secrets;
use super::site::{Site, Sites};

/// The service of a node that tells whether it is ready.
const SERVICE: &str = "simshard.shard.v1.ShardService";

/// How many nodes hold each shard of a cluster whose nodes register themselves, and how many of them answer searches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Replicas {
    pub(super) all: u8,
    pub(super) hot: u8,
}

/// Nodes and a router. The processes end before their folder goes.
pub(super) struct Cluster {
    pub(super) nodes: Vec<Node>,
    router: Process,
    place: Place,
    folder: TempDir,
}

/// A node and where its documents are.
pub(super) struct Node {
    name: String,
    site: Site,
    place: Place,
    data: PathBuf,
    process: Process,
}

impl Cluster {
    /// Starts this many nodes and a router, with their data in a new folder of `parent`. Without replicas, the nodes
    /// stand in a layout file, and may have TLS.
    pub(super) fn start(
        parent: &Path,
        nodes: usize,
        replicas: Option<Replicas>,
        secrets: Option<Secrets>,
    ) -> anyhow::Result<Self> {
        match replicas {
            Some(replicas) => Self::start_with_records(parent, &Sites::here(nodes), replicas, None),
            None => {
                let folder = new_folder(parent)?;
                let (nodes, place) = listed(folder.path(), nodes, secrets)?;
                Self::with_router(folder, nodes, place, &Site::default())
            }
        }
    }

    /// Starts nodes that register themselves, and a router. Their records are at an address that `--metadata` takes, else
    /// in a file.
    pub(super) fn start_with_records(
        parent: &Path,
        sites: &Sites,
        replicas: Replicas,
        metadata: Option<String>,
    ) -> anyhow::Result<Self> {
        let folder = new_folder(parent)?;
        let file = || format!("file:{}", folder.path().join("metadata").display());
        let place = Place {
            agreed: Agreed::Metadata(metadata.unwrap_or_else(file)),
            secrets: None,
        };
        let nodes = registered(&place, folder.path(), &sites.nodes, replicas)?;
        Self::with_router(folder, nodes, place, &sites.router)
    }

    fn with_router(
        folder: TempDir,
        nodes: Vec<Node>,
        place: Place,
        site: &Site,
    ) -> anyhow::Result<Self> {
        let mut router = site.own_program()?;
        router.args(["serve", "router"]);
        site.listen(&mut router, &site.any_port());
        place.give_to(&mut router);
        if let Some(secrets) = &place.secrets {
            secrets.give_to_router(&mut router);
        }
        let router = Process::start(router).context("the router does not start")?;
        Ok(Self {
            nodes,
            router,
            place,
            folder,
        })
    }

    /// Starts another node, which registers itself and holds nothing. Answers its name.
    pub(super) fn add_node(&mut self) -> anyhow::Result<&str> {
        let name = name(self.nodes.len());
        let data = self.folder.path().join(&name);
        let mut node = Node::start(&self.place, Site::default(), data, &name)?;
        node.process
            .until_it_listens()
            .with_context(|| does_not_start(&name))?;
        self.nodes.push(node);
        Ok(&self.nodes[self.nodes.len() - 1].name)
    }

    /// Where its nodes register themselves, as `--metadata` takes it.
    pub(super) fn metadata(&self) -> String {
        match &self.place.agreed {
            Agreed::LayoutFile(path) => format!("file:{}", path.display()),
            Agreed::Metadata(address) => address.clone(),
        }
    }

    /// Where the router listens.
    pub(super) fn url(&self) -> &str {
        &self.router.url
    }

    /// The layout file of its processes.
    pub(super) fn layout_file(&self) -> PathBuf {
        layout_file(self.folder.path())
    }

    /// Where its data lies.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// New connections to the router.
    pub(super) fn connections(&self, count: usize) -> anyhow::Result<Vec<Stub>> {
        self.router.connections(count, &self.access()?)
    }

    /// What opens all of the router.
    pub(super) fn access(&self) -> anyhow::Result<Access> {
        let secrets = self.place.secrets.as_ref();
        secrets.map_or_else(|| Ok(Access::default()), Secrets::access)
    }

    /// Asks all processes to stop, the router first.
    pub(super) fn stop(mut self) -> anyhow::Result<()> {
        self.router.end(End::Stop).context("the router")?;
        for node in &mut self.nodes {
            let name = &node.name;
            node.process.end(End::Stop).with_context(|| name.clone())?;
        }
        Ok(())
    }
}

/// Nodes of a layout file. They only read of each other's names, so they come first, on any free ports.
fn listed(
    folder: &Path,
    nodes: usize,
    secrets: Option<Secrets>,
) -> anyhow::Result<(Vec<Node>, Place)> {
    let names: Vec<String> = (0..nodes).map(name).collect();
    let scheme = secrets.as_ref().map_or("http", |_| "https");
    let place = Place {
        agreed: Agreed::LayoutFile(layout_file(folder)),
        secrets,
    };
    let unknown = (1..).map(|port| format!("{scheme}://127.0.0.1:{port}"));
    write_layout(folder, names.iter().cloned().zip(unknown))?;
    let nodes = names.iter().map(|name| {
        let site = Site::default();
        let mut node = Node::start(&place, site, folder.join(name), name)?;
        node.process
            .until_it_listens()
            .with_context(|| does_not_start(name))?;
        Ok(node)
    });
    let nodes = nodes.collect::<anyhow::Result<Vec<Node>>>()?;
    let known = nodes.iter().map(|node| node.process.url.clone());
    write_layout(folder, names.iter().cloned().zip(known))?;
    Ok((nodes, place))
}

/// Nodes that register themselves, and wait until there is a cluster of them.
fn registered(
    place: &Place,
    folder: &Path,
    sites: &[Site],
    replicas: Replicas,
) -> anyhow::Result<Vec<Node>> {
    let start = |(number, site): (usize, &Site)| {
        let name = name(number);
        Node::start(place, site.clone(), folder.join(&name), &name)
    };
    let nodes = sites.iter().enumerate().map(start);
    let mut nodes = nodes.collect::<anyhow::Result<Vec<Node>>>()?;
    let mut init = Site::default().own_program()?;
    init.args(["cluster", "init", "--nodes", &sites.len().to_string()]);
    init.args([
        "--replicas",
        &replicas.all.to_string(),
        "--hot",
        &replicas.hot.to_string(),
    ]);
    place.give_to(&mut init);
    let begun = init.stderr(Stdio::null()).status()?;
    ensure!(begun.success(), "the cluster does not begin: {begun}");
    for node in &mut nodes {
        let name = &node.name;
        node.process
            .until_it_listens()
            .with_context(|| does_not_start(name))?;
    }
    Ok(nodes)
}

fn new_folder(parent: &Path) -> anyhow::Result<TempDir> {
    let mut folder = tempfile::Builder::new();
    let folder = folder.prefix("simshard-bench-").tempdir_in(parent);
    folder.with_context(|| format!("cannot make a folder in {}", parent.display()))
}

/// The name of a node, which are counted from 0.
fn name(number: usize) -> String {
    format!("n{}", number + 1)
}

fn does_not_start(name: &str) -> String {
    format!("node {name} does not start")
}

impl Node {
    fn start(place: &Place, site: Site, data: PathBuf, name: &str) -> anyhow::Result<Self> {
        let command = command(place, &site, &data, name, &site.any_port())?;
        Ok(Self {
            name: name.to_owned(),
            site,
            place: place.clone(),
            data,
            process: Process::spawn(command)?,
        })
    }

    /// What starts it where it was.
    fn command(&self) -> anyhow::Result<Command> {
        let (_, listen) = self.process.url.split_once("://").unwrap_or_default();
        command(&self.place, &self.site, &self.data, &self.name, listen)
    }

    /// Ends it, and starts it again where it was; tells when.
    pub(super) fn restart(&mut self, end: End) -> anyhow::Result<Instant> {
        self.end(end)?;
        self.start_again()
    }

    /// Ends it.
    pub(super) fn end(&mut self, end: End) -> anyhow::Result<()> {
        self.process.end(end).with_context(|| self.name.clone())
    }

    /// Freezes it: its connections stay, but nothing answers.
    pub(super) fn freeze(&self) -> anyhow::Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets it go on.
    pub(super) fn thaw(&self) -> anyhow::Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let process = Pid::from_child(&self.process.child);
        Ok(kill_process(process, signal)?)
    }

    /// Deletes its data, once it has ended.
    pub(super) fn lose_data(&self) -> anyhow::Result<()> {
        let data = &self.data;
        fs::remove_dir_all(data).with_context(|| format!("cannot delete {}", data.display()))
    }

    /// Starts it where it was, once it has ended; tells when.
    pub(super) fn start_again(&mut self) -> anyhow::Result<Instant> {
        let command = self.command()?;
        let start = Instant::now();
        self.process = Process::spawn(command)?;
        let name = &self.name;
        self.process
            .until_it_listens()
            .with_context(|| does_not_start(name))?;
        Ok(start)
    }

    /// Starts it again where it was, and tells when. What it says of its work goes to a file.
    pub(super) fn start_with_log(&mut self, log: &Path) -> anyhow::Result<Instant> {
        let mut command = self.command()?;
        command.stderr(fs::File::create(log)?);
        let start = Instant::now();
        self.process = Process::spawn_with(command, "warn,simshard_node=info")?;
        let name = &self.name;
        self.process
            .until_it_listens()
            .with_context(|| does_not_start(name))?;
        Ok(start)
    }

    /// Whether it says that it holds all its shards in sync.
    pub(super) async fn is_ready(&self) -> bool {
        let Ok(channel) = self.channel() else {
            return false;
        };
        let mut health = HealthClient::new(channel);
        let service = SERVICE.to_owned();
        let status = health.check(HealthCheckRequest { service }).await;
        status.is_ok_and(|status| status.get_ref().status == ServingStatus::Serving as i32)
    }

    /// Asks what it holds, and waits for its answer. It listens, so everything is loaded.
    pub(super) async fn answers(&self, map: MapDigest) -> anyhow::Result<()> {
        let mut stub = ShardServiceClient::new(self.channel()?);
        let request = shard::ListCorporaRequest {
            map_digest: map.0,
            node: self.name.clone(),
            left_out: Default::default(),
        };
        stub.list_corpora(request).await.map_err(refused)?;
        Ok(())
    }

    /// A new connection to it.
    fn channel(&self) -> anyhow::Result<Channel> {
        let channel = self.place.dialer()?.channel_to(&self.process.url);
        channel.map_err(refused)
    }

    /// Where it runs.
    pub(super) const fn site(&self) -> &Site {
        &self.site
    }

    /// Its process.
    pub(super) fn id(&self) -> u32 {
        self.process.child.id()
    }

    /// Its data directory.
    pub(super) fn data(&self) -> &Path {
        &self.data
    }
}

fn command(
    place: &Place,
    site: &Site,
    data: &Path,
    name: &str,
    listen: &str,
) -> anyhow::Result<Command> {
    let mut command = site.own_program()?;
    command.args(["serve", "node", "--name", name]);
    site.listen(&mut command, listen);
    place.give_to(&mut command);
    if let Some(secrets) = &place.secrets {
        secrets.give_to_node(&mut command);
    }
    command.arg("--data").arg(data);
    Ok(command)
}

fn layout_file(folder: &Path) -> PathBuf {
    folder.join("cluster.toml")
}

fn write_layout(
    folder: &Path,
    nodes: impl Iterator<Item = (String, String)>,
) -> anyhow::Result<()> {
    let node = |(name, url)| format!("[[nodes]]\nname = \"{name}\"\naddress = \"{url}\"\n");
    let path = layout_file(folder);
    fs::write(&path, nodes.map(node).collect::<String>())
        .with_context(|| format!("cannot write {}", path.display()))
}
