//! `simshard evaluate`: how well recipes find the near-duplicates of given texts.

use std::fs;
use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, ValueHint};
use simshard_batch::evaluate::{
    Evaluate, EvaluateError, Labels, MOST_TABLES, Suggestion, Truth, Want, evaluate,
};
use simshard_batch::report::evaluation_page;
use simshard_simhash::{Recipe, TextRecipe, Window};

use crate::args::{InputArgs, document_count, open_report};
use crate::exit::UsageError;
use crate::progress::SHOWN;
use crate::recipe::text_recipe_names;
use crate::say;

mod tables;

/// Arguments of `evaluate`.
#[derive(Args, Debug)]
#[command(after_help = "\
Prints what each recipe finds up to each distance from 0 to 10: precision, the
share of found pairs that are true; recall, the share of true pairs that are
found; F1; and the share of found pairs with less than half in common. Some
degenerate texts, the nearest unlike pairs and the farthest true ones are named,
to be looked at.

Texts equal word for word count once. Of more different texts than --sample,
random ones are taken with what is near them by words-v3. Shares are those of
the sample, with intervals of 95 %.

It ends with 1 if nothing meets --want, with 2 if fewer than 100 pairs are true.
Labels need pairs of both kinds: without any 0, precision is not measured, and
nothing is suggested but by --want recall=SHARE.

Examples:
  simshard evaluate pages.jsonl --want recall=0.95,precision=0.9
  simshard evaluate texts/ --recipes words-v3,words-v2 --report page.html
  simshard evaluate pages.jsonl --pairs labels.tsv --json")]
pub struct EvaluateArgs {
    /// The documents.
    #[command(flatten)]
    pub documents: InputArgs,
    /// Evaluate at most N different texts; 0 means all
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        default_value_t = 20_000,
        help_heading = "Input"
    )]
    pub sample: usize,
    /// Leave out texts of fewer words, and say how many
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Input")]
    pub min_words: usize,

    /// True pairs: texts whose runs of WORDS words have a Jaccard similarity of LEAST or more
    #[arg(
        long,
        value_name = "jaccard:WORDS:LEAST",
        default_value = "jaccard:5:0.8",
        help_heading = "Truth"
    )]
    pub truth: Truth,
    /// A file of `id<TAB>id<TAB>0|1` lines that says which pairs are true; no others are looked at
    #[arg(long, value_name = "LABELS.tsv", conflicts_with = "truth", value_hint = ValueHint::FilePath, help_heading = "Truth")]
    pub pairs: Option<PathBuf>,

    /// The recipes to compare, with commas between [default: every listed one, and words-v2-3]
    #[arg(long, value_name = "RECIPES", value_delimiter = ',', value_parser = text_recipe_names(), hide_possible_values = true, help_heading = "Choice")]
    pub recipes: Vec<TextRecipe>,
    /// Suggest the recipe, distance and blocks of the fewest tables with at least these shares, such as
    /// recall=0.95,precision=0.9. A precision alone suggests those of the greatest recall [default: those of the
    /// greatest F1]
    #[arg(long, value_name = "SHARES", help_heading = "Choice")]
    pub want: Option<Want>,
    /// How many documents there will be, such as 1e8: it decides about blocks
    #[arg(long = "documents", value_name = "N", default_value = "1e8", value_parser = document_count, help_heading = "Choice")]
    pub documents_expected: f64,

    /// Use this many threads, 1 to 256 [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256), help_heading = None)]
    pub threads: Option<u16>,
    /// Print one JSON object instead of tables, with the figures by length too
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Write a page with plots too, for a browser; into a file, not to standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub report: Option<PathBuf>,
}

/// What to know where labels say of no pair that it is not true.
const NO_PRECISION: &str = "no compared pair is labelled 0, so precision is not measured: label pairs that are unlike too. \
     For a suggestion by recall alone, give --want recall=SHARE";

/// Prints the figures.
pub fn run(args: &EvaluateArgs) -> anyhow::Result<()> {
    let mut input = args.documents.options().expanded()?;
    input.min_words = args.min_words;
    let report = open_report(args.report.as_deref(), &args.files_read(&input.paths))?;
    let job = Evaluate {
        input,
        recipes: args.recipes(),
        sample: args.sample,
        truth: args.truth,
        labels: args.labels()?,
        threads: args.threads.map_or(0, usize::from),
    };
    let found = evaluate(&job, SHOWN);
    if let Err(EvaluateError::FewTruePairs(found)) = &found {
        say::left_out(&found.skipped);
        say::warn(tables::counts(found));
    }
    let found = found?;
    say::left_out(&found.skipped);
    if !found.measures_precision() {
        say::warn(NO_PRECISION);
    }
    let suggestion = Suggestion::of(&found, args.want, args.documents_expected);
    if args.json {
        let mut all = found.json();
        all["suggestion"] = suggestion.map_or(serde_json::Value::Null, |one| one.json());
        say::print_json(&all)?;
    } else {
        say::print(tables::of(&found, suggestion).trim_end())?;
    }
    if let Some(report) = report {
        let settings = args.settings();
        let page = evaluation_page(&found, suggestion, &job.input.names(), &settings);
        report.write_whole(&page)?.commit()?;
    }
    if suggestion.is_none() && args.want.is_some() {
        bail!("no recipe and distance meets --want with at most {MOST_TABLES} tables");
    }
    Ok(())
}

impl EvaluateArgs {
    fn recipes(&self) -> Vec<TextRecipe> {
        if !self.recipes.is_empty() {
            return self.recipes.clone();
        }
        let listed = Recipe::LISTED.into_iter();
        let mut recipes: Vec<_> = listed
            .filter_map(|recipe| recipe.for_texts().ok())
            .collect();
        recipes.extend(Window::new(3).map(TextRecipe::WordsV2));
        recipes
    }

    /// The inputs, and the labels beside them.
    fn files_read(&self, inputs: &[PathBuf]) -> Vec<PathBuf> {
        let mut files = inputs.to_vec();
        if files.is_empty() {
            files.push(PathBuf::from("-"));
        }
        files.extend(self.pairs.clone());
        files
    }

    fn labels(&self) -> anyhow::Result<Option<Labels>> {
        let Some(path) = &self.pairs else {
            return Ok(None);
        };
        let name = path.display();
        let text = fs::read_to_string(path)
            .map_err(|error| UsageError(format!("cannot read {name}: {error}")))?;
        let labels =
            Labels::parse(&text).map_err(|error| UsageError(format!("{name}: {error}")))?;
        Ok(Some(labels))
    }

    /// The settings that the result depends on, for the report.
    fn settings(&self) -> Vec<(String, String)> {
        let truth = match &self.pairs {
            Some(path) => format!("labels of {}", path.display()),
            None => format!(
                "Jaccard similarity of runs of {} words, {} or more",
                self.truth.window, self.truth.least
            ),
        };
        let mut settings = vec![
            ("truth".to_owned(), truth),
            ("sample".to_owned(), self.sample.to_string()),
            ("min-words".to_owned(), self.min_words.to_string()),
            (
                "documents".to_owned(),
                format!("{:e}", self.documents_expected),
            ),
        ];
        if let Some(want) = self.want {
            let want = format!("recall {}, precision {}", want.recall, want.precision);
            settings.push(("want".to_owned(), want));
        }
        settings
    }
}
