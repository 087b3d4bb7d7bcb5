//! `simshard storage`: looking into a node's data directory, offline.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use simshard_runtime::terminal::counted;
use simshard_storage::{Inspection, inspect};
use simshard_topology::replication::Epoch;
use simshard_topology::{ShardId, ShardSet};

use crate::embedded::EMBEDDED_NODE;
use crate::progress;
use crate::say;

/// Looking into a data directory.
#[derive(Debug, Subcommand)]
pub enum StorageCommand {
    /// Print what a data directory holds: corpora, segments, log
    Inspect(StorageArgs),
    /// Read every byte of a data directory, and check it against its checksums
    #[command(after_help = "\
Ends with 0 if everything is as it was written, with 1 at the first damage,
naming file and offset. Nothing is changed, whatever is found.")]
    Verify(StorageArgs),
}

/// Arguments of `storage`.
#[derive(Args, Debug)]
pub struct StorageArgs {
    /// The data directory of a node, or of `simshard serve`; what uses it must not run
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub directory: PathBuf,
}

impl StorageArgs {
    /// The node's own directory. `serve` without a role keeps its node's in a folder of the one that it is given.
    fn node(&self) -> PathBuf {
        let embedded = self.directory.join(EMBEDDED_NODE);
        if embedded.is_dir() {
            embedded
        } else {
            self.directory.clone()
        }
    }
}

/// Prints or checks.
pub fn run(command: StorageCommand) -> anyhow::Result<()> {
    match command {
        StorageCommand::Inspect(args) => {
            let inspection = inspect(&args.node())?;
            say::print(describe(&inspection).trim_end())?;
            remark(&inspection);
        }
        StorageCommand::Verify(args) => {
            let inspection = inspect(&args.node())?;
            remark(&inspection);
            check(&inspection)?;
        }
    }
    Ok(())
}

fn check(inspection: &Inspection) -> anyhow::Result<()> {
    let bytes = inspection
        .segments
        .iter()
        .map(|segment| segment.bytes)
        .sum();
    let bar = progress::bar("checking", Some(bytes));
    inspection.verify(|bytes| bar.inc(bytes))?;
    bar.finish_and_clear();
    say::print(format!(
        "sound: {} with {}, and {} of the log behind them",
        counted(inspection.segments.len(), "segment"),
        counted(bytes, "byte"),
        counted(inspection.log_records, "record"),
    ))?;
    Ok(())
}

/// Says what is no damage, and what somebody should know all the same.
fn remark(inspection: &Inspection) {
    if !inspection.is_locked() {
        say::note(
            "the directory has no file to lock: if a node uses it meanwhile, what is read may be incomplete",
        );
    }
    if let Some(torn) = &inspection.torn {
        let (path, offset) = (torn.path.display(), torn.offset);
        say::note(format!(
            "{path} ends with a write that is not whole: the next start cuts it off at byte {offset}"
        ));
    }
    if let Some(end) = &inspection.abrupt_end {
        let (path, bytes) = (end.path.display(), end.bytes);
        say::note(format!(
            "{path} ends at byte {bytes} without space allocated ahead, as a new file does, or one after a crash or \
             on a full disk: what followed, if something else cut it short, cannot be told"
        ));
    }
    if let Some(word) = &inspection.failed {
        let (path, reason) = (word.path.display(), &word.reason);
        say::note(format!(
            "{path} says that the store failed when it was last used: {reason}; it is not opened again before you \
             have checked the disk and deleted that file"
        ));
    }
}

/// The content of a data directory, for people.
fn describe(inspection: &Inspection) -> String {
    let mut text = String::new();
    // Writing into a string does not fail.
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<12}{value}");
    };
    line("store", inspection.store.to_string());
    line("manifest", format!("number {}", inspection.generation));
    line("shards", inspection.shards.to_string());
    let records = counted(inspection.log_records, "record");
    let files = counted(inspection.log_files, "file");
    line("log", format!("{records} in no segment, in {files}"));
    let mut installed: BTreeMap<Epoch, ShardSet> = BTreeMap::new();
    for (&shard, &epoch) in &inspection.epochs {
        installed.entry(epoch).or_default().insert(shard);
    }
    for (epoch, shards) in installed {
        line("installed", format!("epoch {epoch}  shards {shards}"));
    }
    for corpus in &inspection.corpora {
        let layout = corpus.layout;
        let (blocks, distance) = (counted(layout.blocks(), "block"), layout.distance());
        line(
            "corpus",
            format!("{}  {blocks}, distance {distance}", corpus.uid),
        );
    }
    for uid in &inspection.dropped {
        line("dropped", uid.to_string());
    }
    let mut shards: BTreeMap<ShardId, (usize, u64, u64)> = BTreeMap::new();
    for segment in &inspection.segments {
        let (segments, elements, bytes) = shards.entry(segment.shard).or_default();
        *segments += 1;
        *elements += segment.elements;
        *bytes += segment.bytes;
    }
    let _ = writeln!(text, "\nshard  segments    elements         bytes");
    for (shard, (segments, elements, bytes)) in shards {
        let _ = writeln!(text, "{shard}   {segments:>8}  {elements:>10}  {bytes:>12}");
    }
    text
}
