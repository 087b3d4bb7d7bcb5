//! `simshard storage`: looking into a node's data directory, offline.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use serde_json::{Value, json};
use simshard_runtime::terminal::counted;
use simshard_storage::{Inspection, inspect};
use simshard_topology::replication::Epoch;
use simshard_topology::{ShardId, ShardSet};

use crate::args::JsonArgs;
use crate::embedded::EMBEDDED_NODE;
use crate::progress;
use crate::say;

/// Looking into a data directory.
#[derive(Debug, Subcommand)]
pub enum StorageCommand {
    /// Print what a data directory holds: corpora, segments, log
    Inspect(InspectArgs),
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

/// Arguments of `storage inspect`.
#[derive(Args, Debug)]
pub struct InspectArgs {
    /// The directory.
    #[command(flatten)]
    pub place: StorageArgs,
    /// How it is printed.
    #[command(flatten)]
    pub output: JsonArgs,
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
            let inspection = inspect(&args.place.node())?;
            if args.output.json {
                say::print_json(&as_json(&inspection))?;
            } else {
                say::print(describe(&inspection).trim_end())?;
            }
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

/// Says what is no damage, and what an operator should know all the same.
fn remark(inspection: &Inspection) {
    if !inspection.is_locked() {
        say::warn(
            "the directory has no file to lock: if a node uses it meanwhile, what is read may be incomplete",
        );
    }
    if let Some(torn) = &inspection.torn {
        let (path, offset) = (torn.path.display(), torn.offset);
        say::warn(format!(
            "{path} ends with a write that is not whole: the next start cuts it off at byte {offset}"
        ));
    }
    if let Some(end) = &inspection.abrupt_end {
        let (path, bytes) = (end.path.display(), end.bytes);
        say::warn(format!(
            "{path} ends at byte {bytes} without space allocated ahead, as a new file does, or one after a crash or \
             on a full disk: what followed, if something else cut it short, cannot be told"
        ));
    }
    if let Some(word) = &inspection.failed {
        let (path, reason) = (word.path.display(), &word.reason);
        say::warn(format!(
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
    for (epoch, shards) in installed(inspection) {
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
    let (count, bytes) = set_aside(inspection);
    if count > 0 {
        let (count, bytes) = (counted(count, "segment"), counted(bytes, "byte"));
        line(
            "set aside",
            format!("{count} with {bytes}, until copies are complete"),
        );
    }
    let _ = writeln!(text, "\nshard  segments    elements         bytes");
    for (shard, (segments, elements, bytes)) in segments_by_shard(inspection) {
        let _ = writeln!(text, "{shard}   {segments:>8}  {elements:>10}  {bytes:>12}");
    }
    text
}

/// The shards with records, by the epoch of these.
fn installed(inspection: &Inspection) -> BTreeMap<Epoch, ShardSet> {
    let mut installed: BTreeMap<Epoch, ShardSet> = BTreeMap::new();
    for (&shard, &epoch) in &inspection.epochs {
        installed.entry(epoch).or_default().insert(shard);
    }
    installed
}

/// How many segments are set aside, and their bytes.
fn set_aside(inspection: &Inspection) -> (usize, u64) {
    let segments = inspection.segments.iter();
    let aside = segments.filter(|segment| segment.is_set_aside);
    aside.fold((0, 0), |(count, bytes), segment| {
        (count + 1, bytes + segment.bytes)
    })
}

/// The segments of each shard that are in use: how many, with how many elements and bytes.
fn segments_by_shard(inspection: &Inspection) -> BTreeMap<ShardId, (usize, u64, u64)> {
    let mut shards: BTreeMap<ShardId, (usize, u64, u64)> = BTreeMap::new();
    let segments = inspection.segments.iter();
    for segment in segments.filter(|segment| !segment.is_set_aside) {
        let (segments, elements, bytes) = shards.entry(segment.shard).or_default();
        *segments += 1;
        *elements += segment.elements;
        *bytes += segment.bytes;
    }
    shards
}

/// The content of a data directory, for programs.
fn as_json(inspection: &Inspection) -> Value {
    let installed = installed(inspection).into_iter();
    let installed = installed
        .map(|(epoch, shards)| json!({ "epoch": epoch.to_string(), "shards": shards.to_string() }));
    let corpora = inspection.corpora.iter().map(|corpus| {
        let (blocks, distance) = (corpus.layout.blocks(), corpus.layout.distance());
        json!({ "uid": corpus.uid.to_string(), "blocks": blocks, "distance": distance })
    });
    let dropped = inspection.dropped.iter().map(ToString::to_string);
    let (aside, aside_bytes) = set_aside(inspection);
    let segments = segments_by_shard(inspection).into_iter();
    let segments = segments.map(|(shard, (segments, elements, bytes))| {
        json!({
            "shard": shard.to_string(),
            "segments": segments,
            "elements": elements,
            "bytes": bytes,
        })
    });
    json!({
        "store": inspection.store.to_string(),
        "manifest": inspection.generation,
        "shards": inspection.shards.to_string(),
        "log_records": inspection.log_records,
        "log_files": inspection.log_files,
        "installed": installed.collect::<Vec<_>>(),
        "corpora": corpora.collect::<Vec<_>>(),
        "dropped": dropped.collect::<Vec<_>>(),
        "segments": segments.collect::<Vec<_>>(),
        "set_aside": { "segments": aside, "bytes": aside_bytes },
    })
}
