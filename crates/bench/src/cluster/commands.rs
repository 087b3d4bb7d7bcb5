//! Commands about a measured cluster.

use anyhow::{Context, ensure};

use super::processes::Cluster;
use super::site::Site;

impl Cluster {
    /// What `simshard cluster` prints with these arguments.
    pub(super) fn ask(&self, args: &[&str]) -> anyhow::Result<String> {
        let mut command = Site::default().own_program()?;
        command.arg("cluster").args(args);
        command.args(["--metadata", &self.metadata()]);
        let output = command.output().context("cannot run the command")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{args:?} fails: {said}");
        Ok(String::from_utf8(output.stdout)?)
    }
}
