//! A cluster in this process, on free ports.

use std::path::Path;

use simshard_cli::embedded::{EmbeddedCluster, EmbeddedConfig, Security, Tls, TlsFiles, Tokens};
use simshard_client::{Access, Client, v1};
use simshard_cluster::{ClusterLayout, CorpusName};
use simshard_proto::shard::v1 as shard;
use simshard_topology::NodeId;

use crate::certificates::Certificates;

/// Nodes `n1`, `n2`, … and a router, with a client.
#[derive(Debug)]
pub struct TestCluster {
    /// A client of the router.
    pub client: Client,
    cluster: EmbeddedCluster,
}

impl TestCluster {
    /// Starts this many nodes and a router.
    pub async fn start(nodes: usize) -> Self {
        let name = |number| NodeId::new(&format!("n{number}")).expect("a valid name");
        let config = EmbeddedConfig::in_memory((1..=nodes).map(name).collect(), 2);
        let cluster = EmbeddedCluster::start(config).await.expect("a cluster");
        let client = Client::new(&cluster.url()).expect("a valid URL");
        Self { client, cluster }
    }

    /// Starts a node and a router with TLS. Whether clients need certificates, too, is to be said.
    pub async fn secured(certificates: &Certificates, checks_clients: bool) -> Self {
        let [certificate, key] = certificates.server();
        let tls = Tls::load(TlsFiles {
            certificate,
            key,
            client_authorities: checks_clients.then(|| certificates.authority()),
        });
        let node = NodeId::new("n1").expect("a valid name");
        let config = EmbeddedConfig {
            security: Security {
                tls: Some(tls.expect("certificates")),
                tokens: None,
            },
            ..EmbeddedConfig::in_memory(vec![node], 2)
        };
        let cluster = EmbeddedCluster::start(config).await.expect("a cluster");
        let read = |path| std::fs::read_to_string(path).expect("a file");
        let [certificate, key] = certificates.client().map(read);
        let access = Access {
            authorities: Some(read(certificates.authority())),
            identity: Some((certificate, key)),
            token: None,
        };
        let client = Client::with_access(&cluster.url(), &access).expect("a client");
        Self { client, cluster }
    }

    /// Starts a node and a router that asks for the tokens of a file. Its own client has none.
    pub async fn with_tokens(file: &Path) -> Self {
        let node = NodeId::new("n1").expect("a valid name");
        let config = EmbeddedConfig {
            security: Security {
                tls: None,
                tokens: Some(Tokens::load(file).expect("tokens")),
            },
            ..EmbeddedConfig::in_memory(vec![node], 2)
        };
        let cluster = EmbeddedCluster::start(config).await.expect("a cluster");
        let client = Client::new(&cluster.url()).expect("a valid URL");
        Self { client, cluster }
    }

    /// The router's URL.
    #[must_use]
    pub fn url(&self) -> String {
        self.cluster.url()
    }

    /// The nodes and their shards.
    #[must_use]
    pub fn layout(&self) -> &ClusterLayout {
        self.cluster.layout()
    }

    /// The target of a router's requests about a corpus.
    pub async fn target(&self, name: &str) -> shard::Target {
        let name = CorpusName::new(name).expect("a valid name");
        let record = self.cluster.store().corpus(&name).await;
        let record = record.expect("a store").expect("a corpus");
        shard::Target {
            corpus_uid: record.uid.to_string(),
            blocks: record.blocks,
            distance: record.distance,
            map_digest: self.layout().map().digest().0,
            ..shard::Target::default()
        }
    }

    /// Creates a corpus for fingerprints.
    pub async fn create_corpus(&self, name: &str, blocks: u32, distance: u32) {
        let request = v1::CreateCorpusRequest {
            name: name.to_owned(),
            blocks: Some(blocks),
            distance: Some(distance),
            recipe: String::new(),
        };
        let created = self.client.create_corpus(request).await;
        created.unwrap_or_else(|error| panic!("({blocks}, {distance}): {error}"));
    }

    /// Stops a node for good.
    pub async fn stop_node(&mut self, name: &str) {
        let node = NodeId::new(name).expect("a valid name");
        self.cluster.stop_node(&node).await.expect("a clean end");
    }

    /// Stops everything that still runs.
    pub async fn stop(self) {
        self.cluster.stop().await.expect("a clean end");
    }
}
