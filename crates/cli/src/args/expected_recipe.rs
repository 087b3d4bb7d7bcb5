//! The argument that says which recipe a corpus is to have.

use clap::Args;
use simshard_client::Client;
use simshard_simhash::Recipe;

use crate::recipe::recipe_names;

/// The recipe that a corpus is to have.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Cluster")]
pub struct ExpectedRecipeArgs {
    /// Go on only if this is the recipe of the corpus
    ///
    /// Fingerprints of two recipes never match, so mixing them finds nothing. Worth giving where the
    /// input carries fingerprints, as only you know how they were made.
    #[arg(long, value_name = "RECIPE", value_parser = recipe_names(), hide_possible_values = true)]
    pub recipe: Option<Recipe>,
}

impl ExpectedRecipeArgs {
    /// Lets a client refuse corpora of another recipe, if one is asked for.
    pub(crate) fn checked_by(&self, client: Client) -> Client {
        match self.recipe {
            Some(recipe) => client.with_recipe(&recipe.to_string()),
            None => client,
        }
    }
}
