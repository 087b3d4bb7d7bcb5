//! The arguments that say how texts become fingerprints.

use clap::Args;
use simshard_simhash::Recipe;

use crate::exit::UsageError;
use crate::recipe::recipe_names;

/// The bytes of a window unless the caller says how many.
const USUAL_WINDOW: u32 = 5;

/// How texts become fingerprints.
#[derive(Args, Debug)]
#[command(next_help_heading = "Input")]
pub struct RecipeArgs {
    /// How texts become fingerprints
    #[arg(long, value_name = "RECIPE", default_value_t, value_parser = recipe_names())]
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

impl RecipeArgs {
    /// The recipe that is asked for, by its name or by a window.
    ///
    /// # Errors
    /// If no recipe has such a window.
    pub fn effective(&self) -> Result<Recipe, UsageError> {
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
