//! `simshard cluster scrub`: whether the replicas of each shard hold the same, and all shards of a document, and repairing
//! those that do not.

mod attempts;
mod between;
mod dropping;
mod manner;
mod places;
mod within;

use std::num::NonZeroUsize;
use std::time::{Duration, SystemTime};

use anyhow::bail;
use clap::{Args, ValueEnum};
use simshard_node::{MOST_DIFFERENCES, ScrubOptions};
use simshard_runtime::terminal::counted;
use simshard_topology::{ShardId, ShardSet, Version};

use super::MetadataArgs;
use super::access::ClusterAccess;
use crate::args::JsonArgs;
use crate::exit::is_broken_pipe;
use crate::say::{note, warn};
use attempts::Attempts;
use between::Outcomes;
use dropping::Dropping;
use manner::{Manner, SHOWN};

/// Pairs of shards that are compared at once to fill shards.
const FILLED_AT_ONCE: NonZeroUsize = NonZeroUsize::new(4).unwrap();

/// Passes over all pairs of shards, of which one must succeed at once, to fill shards.
const MOST_PASSES: usize = 5;

/// Arguments of `cluster scrub`.
#[derive(Args, Debug)]
pub struct ScrubArgs {
    /// The shards that are compared, such as 00-1f,80 [default: all]
    #[arg(long, value_name = "SHARDS")]
    pub shards: Option<ShardSet>,
    /// Give each replica and each shard the newest state of the documents that differ
    #[arg(long)]
    pub repair: bool,
    /// Then let all nodes drop old tombstones of removals, if all agrees
    #[arg(long, requires = "repair", conflicts_with_all = ["shards", "only"])]
    pub drop_tombstones: bool,
    /// Compare only the replicas of each shard, or only shards with each other [default: first replicas, then shards]
    #[arg(long, value_name = "WHAT")]
    pub only: Option<What>,
    /// Compare documents that were last changed this long ago, or longer: others may be on their way [default: 60, or 3600
    /// with --drop-tombstones]
    #[arg(long, value_name = "SECONDS")]
    pub settled_seconds: Option<u64>,
    /// Shards that are compared at once, or pairs of shards
    #[arg(long, value_name = "SHARDS", default_value = "2")]
    pub at_once: NonZeroUsize,
    /// Documents of a shard that differ of which its node takes note at once: each takes its id, and about 200 bytes
    #[arg(long, value_name = "DOCUMENTS", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_DIFFERENCES)))]
    pub most_differences: u32,
    /// How the outcome is printed.
    #[command(flatten)]
    pub output: JsonArgs,
    /// Where the metadata is.
    #[command(flatten)]
    pub metadata: MetadataArgs,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// The replicas of each shard
    Replicas,
    /// Shards with each other
    Shards,
}

impl ScrubArgs {
    fn compares(&self, what: What) -> bool {
        self.only.is_none_or(|only| only == what)
    }

    /// How long ago documents must have been changed that are compared.
    fn age(&self) -> Duration {
        let default = if self.drop_tombstones { 3600 } else { 60 };
        Duration::from_secs(self.settled_seconds.unwrap_or(default))
    }

    fn manner(&self) -> Manner {
        Manner {
            options: ScrubOptions {
                until: changed_before(self.age()),
                repairs: self.repair,
                most_differences: self.most_differences,
            },
            at_once: self.at_once,
            output: self.output,
        }
    }
}

pub(super) async fn run(args: &ScrubArgs) -> anyhow::Result<()> {
    let done = scrub(args).await;
    // Other commands take that as an end. This one says whether all is well.
    if done.as_ref().is_err_and(is_broken_pipe) {
        bail!(
            "standard output was closed, so a part of the outcome is lost: run this command again, and read all of it"
        );
    }
    done
}

async fn scrub(args: &ScrubArgs) -> anyhow::Result<()> {
    let access = args.metadata.open()?;
    let shards = args.shards.unwrap_or(ShardSet::ALL);
    let manner = args.manner();
    let age = args.age().as_secs();
    if age > 0 {
        let seconds = counted(age, "second");
        note(format!(
            "what changed in the last {seconds} is left out: see --settled-seconds"
        ));
    }
    let mut dropping = None;
    if args.drop_tombstones {
        dropping = Some(Dropping::begin(&access, args.age(), manner.options.until).await?);
    }
    let mut within = Vec::new();
    if args.compares(What::Replicas) {
        let attempts = Attempts::begin(&access).await?;
        within = within::compare(&attempts, manner, shards).await?;
        within::print(&within, &attempts.places(), args.output)?;
    }
    let mut between = Ok(Outcomes::default());
    if args.compares(What::Shards) {
        between = compare_shards(&access, manner, shards).await;
    }
    // What was found before is told, too.
    let concluded = conclude(&within, between.as_ref().ok(), args);
    if let Err(error) = between {
        let before = concluded.map_or_else(|error| format!("{error}; "), |()| String::new());
        return Err(error.context(format!("{before}shards were not compared with each other")));
    }
    concluded?;
    match dropping {
        Some(dropping) => dropping.end(args.output).await,
        None => Ok(()),
    }
}

