//! What the processes of a cluster agree by, and know each other by.

use std::path::PathBuf;
use std::process::Command;

use simshard_transport::Dialer;

use super::secrets::Secrets;

/// What the processes of a cluster agree by, and know each other by, if they do.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) agreed: Agreed,
    pub(super) secrets: Option<Secrets>,
}

/// What the processes of a cluster agree by.
#[derive(Clone, Debug)]
pub(super) enum Agreed {
    LayoutFile(PathBuf),
    /// An address, as `--metadata` takes it, at which nodes register themselves.
    Metadata(String),
}

impl Place {
    pub(super) fn give_to(&self, command: &mut Command) {
        match &self.agreed {
            Agreed::LayoutFile(path) => command.arg("--cluster").arg(path),
            Agreed::Metadata(address) => command.arg("--metadata").arg(address),
        };
    }

    /// What asks nodes.
    pub(super) fn dialer(&self) -> anyhow::Result<Dialer> {
        let secrets = self.secrets.as_ref();
        secrets.map_or_else(|| Ok(Dialer::new(None)), Secrets::dialer)
    }
}
