//! `simshard backup restore`.

use clap::Args;
use serde_json::json;
use simshard_backup::{BackupError, CorpusBackup, Manifest, Repository, RestoreOptions, restore};
use simshard_client::Client;
use simshard_runtime::terminal::counted;

use super::{PlaceArgs, RateArgs};
use crate::args::OutcomeArgs;
use crate::connection::RouterArgs;
use crate::exit::UsageError;
use crate::progress;

/// Arguments of `backup restore`.
#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// Where it is.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Its name, as `backup list` shows it [default: the newest]
    #[arg(value_name = "BACKUP")]
    pub id: Option<String>,
    /// Restore only this corpus; may be given several times [default: all]
    #[arg(long = "corpus", value_name = "CORPUS")]
    pub corpora: Vec<String>,
    /// The name that the corpus gets, if it is one [default: as it was]
    #[arg(long = "as", value_name = "CORPUS")]
    pub name: Option<String>,
    /// Go on with a restore that was cut short: the corpus may have documents
    #[arg(long = "continue")]
    pub continues: bool,
    /// Do not read the corpus again to hold it against the backup
    #[arg(long)]
    pub no_verify: bool,
    /// How fast.
    #[command(flatten)]
    pub rate: RateArgs,
    /// How it tells of it.
    #[command(flatten)]
    pub output: OutcomeArgs,
    /// The router.
    #[command(flatten)]
    pub router: RouterArgs,
}

/// Restores corpora.
pub(super) async fn run(args: RestoreArgs) -> anyhow::Result<()> {
    let client = args.router.client()?;
    let repository = Repository::open(&args.place.place)?;
    let manifest = repository.find(args.id.as_deref()).await?;
    let corpora = chosen(&manifest, &args.corpora)?;
    if args.name.is_some() && corpora.len() != 1 {
        return Err(UsageError(format!(
            "--as names one corpus, and backup {} has {}: give --corpus",
            manifest.id,
            corpora.len()
        ))
        .into());
    }
    for corpus in corpora {
        one(&client, &repository, corpus, &args).await?;
    }
    Ok(())
}

/// The corpora of these names, or all.
fn chosen<'a>(
    manifest: &'a Manifest,
    names: &[String],
) -> Result<Vec<&'a CorpusBackup>, BackupError> {
    let mut corpora: Vec<_> = manifest.corpora.iter().collect();
    let unknown = names
        .iter()
        .find(|name| corpora.iter().all(|corpus| corpus.name != **name));
    if let Some(name) = unknown {
        return Err(BackupError::NoCorpus {
            what: format!("backup {}", manifest.id),
            name: name.clone(),
        });
    }
    if !names.is_empty() {
        corpora.retain(|corpus| names.contains(&corpus.name));
    }
    Ok(corpora)
}

async fn one(
    client: &Client,
    repository: &Repository,
    corpus: &CorpusBackup,
    args: &RestoreArgs,
) -> anyhow::Result<()> {
    let name = args.name.clone().unwrap_or_else(|| corpus.name.clone());
    let documents = corpus.documents();
    let inserts = progress::bar(&format!("restoring {name}"), Some(documents));
    let reads = progress::bar(&format!("verifying {name}"), Some(documents));
    let options = RestoreOptions {
        name: name.clone(),
        continues: args.continues,
        verifies: !args.no_verify,
        throttle: args.rate.throttle(),
    };
    let inserted = |documents| inserts.inc(documents);
    let verified = |documents| {
        inserts.finish_and_clear();
        reads.inc(documents);
    };
    let restored = restore(client, repository, corpus, options, inserted, verified).await?;
    inserts.finish_and_clear();
    reads.finish_and_clear();
    let verified = if args.no_verify {
        ""
    } else {
        ", and it is what the backup has"
    };
    let done = format!(
        "restored corpus {name}: inserted {}, {} there already{verified}",
        counted(restored.inserted, "document"),
        restored.there,
    );
    let object = json!({
        "corpus": name,
        "inserted": restored.inserted,
        "there": restored.there,
        "verified": !args.no_verify,
    });
    args.output.tell(done, &object)
}
