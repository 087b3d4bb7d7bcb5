//! An etcd of one member, gone when it is dropped.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use simshard_cluster::key_values_at;
use tempfile::TempDir;
use tokio::time::sleep;

use super::super::site::Site;

/// One that does not answer by then never will.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often it is asked.
const INTERVAL: Duration = Duration::from_millis(50);

pub(super) struct Etcd {
    program: PathBuf,
    site: Site,
    process: Child,
    /// Of clients, and of other members.
    addresses: [String; 2],
    folder: TempDir,
}

impl Etcd {
    /// Starts it with its data in a new folder of `parent`.
    pub(super) async fn start(program: &Path, site: &Site, parent: &Path) -> anyhow::Result<Self> {
        let addresses = site.free_addresses()?;
        let folder = tempfile::Builder::new()
            .prefix("simshard-bench-etcd-")
            .tempdir_in(parent)?;
        let process = spawn(program, site, folder.path(), &addresses)?;
        let etcd = Self {
            program: program.to_owned(),
            site: site.clone(),
            process,
            addresses,
            folder,
        };
        etcd.until_it_answers().await?;
        Ok(etcd)
    }

    /// Its address, as `--metadata` takes it.
    pub(super) fn metadata(&self) -> String {
        format!("etcd://{}", self.addresses[0])
    }

    /// Ends it without any warning.
    pub(super) fn stop(&mut self) -> anyhow::Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }

    /// Starts it where it was.
    pub(super) async fn start_again(&mut self) -> anyhow::Result<()> {
        self.process = spawn(
            &self.program,
            &self.site,
            self.folder.path(),
            &self.addresses,
        )?;
        self.until_it_answers().await
    }

    async fn until_it_answers(&self) -> anyhow::Result<()> {
        let keys = key_values_at(&self.metadata()).context("etcd")?;
        let start = Instant::now();
        while keys.read("").await.is_err() {
            ensure!(start.elapsed() < PATIENCE, "etcd does not start");
            sleep(INTERVAL).await;
        }
        Ok(())
    }
}

fn spawn(
    program: &Path,
    site: &Site,
    folder: &Path,
    addresses: &[String; 2],
) -> anyhow::Result<Child> {
    let [clients, peers] = addresses
        .each_ref()
        .map(|address| format!("http://{address}"));
    let mut command = site.command(program);
    command.arg("--data-dir").arg(folder.join("etcd"));
    command.args([
        "--listen-client-urls",
        &clients,
        "--advertise-client-urls",
        &clients,
    ]);
    command.args([
        "--listen-peer-urls",
        &peers,
        "--initial-advertise-peer-urls",
        &peers,
    ]);
    command.args(["--initial-cluster", &format!("default={peers}")]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
        .spawn()
        .with_context(|| format!("{} does not start", program.display()))
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
