//! `simshard backup create`.

use std::cell::RefCell;

use clap::Args;
use indicatif::ProgressBar;
use serde_json::json;
use simshard_backup::{CreateOptions, Created, Repository, create};
use simshard_runtime::amounts;
use simshard_runtime::terminal::counted;

use super::{PlaceArgs, RateArgs};
use crate::args::OutcomeArgs;
use crate::completion;
use crate::connection::RouterArgs;
use crate::progress;

/// Arguments of `backup create`.
#[derive(Args, Debug)]
pub struct CreateArgs {
    /// Where it goes.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Back up only this corpus; may be given several times [default: all]
    #[arg(long = "corpus", value_name = "CORPUS", add = completion::corpora())]
    pub corpora: Vec<String>,
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

/// Makes a backup.
pub(super) async fn run(args: CreateArgs) -> anyhow::Result<()> {
    let client = args.router.client()?;
    let repository = Repository::create(&args.place.place)?;
    let options = CreateOptions {
        corpora: args.corpora,
        throttle: args.rate.throttle(),
    };
    let shown: RefCell<Option<ProgressBar>> = RefCell::new(None);
    let begins = |corpus: &str, documents| {
        let bar = progress::bar(&format!("backing up {corpus}"), documents);
        if let Some(before) = shown.replace(Some(bar)) {
            before.finish_and_clear();
        }
    };
    let passed = |documents| {
        if let Some(bar) = &*shown.borrow() {
            bar.inc(documents);
        }
    };
    let created = create(&client, &repository, options, begins, passed).await?;
    if let Some(bar) = shown.take() {
        bar.finish_and_clear();
    }
    tell(&created, args.output)
}

fn tell(created: &Created, output: OutcomeArgs) -> anyhow::Result<()> {
    let Created {
        manifest,
        new_segments,
        new_bytes,
    } = created;
    let corpora = match &manifest.corpora[..] {
        [] => "no corpus".to_owned(),
        [corpus] => format!("corpus {}", corpus.name),
        more => format!("{} corpora", more.len()),
    };
    let stored = match new_segments {
        0 => "all of which were stored already".to_owned(),
        new => {
            let bytes = amounts::bytes(*new_bytes as f64);
            format!(
                "for which {bytes} in {} were stored",
                counted(new, "new segment")
            )
        }
    };
    let documents = counted(manifest.documents(), "document");
    let done = format!(
        "made backup {} of {corpora}: {documents}, {stored}",
        manifest.id
    );
    let object = json!({
        "id": manifest.id,
        "corpora": manifest.corpora.iter().map(|corpus| &corpus.name).collect::<Vec<_>>(),
        "documents": manifest.documents(),
        "bytes": manifest.bytes(),
        "new_segments": new_segments,
        "new_bytes": new_bytes,
    });
    output.tell(done, &object)
}
