//! The arguments that say what a command reads of its input, and how texts become fingerprints.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use simshard_input::InputOptions;
use simshard_simhash::Recipe;

use super::{InputArgs, RecipeArgs};
use crate::exit::UsageError;

/// What to read.
#[derive(Args, Debug)]
#[command(next_help_heading = "Input")]
pub struct SelectionArgs {
    /// The documents.
    #[command(flatten)]
    pub documents: InputArgs,
    /// A file to read, as if it stood among the paths; repeat for more
    #[arg(short, long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub input: Vec<PathBuf>,
    /// Read the first N documents only; 0 means all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 0)]
    pub sample: u64,
    /// Leave out texts of fewer words, and say how many
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub min_words: usize,
}

/// What to read, and how texts become fingerprints.
#[derive(Args, Debug)]
pub struct ReadArgs {
    /// What to read.
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// How texts become fingerprints.
    #[command(flatten)]
    pub recipe: RecipeArgs,
}

impl SelectionArgs {
    /// What to read: the paths that stand alone and those after `--input`.
    #[must_use]
    pub fn options(&self) -> InputOptions {
        let mut all = self.documents.options();
        all.paths.extend(self.input.iter().cloned());
        all.min_words = self.min_words;
        all
    }
}

impl ReadArgs {
    /// The recipe that is asked for, by its name or by a window.
    ///
    /// # Errors
    /// If no recipe has such a window.
    pub fn effective_recipe(&self) -> Result<Recipe, UsageError> {
        self.recipe.effective()
    }
}
