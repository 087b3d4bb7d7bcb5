//! `simshard backup verify`.

use clap::Args;
use serde_json::json;
use simshard_backup::{Repository, verify};
use simshard_runtime::terminal::counted;

use super::{PlaceArgs, RateArgs};
use crate::args::OutcomeArgs;
use crate::progress;

/// Arguments of `backup verify`.
#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// Where it is.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Its name, as `backup list` shows it [default: the newest]
    #[arg(value_name = "BACKUP")]
    pub id: Option<String>,
    /// How fast.
    #[command(flatten)]
    pub rate: RateArgs,
    /// How it tells of it.
    #[command(flatten)]
    pub output: OutcomeArgs,
}

/// Reads a backup.
pub(super) async fn run(args: &VerifyArgs) -> anyhow::Result<()> {
    let repository = Repository::open(&args.place.place)?;
    let manifest = repository.find(args.id.as_deref()).await?;
    let bar = progress::bar("verifying", Some(manifest.documents()));
    let passed = |documents| bar.inc(documents);
    let verified = verify(&repository, &manifest, args.rate.throttle(), passed).await?;
    bar.finish_and_clear();
    let (documents, segments) = (verified.documents, verified.segments);
    let done = format!(
        "backup {} is whole: {} in {}",
        manifest.id,
        counted(documents, "document"),
        counted(segments, "segment"),
    );
    let object = json!({ "id": manifest.id, "documents": documents, "segments": segments });
    args.output.tell(done, &object)
}
