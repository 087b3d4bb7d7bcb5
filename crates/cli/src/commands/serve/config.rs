//! Settings of the roles: raw ones from flags, environment and file, and the
//! validated ones made of them. Nothing is bound before these are whole.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use simshard_cluster::{KeyValueStore, MetadataAway, key_values_with};
use simshard_node::Dialer;
use simshard_node::{NodeConfig, StorageOptions, Takeover};
use simshard_router::{Origin, RouterConfig, Security, Tls, Web};
use simshard_runtime::config::load;
use simshard_runtime::observed::Observed;
use simshard_topology::NodeId;

use super::files::{RawNodeConfig, RawRouterConfig};
use super::{
    NodeArgs, RoleArgs, RouterRoleArgs, SecurityArgs, ServeArgs, exposure, seconds,
    threads_or_cores,
};
use crate::args::{ClusterCertificateArgs, EtcdAccessArgs};
use crate::embedded::{
    DRAIN, EMBEDDED_NODE, EmbeddedConfig, IN_FLIGHT_BYTES, MAX_CORPORA, TIMEOUT,
};
use crate::exit::UsageError;

/// How often a node that registers itself publishes the end of its log.
const PUBLISH: Duration = Duration::from_secs(10);

/// How long a request may take before the log tells of it.
const SLOW_REQUEST: Duration = Duration::from_secs(1);

/// Least memory for requests in flight.
const LEAST_IN_FLIGHT_MIB: u32 = 64;

/// A role of a cluster, ready to start.
#[derive(Debug)]
pub(super) struct Role<A, C> {
    /// Where the metadata of the cluster is.
    pub(super) metadata: Place,
    /// Where it answers.
    pub(super) presence: A,
    /// Where its side port is, if it has one.
    pub(super) http: Option<SocketAddr>,
    /// The configuration of the role itself.
    pub(super) config: C,
}

/// Where the metadata of a cluster is.
#[derive(Debug)]
pub(super) enum Place {
    /// The layout is in a file, and the corpora are beside it.
    Files(PathBuf),
    /// The layout is in a file, and the corpora are in a store.
    FileAndStore(PathBuf, Arc<dyn KeyValueStore>),
    /// All is in a store, and nodes register themselves there.
    Store(Arc<dyn KeyValueStore>),
}

impl Place {
    /// The store, if there is one.
    pub(super) const fn store(&self) -> Option<&Arc<dyn KeyValueStore>> {
        match self {
            Self::Files(_) => None,
            Self::FileAndStore(_, store) | Self::Store(store) => Some(store),
        }
    }
}

/// Where a node answers, and how it registers itself.
#[derive(Debug)]
pub(super) struct NodePresence {
    /// Where it listens. Left out, that is its address in the layout file.
    pub(super) listen: Option<SocketAddr>,
    /// Whether it may listen beyond loopback without certificates.
    pub(super) insecure: bool,
    /// Where other processes reach it. Left out, that is where it listens.
    pub(super) address: Option<String>,
    /// How often it publishes the end of its log.
    pub(super) publish: Duration,
    /// Whether it goes on with a directory that lacks acknowledged changes.
    pub(super) accepts_loss: bool,
}

pub(super) type NodeRole = Role<NodePresence, NodeConfig>;

pub(super) type RouterRole = Role<SocketAddr, RouterConfig>;

pub(super) fn embedded(args: &ServeArgs) -> anyhow::Result<EmbeddedConfig> {
    let security = args.security.clone().load()?;
    check_exposure(args.listen, &security, args.process.insecure)?;
    Ok(EmbeddedConfig {
        nodes: vec![NodeId::new(EMBEDDED_NODE)?],
        listen: args.listen,
        data: args.store.data.clone(),
        storage: storage(args.store.memtable_mib)?,
        threads: threads_or_cores(args.store.threads),
        max_corpora: max_corpora(args.limits.max_corpora)?,
        in_flight_bytes: in_flight(args.process.in_flight_mib)?,
        drain: drain(args.process.drain_seconds),
        observed: observed(args.process.slow_request_ms),
        web: web(&args.limits.allow_origin),
        security,
    })
}

