//! `simshard cluster init` and `adopt`: a cluster begins with the nodes that have registered.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueHint};
use serde_json::{Value, json};
use simshard_admin::{Cluster, DEFAULT_HOT};
use simshard_cluster::{
    Corpora, FileStore, KeyValueStore, MetadataError, MetadataStore, RegisteredStore, has_cluster,
    has_records_without_cluster, initialize, registered_stores, wait_for_stores, waiting_stores,
};
use simshard_topology::{NodeId, ShardId, ShardMap, plan_evenly};

use super::access::ClusterAccess;
use super::patience::patiently;
use super::{MetadataArgs, admin, node_name, repeat_if_raced};
use crate::args::OutcomeArgs;
use crate::completion;
use crate::embedded::{self, EMBEDDED_NODE};
use crate::exit::UsageError;
use crate::say::{note, warn};

/// Arguments of `cluster init`.
#[derive(Args, Debug)]
pub struct InitArgs {
    /// How many nodes the cluster has
    #[arg(long, value_name = "N", required_unless_present = "cluster", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub nodes: Option<u16>,
    /// How many nodes hold each shard. With several, the cluster goes on when one of them dies, without an operator
    /// [default: 3, or all nodes if they are fewer]
    #[arg(long, value_name = "N", conflicts_with = "cluster", value_parser = super::count_of_replicas)]
    pub replicas: Option<u8>,
    /// How many of them answer searches. Only these take memory for tables. Another takes over when one dies
    /// [default: 2, or all replicas if they are fewer]
    #[arg(long, value_name = "N", conflicts_with = "cluster", value_parser = super::count_of_replicas)]
    pub hot: Option<u8>,
    /// A layout file whose nodes, and their shards, the cluster has
    #[arg(long, value_name = "FILE", conflicts_with = "nodes", value_hint = ValueHint::FilePath)]
    pub cluster: Option<PathBuf>,
    /// A node whose data directory is lost: what it held is not found any more; may be given several times
    #[arg(long, value_name = "NODE", value_parser = node_name, add = completion::nodes())]
    pub lost: Vec<NodeId>,
    /// Succeed, and change nothing, if a cluster has begun there already: for scripts that run at each start
    #[arg(long)]
    pub if_none: bool,
    /// How the outcome is told.
    #[command(flatten)]
    pub output: OutcomeArgs,
    /// Where the metadata is.
    #[command(flatten)]
    pub metadata: MetadataArgs,
}

/// Arguments of `cluster adopt`.
#[derive(Args, Debug)]
pub struct AdoptArgs {
    /// The directory of `serve --data`
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub data: PathBuf,
    /// How the outcome is told.
    #[command(flatten)]
    pub output: OutcomeArgs,
    /// Where the metadata is.
    #[command(flatten)]
    pub metadata: MetadataArgs,
}

/// Replicas of each shard, where there are as many nodes.
const REPLICAS: u8 = 3;

impl InitArgs {
    fn replicas(&self) -> u8 {
        let nodes = self.nodes.unwrap_or(1);
        self.replicas.unwrap_or(nodes.min(REPLICAS.into()) as u8)
    }
}

/// Begins a cluster; again if others changed the nodes or began one at the same time.
pub(super) async fn run(args: &InitArgs) -> anyhow::Result<()> {
    match repeat_if_raced(async || begin(args).await).await {
        Err(error) if args.if_none && has_begun_already(&error) => {
            let done = "nothing is to be done: a cluster has begun already";
            args.output.tell(done, &json!({ "begun": false }))
        }
        begun => begun,
    }
}

fn has_begun_already(error: &anyhow::Error) -> bool {
    let begun = error.downcast_ref();
    begun.is_some_and(|error| matches!(error, MetadataError::AlreadyInitialized))
}

/// Begins a cluster of the one node that serves what a single process served.
pub(super) async fn adopt(args: &AdoptArgs) -> anyhow::Result<()> {
    embedded::corpora(&args.data).await?;
    let access = args.metadata.open()?;
    patiently(async || registered_stores(access.keys()).await).await?;
    let nodes = wait_for_nodes(&access.keys, |nodes| adopter_missing(&args.data, nodes)).await?;
    if nodes.len() > 1 {
        let names = listed(&nodes);
        let problem = format!(
            "registered nodes: {names}; one alone is to begin with the data of {}: take another prefix or path, and \
             start the others once the cluster has begun",
            args.data.display()
        );
        return Err(UsageError(problem).into());
    }
    // The process that served the directory has ended, as a node has it now: nothing changes its corpora any more.
    let corpora = embedded::corpora(&args.data).await?;
    let map = plan_evenly(None, &nodes, 1)?;
    repeat_if_raced(async || Ok(initialize(access.keys(), &map, 1, &corpora, &[]).await?)).await?;
    let count = corpora.records().count();
    let kind = if count == 1 { "corpus" } else { "corpora" };
    let done = format!(
        "the cluster has begun: {}, with {count} {kind}",
        shares(&map)
    );
    args.output.tell(done, &object_of(&map, 1, &corpora))
}

