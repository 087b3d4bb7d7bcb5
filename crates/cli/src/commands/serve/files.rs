//! The configuration files of the roles, as they are written.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;
use simshard_router::Origin;

/// The configuration file of a node. Whatever is left out has a default or
/// comes from a flag.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawNodeConfig {
    /// The layout file.
    pub cluster: Option<PathBuf>,
    /// Where the processes of the cluster keep what they agree on.
    pub metadata: Option<String>,
    /// Certificates of the authorities that signed that of etcd.
    pub metadata_ca: Option<PathBuf>,
    /// The certificate by which etcd knows this process.
    pub metadata_cert: Option<PathBuf>,
    /// The private key of that certificate.
    pub metadata_key: Option<PathBuf>,
    /// The user of etcd.
    pub metadata_user: Option<String>,
    /// The file that holds its password.
    pub metadata_password_file: Option<PathBuf>,
    /// The certificate by which the cluster knows this process.
    pub cluster_cert: Option<PathBuf>,
    /// The private key of that certificate.
    pub cluster_key: Option<PathBuf>,
    /// The authorities of the cluster.
    pub cluster_ca: Option<PathBuf>,
    /// This node's name.
    pub name: Option<String>,
    /// Where to listen.
    pub listen: Option<SocketAddr>,
    /// Whether it may listen beyond loopback without certificates.
    #[serde(default)]
    pub insecure: bool,
    /// Where other processes reach it.
    pub address: Option<String>,
    /// How often it publishes the end of its log, if it registers itself.
    pub publish_seconds: Option<u32>,
    /// How long a shard may lack a replica before it takes it, if it registers itself.
    pub replace_seconds: Option<u32>,
    /// The directory that holds the node's documents.
    pub data: Option<PathBuf>,
    /// Changes held in memory before they are written to segments.
    pub memtable_mib: Option<u32>,
    /// Threads for each class of work.
    pub threads: Option<u16>,
    /// Memory that requests in flight may use together.
    pub in_flight_mib: Option<u32>,
    /// How long requests in flight may take after a shutdown began.
    pub drain_seconds: Option<u32>,
    /// The log tells of requests that take this many milliseconds.
    pub slow_request_ms: Option<u32>,
    /// Where its side port is.
    pub http: Option<SocketAddr>,
}

/// The configuration file of a router.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawRouterConfig {
    /// The layout file.
    pub cluster: Option<PathBuf>,
    /// Where the processes of the cluster keep what they agree on.
    pub metadata: Option<String>,
    /// Certificates of the authorities that signed that of etcd.
    pub metadata_ca: Option<PathBuf>,
    /// The certificate by which etcd knows this process.
    pub metadata_cert: Option<PathBuf>,
    /// The private key of that certificate.
    pub metadata_key: Option<PathBuf>,
    /// The user of etcd.
    pub metadata_user: Option<String>,
    /// The file that holds its password.
    pub metadata_password_file: Option<PathBuf>,
    /// The certificate by which the cluster knows this process.
    pub cluster_cert: Option<PathBuf>,
    /// The private key of that certificate.
    pub cluster_key: Option<PathBuf>,
    /// The authorities of the cluster.
    pub cluster_ca: Option<PathBuf>,
    /// Where to listen.
    pub listen: Option<SocketAddr>,
    /// Whether it may listen beyond loopback without TLS, or without authentication of clients.
    #[serde(default)]
    pub insecure: bool,
    /// How long a request may take.
    pub timeout_seconds: Option<u32>,
    /// Corpora beyond which none is created.
    pub max_corpora: Option<u32>,
    /// The web sites whose pages may use it.
    #[serde(default)]
    pub allow_origin: Vec<Origin>,
    /// The certificate by which clients know it.
    pub tls_cert: Option<PathBuf>,
    /// The private key of that certificate.
    pub tls_key: Option<PathBuf>,
    /// The authorities of clients.
    pub tls_client_ca: Option<PathBuf>,
    /// The tokens of those who may use it.
    pub tokens: Option<PathBuf>,
    /// Memory that requests in flight may use together.
    pub in_flight_mib: Option<u32>,
    /// How long requests in flight may take after a shutdown began.
    pub drain_seconds: Option<u32>,
    /// The log tells of requests that take this many milliseconds.
    pub slow_request_ms: Option<u32>,
    /// Where its side port is.
    pub http: Option<SocketAddr>,
}