pub(super) fn node(args: &NodeArgs) -> anyhow::Result<NodeRole> {
    let file: RawNodeConfig = file(&args.role)?;
    let access = EtcdAccessArgs {
        metadata_ca: file.metadata_ca,
        metadata_cert: file.metadata_cert,
        metadata_key: file.metadata_key,
        metadata_user: file.metadata_user,
        metadata_password_file: file.metadata_password_file,
    };
    let name = args
        .name
        .clone()
        .or(file.name)
        .ok_or_else(|| missing("--name"))?;
    let threads = positive("threads", args.store.threads.or(file.threads))?;
    let publish = args.publish_seconds.or(file.publish_seconds);
    let publish = positive("publish_seconds", publish)?;
    let replace = args.replace_seconds.or(file.replace_seconds);
    let replace = positive("replace_seconds", replace)?;
    let process = args.role.process;
    let config = NodeConfig {
        takeover: replace.map_or_else(Takeover::default, |after| Takeover {
            after: seconds(after),
            // The metadata says it when the node registers itself.
            at_once: false,
        }),
        node: NodeId::new(&name).map_err(|error| UsageError(error.to_string()))?,
        data: path(&args.role, args.store.data.as_ref(), file.data),
        storage: storage(args.store.memtable_mib.or(file.memtable_mib))?,
        threads: threads_or_cores(threads),
        in_flight_bytes: in_flight(process.in_flight_mib.or(file.in_flight_mib))?,
        drain: drain(process.drain_seconds.or(file.drain_seconds)),
        observed: observed(process.slow_request_ms.or(file.slow_request_ms)),
        certificates: certificates(
            &args.role,
            [file.cluster_cert, file.cluster_key, file.cluster_ca],
        )?,
    };
    Ok(Role {
        metadata: place(&args.role, file.cluster, file.metadata, access)?,
        presence: NodePresence {
            listen: args.listen.or(file.listen),
            insecure: process.insecure || file.insecure,
            address: args.address.clone().or(file.address),
            publish: publish.map_or(PUBLISH, seconds),
            accepts_loss: args.accept_lost_changes,
        },
        http: process.http.or(file.http),
        config,
    })
}

pub(super) fn router(args: &RouterRoleArgs) -> anyhow::Result<RouterRole> {
    let file: RawRouterConfig = file(&args.role)?;
    let access = EtcdAccessArgs {
        metadata_ca: file.metadata_ca,
        metadata_cert: file.metadata_cert,
        metadata_key: file.metadata_key,
        metadata_user: file.metadata_user,
        metadata_password_file: file.metadata_password_file,
    };
    let listen = args.listen.or(file.listen);
    let timeout = args.timeout_seconds.or(file.timeout_seconds);
    let timeout = positive("timeout_seconds", timeout)?;
    let process = args.role.process;
    let config = RouterConfig {
        timeout: timeout.map_or(TIMEOUT, seconds),
        max_corpora: max_corpora(args.limits.max_corpora.or(file.max_corpora))?,
        in_flight_bytes: in_flight(process.in_flight_mib.or(file.in_flight_mib))?,
        drain: drain(process.drain_seconds.or(file.drain_seconds)),
        observed: observed(process.slow_request_ms.or(file.slow_request_ms)),
        web: web(if args.limits.allow_origin.is_empty() {
            &file.allow_origin
        } else {
            &args.limits.allow_origin
        }),
        security: SecurityArgs {
            tls_cert: path(&args.role, args.security.tls_cert.as_ref(), file.tls_cert),
            tls_key: path(&args.role, args.security.tls_key.as_ref(), file.tls_key),
            tls_client_ca: path(
                &args.role,
                args.security.tls_client_ca.as_ref(),
                file.tls_client_ca,
            ),
            tokens: path(&args.role, args.security.tokens.as_ref(), file.tokens),
        }
        .load()?,
        dialer: Dialer::new(certificates(
            &args.role,
            [file.cluster_cert, file.cluster_key, file.cluster_ca],
        )?),
    };
    let listen = listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 7460)));
    let insecure = process.insecure || file.insecure;
    check_exposure(listen, &config.security, insecure)?;
    Ok(Role {
        metadata: place(&args.role, file.cluster, file.metadata, access)?,
        presence: listen,
        http: process.http.or(file.http),
        config,
    })
}

/// Refuses a router that listens beyond loopback without protection.
fn check_exposure(
    listen: SocketAddr,
    security: &Security,
    insecure: bool,
) -> Result<(), UsageError> {
    let lack = exposure::of_router(security.tls.is_some(), security.knows_callers());
    exposure::check(listen, lack, insecure)
}

fn file<T: DeserializeOwned + Default>(args: &RoleArgs) -> Result<T, UsageError> {
    match &args.config {
        None => Ok(T::default()),
        Some(path) => load(path).map_err(|error| UsageError(error.to_string())),
    }
}