async fn begin(args: &InitArgs) -> anyhow::Result<()> {
    let replicas = args.replicas();
    let hot = args.hot.unwrap_or(DEFAULT_HOT.min(replicas));
    if hot > replicas {
        let problem = format!("--hot {hot} is more than --replicas {replicas}");
        return Err(UsageError(problem).into());
    }
    let access = args.metadata.open()?;
    if patiently(async || has_cluster(access.keys()).await).await? {
        return Err(MetadataError::AlreadyInitialized.into());
    }
    if let Some(fault) = access.keys().known_fault().await {
        warn(format!("warning: {fault}"));
    }
    let (map, corpora) = match &args.cluster {
        Some(file) => {
            let files = FileStore::open(file).await?;
            let layout = files.layout().await?;
            wait_for_nodes(&access.keys, |nodes| names_missing(layout.map(), nodes)).await?;
            let idle = idle_nodes(access.keys()).await?;
            warn_of_idle(layout.map().nodes(), &idle);
            (layout.map().clone(), files.corpora().await?)
        }
        None => {
            let count = args.nodes.map_or(1, usize::from);
            let nodes = wait_for_nodes(&access.keys, |nodes| count_missing(count, nodes)).await?;
            let idle = idle_nodes(access.keys()).await?;
            let nodes = exactly(count, nodes, &idle)?;
            warn_of_idle(&nodes, &idle);
            (plan_evenly(None, &nodes, replicas.into())?, Arc::default())
        }
    };
    check_no_cluster_runs(&access).await?;
    initialize(access.keys(), &map, hot, &corpora, &args.lost).await?;
    let done = format!("the cluster has begun: {}", shares(&map));
    args.output.tell(done, &object_of(&map, hot, &corpora))
}

/// The cluster that has begun, for programs.
fn object_of(map: &ShardMap, hot: u8, corpora: &Corpora) -> Value {
    let nodes: Vec<&str> = map.nodes().iter().map(NodeId::as_str).collect();
    let replicas = map.replicas(ShardId(0)).len();
    json!({ "begun": true, "nodes": nodes, "replicas": replicas, "hot": hot, "corpora": corpora.records().len() })
}

/// Refuses to write over the records of a cluster that lost its key while nodes serve by them: these would end. An attempt
/// that was cut off leaves records too, but its nodes wait, and answer nothing.
async fn check_no_cluster_runs(access: &ClusterAccess) -> anyhow::Result<()> {
    if !has_records_without_cluster(access.keys()).await? {
        return Ok(());
    }
    let asked = Cluster::ask(&admin(access)).await?;
    let serving = asked.names(asked.answering());
    // Another command may have begun the cluster meanwhile.
    if serving.is_empty() || !has_records_without_cluster(access.keys()).await? {
        return Ok(());
    }
    let problem = format!(
        "the key of the cluster is lost, but its shards have records, and these nodes serve by them: {serving}. Stop all \
         nodes and routers, start the nodes again, and repeat this command"
    );
    Err(UsageError(problem).into())
}

/// Waits until nothing is missing of the nodes that have registered. Says what is, whenever that changes.
async fn wait_for_nodes(
    keys: &Arc<dyn KeyValueStore>,
    missing: impl Fn(&BTreeSet<NodeId>) -> Option<String>,
) -> Result<Vec<NodeId>, MetadataError> {
    let mut told = None;
    let enough = |stores: &[RegisteredStore]| {
        let now = missing(&nodes_of(stores));
        if let Some(missing) = now.as_ref().filter(|_| now != told) {
            note(format!("waiting for nodes: {missing}"));
        }
        told.clone_from(&now);
        now.is_none()
    };
    let on_turn = |turn: Result<(), &MetadataError>| match turn {
        Err(error) => warn(format!("warning: {error}")),
        Ok(()) => note("the metadata is there again"),
    };
    let stores = wait_for_stores(keys, enough, on_turn).await?;
    Ok(nodes_of(&stores).into_iter().collect())
}

fn nodes_of(stores: &[RegisteredStore]) -> BTreeSet<NodeId> {
    stores.iter().map(|store| store.node.clone()).collect()
}

fn names_missing(map: &ShardMap, nodes: &BTreeSet<NodeId>) -> Option<String> {
    let missing = map.nodes().iter().filter(|node| !nodes.contains(node));
    let missing = listed(missing);
    (!missing.is_empty()).then(|| format!("{missing} not registered yet"))
}

