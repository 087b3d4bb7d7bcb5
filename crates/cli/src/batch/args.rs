//! The arguments of the batch commands.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueHint};
use simshard_simhash::Recipe;

use crate::exit::UsageError;
use crate::input::InputArgs;
use crate::output::{Output, OutputFormat};
use crate::recipe::recipe_names;

/// The bytes of a window unless the caller says how many.
const USUAL_WINDOW: u32 = 5;

/// What to read, and how texts become fingerprints.
#[derive(Args, Debug)]
pub struct ReadArgs {
    /// The documents.
    #[command(flatten)]
    pub documents: InputArgs,
    /// A file to read, as if it stood among the paths; repeat for more
    #[arg(short, long, value_name = "PATH", value_hint = ValueHint::AnyPath, help_heading = "Input")]
    pub input: Vec<PathBuf>,
    /// Read the first N documents only; 0 means all
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        default_value_t = 0,
        help_heading = "Input"
    )]
    pub sample: u64,
    /// How texts become fingerprints
    #[arg(long, value_name = "NAME", default_value_t, value_parser = recipe_names(), help_heading = "Input")]
    pub recipe: Recipe,
    /// Fingerprint windows of N bytes: short for `--recipe jenkins-window-N`; 0 means 5
    #[arg(
        short,
        long,
        value_name = "N",
        conflicts_with = "recipe",
        help_heading = "Input"
    )]
    pub window: Option<u32>,
    /// With --window, leave out the last window of each text, as the program does from which the
    /// recipe is taken; `--recipe jenkins-window-N-compat` says the same
    // Of its own, for clap waives `requires` where --window conflicts with what is given.
    #[arg(
        long,
        requires = "window",
        conflicts_with = "recipe",
        help_heading = "Input"
    )]
    pub compat: bool,
}

/// Where results go, and how they are written.
#[derive(Args, Debug)]
pub struct WriteArgs {
    /// Where to write; `-` or nothing is standard output
    ///
    /// A file is written beside its place and put there when it is complete: until then, and if
    /// anything goes wrong, what stood there stays. Open descriptors, such as /dev/stdout and
    /// /dev/fd/3, are written to as they are. Outputs are not compressed.
    #[arg(short, long, value_name = "PATH", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// How to write [default: by the output's extension, else json, or tsv for `hash` and `scan`]
    ///
    /// The extensions are .json, .jsonl, .ndjson, .tsv and, where this program was built with it,
    /// .parquet; others are refused without this option.
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Output")]
    pub output_format: Option<OutputFormat>,
}

/// Arguments of `find-all` and `find-clusters`.
#[derive(Args, Debug)]
pub struct BatchArgs {
    /// What to read.
    #[command(flatten)]
    pub reading: ReadArgs,

    /// The largest distance of a pair, in bits; 0 finds equal fingerprints
    #[arg(
        short,
        long,
        value_name = "BITS",
        default_value_t = 3,
        help_heading = "Search"
    )]
    pub distance: u32,
    /// The number of blocks that fingerprints are cut into: `auto`, or a number above the distance
    ///
    /// It affects the time and the order of the pairs, not which pairs are found.
    #[arg(
        short,
        long,
        value_name = "N",
        default_value = "auto",
        help_heading = "Search"
    )]
    pub blocks: Blocks,
    /// Use this many threads, 1 to 256 [default: one a core]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=256),
        help_heading = "Search"
    )]
    pub threads: Option<u16>,

    /// Where results go.
    #[command(flatten)]
    pub writing: WriteArgs,
    /// Write a page about the result too, for a browser: distances or clusters, crowded
    /// fingerprints, timings; into a file, not to standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub report: Option<PathBuf>,
}

impl ReadArgs {
    /// What to read: the paths that stand alone and those after `--input`.
    #[must_use]
    pub fn input_args(&self) -> InputArgs {
        let mut all = self.documents.clone();
        all.paths.extend(self.input.iter().cloned());
        all
    }

    /// The recipe that is asked for, by its name or by a window.
    ///
    /// # Errors
    /// If no recipe has such a window.
    pub fn effective_recipe(&self) -> Result<Recipe, UsageError> {
        let window = match self.window {
            None => return Ok(self.recipe),
            Some(0) => USUAL_WINDOW,
            Some(window) => window,
        };
        let compat = if self.compat { "-compat" } else { "" };
        let name = format!("jenkins-window-{window}{compat}");
        let recipe = name.parse::<Recipe>();
        recipe.map_err(|error| UsageError(error.to_string()))
    }
}

impl WriteArgs {
    /// How to write; `usual` where neither the arguments nor the output's name say it.
    ///
    /// # Errors
    /// If the output's extension names no format, or one that this program was built without.
    pub fn effective_format(&self, usual: OutputFormat) -> anyhow::Result<OutputFormat> {
        let format = match self.output_format {
            Some(format) => format,
            None => OutputFormat::of_path(self.output.as_deref(), usual)?,
        };
        Ok(format.available()?)
    }

    /// Opens the output for this format; it is none of the `inputs`.
    ///
    /// # Errors
    /// If it cannot be written, or is a terminal and the format is binary.
    pub fn open(&self, format: OutputFormat, inputs: &[PathBuf]) -> anyhow::Result<Output> {
        let output = Output::open(self.output.as_deref(), inputs)?;
        if format == OutputFormat::Parquet && output.is_terminal() {
            let message = "Parquet is not for a terminal: name a file with --output";
            return Err(UsageError(message.to_owned()).into());
        }
        Ok(output)
    }
}

/// A number of blocks, or the choice left to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// Chosen from the number of fingerprints and the distance.
    Auto,
    /// As many as the caller says.
    Fixed(u32),
}

impl Blocks {
    /// The number, where the caller says it.
    #[must_use]
    pub fn fixed(self) -> Option<u32> {
        match self {
            Self::Auto => None,
            Self::Fixed(blocks) => Some(blocks),
        }
    }
}

impl FromStr for Blocks {
    type Err = UsageError;

    fn from_str(text: &str) -> Result<Self, UsageError> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let message = || UsageError("write auto or a number".to_owned());
        text.parse().map(Self::Fixed).map_err(|_| message())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_auto_or_a_number() {
        assert_eq!("auto".parse::<Blocks>().unwrap(), Blocks::Auto);
        assert_eq!("6".parse::<Blocks>().unwrap(), Blocks::Fixed(6));
        for text in ["", "Auto", "-1", "6x", "4294967296"] {
            assert!(text.parse::<Blocks>().is_err(), "{text:?}");
        }
    }
}
