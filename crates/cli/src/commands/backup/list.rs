//! `simshard backup list`.

use std::io::Write;

use clap::Args;
use serde_json::{Value, json};
use simshard_backup::{CorpusBackup, Manifest, Repository};
use simshard_runtime::terminal::escaped;

use super::PlaceArgs;
use crate::args::JsonArgs;
use crate::say;

/// Arguments of `backup list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// Where they are.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// How they are printed.
    #[command(flatten)]
    pub output: JsonArgs,
}

/// Lists the backups.
pub(super) async fn run(args: &ListArgs) -> anyhow::Result<()> {
    let manifests = Repository::open(&args.place.place)?.manifests().await?;
    let (readable, damaged): (Vec<_>, Vec<_>) = manifests.into_iter().partition(Result::is_ok);
    let readable: Vec<Manifest> = readable.into_iter().flatten().collect();
    if args.output.json {
        for manifest in &readable {
            say::print_json(&as_json(manifest))?;
        }
    } else {
        print(&readable)?;
    }
    // The others are told of once those that can be restored are shown.
    damaged
        .into_iter()
        .try_for_each(|damaged| damaged.map(drop))?;
    Ok(())
}

fn print(manifests: &[Manifest]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "id\tended\tcorpora\tdocuments\tbytes")?;
    for manifest in manifests {
        let names: Vec<_> = manifest
            .corpora
            .iter()
            .map(|corpus| &*corpus.name)
            .collect();
        let columns = [
            escaped(&manifest.id),
            escaped(&manifest.ended),
            escaped(&names.join(",")).into_owned().into(),
        ];
        let (documents, bytes) = (manifest.documents(), manifest.bytes());
        writeln!(out, "{}\t{documents}\t{bytes}", columns.join("\t"))?;
    }
    Ok(())
}

fn as_json(manifest: &Manifest) -> Value {
    let corpus = |corpus: &CorpusBackup| {
        json!({
            "name": corpus.name,
            "blocks": corpus.blocks,
            "distance": corpus.distance,
            "recipe": corpus.recipe,
            "documents": corpus.documents(),
            "segments": corpus.segments.len(),
        })
    };
    json!({
        "id": manifest.id,
        "begun": manifest.begun,
        "ended": manifest.ended,
        "documents": manifest.documents(),
        "bytes": manifest.bytes(),
        "corpora": manifest.corpora.iter().map(corpus).collect::<Vec<_>>(),
    })
}