fn place(
    args: &RoleArgs,
    layout: Option<PathBuf>,
    store: Option<String>,
    access: EtcdAccessArgs,
) -> Result<Place, UsageError> {
    let layout = path(args, args.cluster.as_ref(), layout);
    match (layout, metadata(args, store, access)?) {
        (Some(layout), None) => Ok(Place::Files(layout)),
        (Some(layout), Some(store)) => Ok(Place::FileAndStore(layout, store)),
        (None, Some(store)) => Ok(Place::Store(store)),
        (None, None) => Err(missing("--cluster, or --metadata,")),
    }
}

fn metadata(
    args: &RoleArgs,
    in_file: Option<String>,
    access_in_file: EtcdAccessArgs,
) -> Result<Option<Arc<dyn KeyValueStore>>, UsageError> {
    let Some(address) = metadata_address(args, in_file) else {
        return Ok(None);
    };
    let access = access(args, access_in_file).load()?;
    let store = key_values_with(&address, &access);
    store
        .map(Some)
        .map_err(|error| UsageError(error.to_string()))
}

/// The access to etcd: files named in a configuration file are as seen from there.
fn access(args: &RoleArgs, in_file: EtcdAccessArgs) -> EtcdAccessArgs {
    let seen_from_here = |named: Option<PathBuf>| path(args, None, named);
    args.access.clone().or(EtcdAccessArgs {
        metadata_ca: seen_from_here(in_file.metadata_ca),
        metadata_cert: seen_from_here(in_file.metadata_cert),
        metadata_key: seen_from_here(in_file.metadata_key),
        metadata_user: in_file.metadata_user,
        metadata_password_file: seen_from_here(in_file.metadata_password_file),
    })
}

/// The certificates of the cluster, by flags or a configuration file.
fn certificates(args: &RoleArgs, in_file: [Option<PathBuf>; 3]) -> Result<Option<Tls>, UsageError> {
    let ClusterCertificateArgs {
        cluster_cert,
        cluster_key,
        cluster_ca,
    } = &args.certificates;
    let [cert, key, ca] = in_file;
    let certificates = ClusterCertificateArgs {
        cluster_cert: path(args, cluster_cert.as_ref(), cert),
        cluster_key: path(args, cluster_key.as_ref(), key),
        cluster_ca: path(args, cluster_ca.as_ref(), ca),
    };
    certificates.load()
}

fn metadata_address(args: &RoleArgs, in_file: Option<String>) -> Option<String> {
    let seen_from_here = |address: String| match address.strip_prefix("file:") {
        Some(place) => {
            let place = path(args, None, Some(place.into()))?;
            Some(format!("file:{}", place.display()))
        }
        None => Some(address),
    };
    let flag = args.metadata.clone();
    flag.or_else(|| in_file.and_then(seen_from_here))
}

fn drain(in_seconds: Option<u32>) -> Duration {
    in_seconds.map_or(DRAIN, seconds)
}

/// A path: a flag's is as seen from here, that in a configuration file as seen from there.
fn path(args: &RoleArgs, flag: Option<&PathBuf>, in_file: Option<PathBuf>) -> Option<PathBuf> {
    if let Some(path) = flag {
        return Some(path.clone());
    }
    let folder = args.config.as_deref().and_then(Path::parent);
    in_file.map(|path| folder.map_or(path.clone(), |folder| folder.join(path)))
}

fn storage(memtable_mib: Option<u32>) -> Result<StorageOptions, UsageError> {
    let mut options = StorageOptions::default();
    if let Some(mib) = positive("memtable_mib", memtable_mib)? {
        options.memtable_bytes = (mib as usize) << 20;
    }
    Ok(options)
}

fn web(allowed_origins: &[Origin]) -> Web {
    let allowed_origins = allowed_origins.to_vec();
    Web { allowed_origins }
}

fn max_corpora(corpora: Option<u32>) -> Result<usize, UsageError> {
    let corpora = positive("max_corpora", corpora)?;
    Ok(corpora.map_or(MAX_CORPORA, |corpora| corpora as usize))
}

/// A setting that is not 0.
fn positive<T: Default + PartialEq>(key: &str, value: Option<T>) -> Result<Option<T>, UsageError> {
    if value == Some(T::default()) {
        return Err(UsageError(format!("{key} must be 1 or more")));
    }
    Ok(value)
}

/// What the process shows of itself; its log tells of requests that take this many milliseconds.
fn observed(slow_request_ms: Option<u32>) -> Observed {
    let slow = slow_request_ms.map_or(SLOW_REQUEST, |ms| Duration::from_millis(ms.into()));
    let observed = Observed::telling_of_slow((!slow.is_zero()).then_some(slow));
    // Shown from the start, while nothing follows the metadata.
    let _: MetadataAway = observed.metrics();
    observed
}

