//! The arguments that say what a batch command reads, and how texts become fingerprints.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use simshard_input::InputOptions;
use simshard_simhash::Recipe;

use super::InputArgs;
use crate::exit::UsageError;
use crate::recipe::recipe_names;

/// The bytes of a window unless the caller says how many.
const USUAL_WINDOW: u32 = 5;

/// What to read, and how texts become fingerprints.
#[derive(Args, Debug)]
#[command(next_help_heading = "Input")]
pub struct ReadArgs {
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
    /// How texts become fingerprints
    #[arg(long, value_name = "NAME", default_value_t, value_parser = recipe_names())]
    pub recipe: Recipe,
    /// Fingerprint windows of N bytes: short for `--recipe jenkins-window-N`; 0 means 5
    #[arg(short, long, value_name = "N", conflicts_with = "recipe")]
    pub window: Option<u32>,
    /// With --window, leave out the last window of each text, as the program does from which the
    /// recipe is taken; `--recipe jenkins-window-N-compat` says the same
    // Of its own, for clap waives `requires` where --window conflicts with what is given.
    #[arg(long, requires = "window", conflicts_with = "recipe")]
    pub compat: bool,
}

impl ReadArgs {
    /// What to read: the paths that stand alone and those after `--input`.
    #[must_use]
    pub fn options(&self) -> InputOptions {
        let mut all = self.documents.options();
        all.paths.extend(self.input.iter().cloned());
        all.min_words = self.min_words;
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