/// What `adopt` waits for. The single process may run still: then no node can have its directory.
fn adopter_missing(data: &Path, nodes: &BTreeSet<NodeId>) -> Option<String> {
    let data = data.display();
    nodes.is_empty().then(|| {
        format!(
            "none has registered; stop `simshard serve --data {data}` if it runs still, and then start `simshard serve node \
             --name NAME --data {data}/{EMBEDDED_NODE}` with the same --metadata"
        )
    })
}

fn count_missing(count: usize, nodes: &BTreeSet<NodeId>) -> Option<String> {
    let found = nodes.len();
    let names = listed(nodes);
    let names = if nodes.is_empty() {
        names
    } else {
        format!(": {names}")
    };
    (found < count).then(|| format!("{found} of {count} have registered{names}"))
}

fn listed<'a>(nodes: impl IntoIterator<Item = &'a NodeId>) -> String {
    let names: Vec<&str> = nodes.into_iter().map(NodeId::as_str).collect();
    names.join(", ")
}

/// The registered nodes whose processes do not wait for their cluster.
async fn idle_nodes(keys: &dyn KeyValueStore) -> Result<BTreeSet<NodeId>, MetadataError> {
    let stores = registered_stores(keys).await?;
    let waiting = waiting_stores(keys).await?;
    let idle = stores.iter().filter(|store| !waiting.contains(&store.id));
    Ok(idle.map(|store| store.node.clone()).collect())
}

/// Warns of nodes of the new cluster that do not run.
fn warn_of_idle(nodes: &[NodeId], idle: &BTreeSet<NodeId>) {
    let idle: Vec<&NodeId> = nodes.iter().filter(|node| idle.contains(node)).collect();
    if !idle.is_empty() {
        let names = listed(idle);
        warn(format!(
            "warning: these nodes have registered, and do not run now: {names}; their shards lack a replica until they do"
        ));
    }
}

/// Refuses more nodes than were asked for. Says which of them do not run.
fn exactly(
    count: usize,
    nodes: Vec<NodeId>,
    idle: &BTreeSet<NodeId>,
) -> Result<Vec<NodeId>, UsageError> {
    if nodes.len() == count {
        return Ok(nodes);
    }
    let (found, names) = (nodes.len(), listed(&nodes));
    Err(UsageError(if idle.is_empty() {
        format!(
            "registered nodes: {names}; all of them run: give --nodes {found}, or another prefix"
        )
    } else {
        let idle = listed(idle);
        format!(
            "registered nodes: {names}; these do not run: {idle}; start them and give --nodes {found}, or start all \
             others with another prefix"
        )
    }))
}

fn shares(map: &ShardMap) -> String {
    let shares = map
        .nodes()
        .iter()
        .map(|node| format!("{node} has {}", map.shards_of(node)));
    shares.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn node(name: &str) -> NodeId {
        NodeId::new(name).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn what_others_raced_is_repeated_and_nothing_else() {
        let tries = Cell::new(0);
        let attempt = async |error: Option<MetadataError>| {
            tries.set(tries.get() + 1);
            match error {
                Some(error) if tries.get() < 4 => Err(error.into()),
                Some(_) | None => Ok(()),
            }
        };
        repeat_if_raced(async || attempt(Some(MetadataError::Raced)).await)
            .await
            .unwrap();
        assert_eq!(tries.get(), 4);
        tries.set(0);
        let other = repeat_if_raced(async || attempt(Some(MetadataError::NoCluster)).await);
        assert!(other.await.is_err());
        assert_eq!(tries.get(), 1);
    }

    #[test]
    fn who_adopts_is_told_at_once_to_stop_the_single_process() {
        let told = adopter_missing(Path::new("data"), &BTreeSet::new()).unwrap();
        assert!(
            told.contains("stop `simshard serve --data data` if")
                && told.contains("--data data/local`"),
            "{told}"
        );
        let there = BTreeSet::from([node("n1")]);
        assert_eq!(adopter_missing(Path::new("data"), &there), None);
    }

    #[test]
    fn nodes_are_named_while_some_are_missing_and_where_there_are_too_many() {
        let nodes = ["n1", "n2", "typo"].map(node);
        let two = BTreeSet::from(["n1", "n2"].map(node));
        assert_eq!(
            count_missing(3, &two).unwrap(),
            "2 of 3 have registered: n1, n2"
        );
        assert_eq!(
            count_missing(3, &BTreeSet::new()).unwrap(),
            "0 of 3 have registered"
        );
        let idle = BTreeSet::from([node("typo")]);
        let told = exactly(2, nodes.to_vec(), &idle).unwrap_err().to_string();
        assert!(told.contains("these do not run: typo;"), "{told}");
        exactly(3, nodes.to_vec(), &idle).unwrap();
    }
}