fn in_flight(mib: Option<u32>) -> Result<usize, UsageError> {
    match mib {
        None => Ok(IN_FLIGHT_BYTES),
        Some(mib) if mib < LEAST_IN_FLIGHT_MIB => Err(UsageError(format!(
            "in_flight_mib must be {LEAST_IN_FLIGHT_MIB} or more: a few of the largest messages must fit"
        ))),
        Some(mib) => Ok((mib as usize) << 20),
    }
}

fn missing(flag: &str) -> UsageError {
    UsageError(format!(
        "{flag} is missing: give it here or in the file of --config"
    ))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::commands::serve::RoleCommand;
    use crate::{Cli, Command};

    fn serve(args: &[&str]) -> ServeArgs {
        let cli = Cli::try_parse_from([&["simshard", "serve"], args].concat()).unwrap();
        let Command::Serve(args) = cli.command else {
            panic!("{args:?} does not serve");
        };
        *args
    }

    fn parse(args: &[&str]) -> RoleCommand {
        serve(args).role.unwrap()
    }

    fn node_settings(args: &[&str]) -> anyhow::Result<NodeRole> {
        match parse(args) {
            RoleCommand::Node(args) => node(&args),
            RoleCommand::Router(_) => panic!("a router"),
        }
    }

    #[test]
    fn flags_beat_the_file_which_beats_defaults() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node.toml");
        let text = "name = 'n1'\nthreads = 3\ncluster = 'from-file.toml'\n";
        std::fs::write(&path, text).unwrap();
        let path = path.to_str().unwrap();
        let settings = node_settings(&["node", "--config", path, "--name", "n2"]).unwrap();
        assert_eq!(settings.config.node.as_str(), "n2");
        assert_eq!(settings.config.threads, 3);
        let Place::Files(layout) = settings.metadata else {
            panic!("{:?}", settings.metadata);
        };
        assert_eq!(layout, folder.path().join("from-file.toml"));
        assert_eq!(settings.config.drain, DRAIN);
    }

    #[test]
    fn the_limit_of_corpora_comes_from_flag_or_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("router.toml");
        std::fs::write(&path, "cluster = 'cluster.toml'\nmax_corpora = 7\n").unwrap();
        let path = path.to_str().unwrap();
        let flag = ["--max-corpora", "8"];
        let cases = [
            (vec!["--cluster", "x"], 1_000),
            (vec!["--config", path], 7),
            ([&["--config", path], &flag[..]].concat(), 8),
        ];
        for (args, expected) in cases {
            let RoleCommand::Router(args) = parse(&[&["router"], &args[..]].concat()) else {
                panic!("a node");
            };
            assert_eq!(router(&args).unwrap().config.max_corpora, expected);
        }
    }

    #[test]
    fn the_sites_whose_pages_may_send_requests_come_from_flags_or_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("router.toml");
        let text = "cluster = 'cluster.toml'\nallow_origin = ['https://a.example']\n";
        std::fs::write(&path, text).unwrap();
        let path = path.to_str().unwrap();
        let allowed = |args: &[&str]| {
            let RoleCommand::Router(args) = parse(&[&["router"], args].concat()) else {
                panic!("a node");
            };
            router(&args).unwrap().config.web.allowed_origins
        };
        let origins = |texts: &[&str]| -> Vec<Origin> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        assert_eq!(allowed(&["--cluster", "x"]), []);
        assert_eq!(
            allowed(&["--config", path]),
            origins(&["https://a.example"])
        );
        let two = ["--allow-origin", "https://b.example,http://c.example:8080"];
        let two = allowed(&[&["--config", path], &two[..]].concat());
        assert_eq!(
            two,
            origins(&["https://b.example", "http://c.example:8080"])
        );
        std::fs::write(path, "allow_origin = ['*']\n").unwrap();
        let RoleCommand::Router(args) = parse(&["router", "--config", path]) else {
            panic!("a node");
        };
        let refused = router(&args).unwrap_err().to_string();
        assert!(refused.contains("is no origin"), "{refused}");
    }

    #[test]
    fn the_place_of_the_corpora_is_as_seen_from_the_file_that_names_it() {
        let args = |more: &[&str]| {
            let all = [&["node", "--config", "etc/node.toml"], more].concat();
            match parse(&all) {
                RoleCommand::Node(args) => args.role,
                RoleCommand::Router(_) => panic!("a router"),
            }
        };
        let in_file = |address: &str| metadata_address(&args(&[]), Some(address.to_owned()));
        assert_eq!(in_file("file:keys"), Some("file:etc/keys".to_owned()));
        assert_eq!(in_file("file:/keys"), Some("file:/keys".to_owned()));
        assert_eq!(in_file("etcd://h:1"), Some("etcd://h:1".to_owned()));
        let flag = args(&["--metadata", "file:keys"]);
        let found = metadata_address(&flag, Some("file:other".to_owned()));
        assert_eq!(found, Some("file:keys".to_owned()));
        assert_eq!(metadata_address(&args(&[]), None), None);
        let none = EtcdAccessArgs::default();
        let error = metadata(&args(&["--metadata", "etcd:/h"]), None, none).unwrap_err();
        assert!(error.to_string().contains("etcd://HOST:PORT"), "{error}");
    }

    #[test]
    fn the_access_to_etcd_comes_from_flags_or_from_files_as_seen_from_the_configuration() {
        let args =
            |more: &[&str]| match parse(&[&["node", "--config", "etc/node.toml"], more].concat()) {
                RoleCommand::Node(args) => args.role,
                RoleCommand::Router(_) => panic!("a router"),
            };
        let in_file = || EtcdAccessArgs {
            metadata_ca: Some("ca.pem".into()),
            metadata_user: Some("news".to_owned()),
            metadata_password_file: Some("/password".into()),
            ..EtcdAccessArgs::default()
        };
        let found = access(&args(&[]), in_file());
        assert_eq!(found.metadata_ca, Some("etc/ca.pem".into()));
        assert_eq!(found.metadata_password_file, Some("/password".into()));
        assert_eq!(found.metadata_user.as_deref(), Some("news"));
        let flags = ["--metadata-ca", "other.pem", "--metadata-user", "web"];
        let found = access(&args(&flags), in_file());
        assert_eq!(found.metadata_ca, Some("other.pem".into()));
        assert_eq!(found.metadata_user.as_deref(), Some("web"));
    }

    #[test]
    fn a_server_without_a_role_takes_the_settings_of_both() {
        let settings = embedded(&serve(&[])).unwrap();
        assert_eq!(settings.in_flight_bytes, IN_FLIGHT_BYTES);
        assert_eq!(settings.drain, DRAIN);
        assert_eq!(settings.max_corpora, 1_000);
        let memtable_bytes = StorageOptions::default().memtable_bytes;
        assert_eq!(settings.storage.memtable_bytes, memtable_bytes);

        let in_flight = ["--in-flight-mib", "64"];
        let others = ["--memtable-mib", "2", "--drain-seconds", "3"];
        let corpora = ["--max-corpora", "5"];
        let settings = embedded(&serve(&[&in_flight[..], &others, &corpora].concat())).unwrap();
        assert_eq!(settings.max_corpora, 5);
        assert_eq!(settings.in_flight_bytes, 64 << 20);
        assert_eq!(settings.storage.memtable_bytes, 2 << 20);
        assert_eq!(settings.drain, Duration::from_secs(3));
        let wrong = [
            ("--in-flight-mib=63", "64"),
            ("--memtable-mib=0", "1"),
            ("--max-corpora=0", "1"),
        ];
        for (wrong, least) in wrong {
            let error = embedded(&serve(&[wrong])).unwrap_err();
            assert!(
                error.to_string().contains(&format!("{least} or more")),
                "{error}"
            );
        }
    }

    #[test]
    fn settings_that_are_missing_or_unknown_are_named() {
        let error = node_settings(&["node", "--name", "n1"]).unwrap_err();
        assert!(error.to_string().contains("--cluster"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node.toml");
        std::fs::write(&path, "nmae = 'n1'\n").unwrap();
        let error = node_settings(&["node", "--config", path.to_str().unwrap()]).unwrap_err();
        assert!(error.to_string().contains("nmae"), "{error}");
        let too_little = [
            "node",
            "--name",
            "n1",
            "--cluster",
            "x",
            "--in-flight-mib",
            "63",
        ];
        let error = node_settings(&too_little).unwrap_err();
        assert!(error.to_string().contains("64 or more"), "{error}");
    }

    #[test]
    fn the_examples_in_deploy_load() {
        let deploy = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");
        let config = format!("{deploy}/node.toml");
        node_settings(&["node", "--config", &config]).unwrap();
        let config = format!("{deploy}/router.toml");
        match parse(&["router", "--config", &config]) {
            RoleCommand::Router(args) => drop(router(&args).unwrap()),
            RoleCommand::Node(_) => panic!("a node"),
        }
    }
}
