//! What the processes of a cluster with TLS know each other and their clients by, as `deploy/secrets.sh` makes it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use simshard_client::Access;
use simshard_transport::{Dialer, Tls, TlsFiles};

/// The folder of each role.
const NODE: &str = "node";
const ROUTER: &str = "router";
const ADMIN: &str = "admin";

/// The flags of all processes of the cluster, and the files that they name.
const OF_CLUSTER: [(&str, &str); 3] = [
    ("--cluster-cert", "cluster.pem"),
    ("--cluster-key", "cluster.key"),
    ("--cluster-ca", "cluster-ca.pem"),
];

/// Those of a router for its clients.
const OF_CLIENTS: [(&str, &str); 3] = [
    ("--tls-cert", "tls.pem"),
    ("--tls-key", "tls.key"),
    ("--tokens", "tokens.toml"),
];

/// A folder with those of all roles.
#[derive(Clone, Debug)]
pub(super) struct Secrets(PathBuf);

impl Secrets {
    pub(super) fn of_folder(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    pub(super) fn give_to_node(&self, command: &mut Command) {
        give(command, &self.0.join(NODE), OF_CLUSTER);
    }

    pub(super) fn give_to_router(&self, command: &mut Command) {
        let folder = self.0.join(ROUTER);
        give(command, &folder, OF_CLUSTER);
        give(command, &folder, OF_CLIENTS);
    }

    /// What opens all of a router.
    pub(super) fn access(&self) -> anyhow::Result<Access> {
        let read = |file| {
            let path = self.0.join(ADMIN).join(file);
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
        };
        Ok(Access {
            authorities: Some(read("ca.pem")?),
            identity: None,
            token: Some(read("token")?),
        })
    }

    /// What asks nodes as a router does.
    pub(super) fn dialer(&self) -> anyhow::Result<Dialer> {
        let [certificate, key, authorities] =
            OF_CLUSTER.map(|(_, file)| self.0.join(ROUTER).join(file));
        let tls = Tls::load(TlsFiles {
            certificate,
            key,
            client_authorities: Some(authorities),
        });
        Ok(Dialer::new(Some(tls?)))
    }
}

fn give(command: &mut Command, folder: &Path, flags: [(&str, &str); 3]) {
    for (flag, file) in flags {
        command.arg(flag).arg(folder.join(file));
    }
}
