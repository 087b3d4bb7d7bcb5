//! `evaluate` of as many documents as it takes without a sample, as a process.

use std::fs;

use anyhow::ensure;
use serde::Serialize;
use serde_json::Value;

use super::Settings;
use super::made::{Made, Wanted, run};
use crate::figure;

/// The documents, which `evaluate` compares with one another.
const DOCUMENTS: usize = 20_000;

/// The threads of the process.
const THREADS: &str = "2";

#[derive(Serialize)]
struct EvaluateFigure {
    case: &'static str,
    documents: usize,
    megabytes: f64,
    recipes: usize,
    true_pairs: u64,
    seconds: f64,
    peak_bytes: u64,
}

/// Measures it with all recipes that it compares by itself.
pub(super) fn measure(settings: &Settings) -> anyhow::Result<()> {
    let folder = tempfile::tempdir_in(&settings.folder)?;
    let made = Made::new(settings, &folder, &Wanted::Whole(DOCUMENTS))?;
    let arguments = ["evaluate", "in.jsonl.zst", "--json", "--threads", THREADS];
    let cost = run(folder.path(), &arguments)?;
    let printed = fs::read(folder.path().join("printed"))?;
    let found: Value = serde_json::from_slice(&printed)?;
    let number = |name: &str| found[name].as_u64().unwrap_or(0);
    // Short texts give the same halves now and then.
    ensure!(
        number("texts") + number("repeated") + number("wordless") == made.documents as u64
            && number("texts") > made.documents as u64 * 9 / 10,
        "evaluate compared {} of {} documents",
        number("texts"),
        made.documents
    );
    let figure = EvaluateFigure {
        case: "evaluate",
        documents: made.documents,
        megabytes: made.bytes as f64 / 1e6,
        recipes: found["recipes"].as_array().map_or(0, Vec::len),
        true_pairs: number("true_pairs"),
        seconds: cost.seconds,
        peak_bytes: cost.peak_bytes,
    };
    figure::print(&figure, settings.json, || {
        format!(
            "evaluate         {:8.1} MB/s {:8.3} s  {} documents by {} recipes, {:.3} GB at most",
            figure.megabytes / figure.seconds,
            figure.seconds,
            figure.documents,
            figure.recipes,
            figure.peak_bytes as f64 / 1e9
        )
    })
}
