//! The recipes as values of an argument, each with its description.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, Error};
use simshard_simhash::{Recipe, TextRecipe};

/// Reads the name of a recipe.
pub(crate) fn recipe_names() -> impl TypedValueParser<Value = Recipe> {
    RecipeNames { only_texts: false }
}

/// Reads the name of a recipe that makes fingerprints of texts.
pub(crate) fn text_recipe_names() -> impl TypedValueParser<Value = TextRecipe> {
    RecipeNames { only_texts: true }.try_map(Recipe::for_texts)
}

/// Reads every name, and offers those that are listed: a recipe with a window has as many names
/// as there are windows.
#[derive(Clone, Copy)]
struct RecipeNames {
    only_texts: bool,
}

impl TypedValueParser for RecipeNames {
    type Value = Recipe;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Recipe, Error> {
        let names = StringValueParser::new().try_map(|name| name.parse::<Recipe>());
        names.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let listed = Recipe::LISTED.into_iter();
        let offered = listed.filter(|recipe| !self.only_texts || recipe.for_texts().is_ok());
        let value = |recipe: Recipe| PossibleValue::new(recipe.to_string()).help(recipe.summary());
        Some(Box::new(offered.map(value)))
    }
}
