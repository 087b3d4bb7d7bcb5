//! The recipes as values of an argument, each with its description.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command, Error};
use simshard_simhash::{Recipe, TextRecipe, Window};

/// Reads the name of a recipe.
pub(crate) fn recipe_names() -> impl TypedValueParser<Value = Recipe> {
    RecipeNames { only_texts: false }
}

/// Reads the name of a recipe that makes fingerprints of texts.
pub(crate) fn text_recipe_names() -> impl TypedValueParser<Value = TextRecipe> {
    RecipeNames { only_texts: true }.try_map(Recipe::for_texts)
}

/// Reads every name, and offers those that are listed, and `words-v2-3`, which the pages recommend. A recipe
/// with a window has as many names as there are windows.
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
        names
            .parse_ref(command, argument, value)
            .map_err(|mut error| {
                if let Some(nearest) = self.nearest(command, value) {
                    error.insert(ContextKind::SuggestedValue, nearest);
                }
                error
            })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let of_three_words = Window::new(3).map(|three| Recipe::Text(TextRecipe::WordsV2(three)));
        let offered = self.listed().chain(of_three_words);
        let value = |recipe: Recipe| {
            let help = match windows(recipe) {
                "" => recipe.summary().to_owned(),
                windows => format!("{} (or any other window, {windows})", recipe.summary()),
            };
            PossibleValue::new(recipe.to_string()).help(help)
        };
        Some(Box::new(offered.map(value)))
    }
}

impl RecipeNames {
    fn listed(self) -> impl Iterator<Item = Recipe> {
        let listed = Recipe::LISTED.into_iter();
        listed.filter(move |recipe| !self.only_texts || recipe.for_texts().is_ok())
    }

    /// The listed name that is most like a misspelt one, as clap suggests it, if one is like it.
    fn nearest(self, command: &Command, misspelt: &OsStr) -> Option<ContextValue> {
        let names = self.listed().map(|recipe| recipe.to_string());
        let listed = PossibleValuesParser::new(names);
        let refused = listed.parse_ref(command, None, misspelt).err()?;
        refused.get(ContextKind::SuggestedValue).cloned()
    }
}

/// The windows that a recipe may be named with, where it has one.
pub(crate) fn windows(recipe: Recipe) -> &'static str {
    match recipe {
        // The name of 2 has no number.
        Recipe::Text(TextRecipe::WordsV2(_)) => "1, 3-255",
        Recipe::Text(
            TextRecipe::TextDedup(_)
            | TextRecipe::MozShingle(_)
            | TextRecipe::JenkinsWindow(_)
            | TextRecipe::JenkinsWindowCompat(_),
        ) => "1-255",
        Recipe::Text(
            TextRecipe::WordsV3 | TextRecipe::WordsV1 | TextRecipe::Leonsim3 | TextRecipe::Leonsim4,
        )
        | Recipe::Features => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recommended_recipe_is_offered_and_read() {
        for only_texts in [false, true] {
            let names = RecipeNames { only_texts };
            let values = names.possible_values().unwrap();
            let offered: Vec<String> = values.map(|one| one.get_name().to_owned()).collect();
            for name in ["words-v3", "words-v2", "words-v2-3", "words-v1"] {
                assert!(offered.iter().any(|one| one == name), "{offered:?}");
            }
            for name in &offered {
                assert_eq!(name.parse::<Recipe>().unwrap().to_string(), *name);
            }
        }
    }

    #[test]
    fn every_window_that_is_listed_makes_a_recipe_and_no_other_does() {
        for recipe in Recipe::LISTED {
            let name = recipe.to_string();
            let (start, end) = match name.as_str() {
                "words-v2" => ("words-v2-", ""),
                name => {
                    let is_digit = |digit: char| digit.is_ascii_digit();
                    name.split_once(is_digit).unwrap_or((name, ""))
                }
            };
            let exists = |window: &str| {
                let other = format!("{start}{window}{end}");
                other != "words-v1" && other.parse::<Recipe>().is_ok()
            };
            let expected = !windows(recipe).is_empty();
            assert_eq!([exists("1"), exists("255")], [expected; 2], "{name}");
            assert!(!exists("0") && !exists("256"), "{name}");
        }
    }
}