async fn compare_shards(
    access: &ClusterAccess,
    manner: Manner,
    shards: ShardSet,
) -> anyhow::Result<Outcomes> {
    let outcomes = between::compare(access, manner, shards).await?;
    outcomes.print(manner.output)?;
    Ok(outcomes)
}

/// The last version of what was changed this long ago. If it is no time at all, there is no last one: clocks of routers may
/// be ahead.
fn changed_before(age: Duration) -> Version {
    if age.is_zero() {
        return Version::MAX;
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let until = now.unwrap_or_default().saturating_sub(age);
    Version::of_wall_time(u64::try_from(until.as_nanos()).unwrap_or(u64::MAX))
}

/// Fills shards with what all others have of them. Answers how many changes they got.
pub(super) async fn fill(access: &ClusterAccess, shards: ShardSet) -> anyhow::Result<u64> {
    let manner = Manner {
        options: ScrubOptions {
            // Clocks of routers may be ahead: all counts.
            until: Version::MAX,
            repairs: true,
            most_differences: MOST_DIFFERENCES,
        },
        at_once: FILLED_AT_ONCE,
        output: JsonArgs { json: false },
    };
    let mut repaired = 0;
    for _ in 0..MOST_PASSES {
        let outcomes = between::compare_all(access, manner, shards).await?;
        repaired += outcomes
            .values()
            .map(between::Outcome::repaired)
            .sum::<u64>();
        let failed = outcomes.iter();
        let failed =
            failed.filter_map(|(shard, outcome)| Some((*shard, outcome.problem.as_ref()?)));
        if let Some(failed) = not_compared(&Vec::from_iter(failed), " with others") {
            bail!("shards {shards} are not filled yet: {failed}; run this command again");
        }
        // Two shards that agree now may both lack what a third one has: an attempt that failed reached only some. What
        // changes meanwhile reaches all shards by itself.
        if !outcomes.values().any(|outcome| outcome.was_repeated) {
            return Ok(repaired);
        }
    }
    bail!("shards {shards} are not filled yet, as others change: run this command again")
}

/// Says which documents differ, and fails if some still do.
fn conclude(
    within: &[within::Outcome],
    between: Option<&Outcomes>,
    args: &ScrubArgs,
) -> anyhow::Result<()> {
    let shown = within.iter().flat_map(|outcome| &outcome.shown);
    shown.take(SHOWN).for_each(note);
    let by_shard = || between.iter().flat_map(|outcomes| &outcomes.by_shard);
    let shown = by_shard().flat_map(|(_, outcome)| &outcome.shown);
    shown.take(SHOWN).for_each(note);
    let mut problems = Vec::new();
    let left: u64 = within.iter().map(within::Outcome::left).sum();
    let has_more = within.iter().any(within::Outcome::has_more);
    let advice = if args.repair {
        ": run this command again; insert or remove anew what still differs then"
    } else {
        ": repair them with --repair"
    };
    if left > 0 {
        let more = if has_more { "more than " } else { "" };
        let documents = counted(left, "document");
        problems.push(format!("replicas differ in {more}{documents}{advice}"));
    } else if has_more {
        let problem = "more documents changed meanwhile than --most-differences takes note of, so not all were compared: run this command again";
        problems.push(problem.to_owned());
    }
    let left: u64 = by_shard().map(|(_, outcome)| outcome.left()).sum();
    if left > 0 {
        let documents = counted(left, "document");
        problems.push(format!("shards differ in {documents}{advice}"));
    }
    let failed = within
        .iter()
        .filter_map(|outcome| Some((outcome.shard, outcome.summary.as_ref().err()?)));
    let failed: Vec<_> = failed.collect();
    problems.extend(not_compared(&failed, ""));
    let failed =
        by_shard().filter_map(|(shard, outcome)| Some((*shard, outcome.problem.as_ref()?)));
    let failed: Vec<_> = failed.collect();
    problems.extend(not_compared(&failed, " with others"));
    problems.extend(between.and_then(Outcomes::left_out));
    if problems.is_empty() {
        return Ok(());
    }
    bail!("{}", problems.join("; "))
}

/// Says why some shards were not compared. Answers which.
fn not_compared(failed: &[(ShardId, &String)], with: &str) -> Option<String> {
    for (shard, problem) in failed.iter().take(SHOWN) {
        warn(format!("shard {shard} was not compared{with}: {problem}"));
    }
    let shards: ShardSet = failed.iter().map(|(shard, _)| *shard).collect();
    (!failed.is_empty()).then(|| format!("shards {shards} were not compared{with}"))
}
