//! `simshard backup`: make, list, verify and restore backups of corpora.

mod create;
mod list;
mod restore;
mod verify;

use clap::{Args, Subcommand, ValueHint};
use simshard_backup::Throttle;

/// What all verbs say of places.
const PLACES: &str = "\
A place is a folder, or s3://BUCKET/PREFIX in a program that is built with `s3`.
Such a store is reached as AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY say; AWS_ALLOW_HTTP=true lets it be one without TLS.";

/// The verbs of `backup`.
#[derive(Debug, Subcommand)]
pub enum BackupCommand {
    /// Back up corpora, and store only what has changed since the backups before
    #[command(after_help = create_help())]
    Create(create::CreateArgs),
    /// List the backups of a place, the oldest first, as TSV
    #[command(after_help = PLACES)]
    List(list::ListArgs),
    /// Read all of a backup, and compare it with its hashes
    #[command(after_help = PLACES)]
    Verify(verify::VerifyArgs),
    /// Restore corpora of a backup into this cluster, of whatever size it is
    #[command(after_help = restore_help())]
    Restore(restore::RestoreArgs),
}

fn create_help() -> String {
    format!(
        "\
A backup has every document that was acknowledged before the command started,
unless it is removed meanwhile. The corpora may change, and searches go on.

It is stored in segments that are named by what is in them. So backups of one
place share what is equal, and the next one stores what has changed. The list of
its segments is written last: a backup that is cut short does not count, and
what it has stored is found by the next.

Needs a token of the role read, and one replica of each shard.

{PLACES}

Examples:
  simshard backup create /backups
  simshard backup create s3://backups/simshard --corpus articles --rate 50"
    )
}

fn restore_help() -> String {
    format!(
        "\
Creates each corpus as it was, inserts its documents, reads it again, and holds
it against the backup. A corpus of the same name has to be empty, or --continue
has to say that its documents are of a restore that was cut short.

Needs a token of the role admin.

{PLACES}

Examples:
  simshard backup restore /backups
  simshard backup restore /backups 20261201T140533.482Z-qmxa --corpus articles
  simshard backup restore /backups --corpus articles --as articles-of-monday"
    )
}

/// Where backups are.
#[derive(Args, Debug)]
pub struct PlaceArgs {
    /// The folder or URL with the backups
    #[arg(value_name = "PLACE", value_hint = ValueHint::DirPath)]
    pub place: String,
}

/// How fast a backup goes.
#[derive(Args, Clone, Copy, Debug)]
pub struct RateArgs {
    /// Read at most this many megabytes each second [default: as many as can be]
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u32).range(1..))]
    pub rate: Option<u32>,
}

impl RateArgs {
    fn throttle(self) -> Throttle {
        Throttle::new(self.rate.map(|megabytes| u64::from(megabytes) * 1_000_000))
    }
}

/// Does what the command says.
pub async fn run(command: BackupCommand) -> anyhow::Result<()> {
    match command {
        BackupCommand::Create(args) => create::run(args).await,
        BackupCommand::List(args) => list::run(&args).await,
        BackupCommand::Verify(args) => verify::run(&args).await,
        BackupCommand::Restore(args) => restore::run(args).await,
    }
}
