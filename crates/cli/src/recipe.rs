//! The recipes as values of an argument, each with its description.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use simshard_simhash::Recipe;

/// Reads the name of a recipe.
pub(crate) fn recipe_names() -> impl TypedValueParser<Value = Recipe> {
    let names = Recipe::ALL.map(|recipe| PossibleValue::new(recipe.name()).help(recipe.summary()));
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Recipe>())
}
