//! `simshard recipes`: which recipes there are, and what each does.

use std::io::{self, IsTerminal, Write};

use clap::Args;
use serde_json::json;
use simshard_simhash::{Explanation, Recipe};

use crate::recipe::{recipe_names, windows};

/// Arguments of `recipes`.
#[derive(Args, Clone, Copy, Debug)]
#[command(after_help = "\
Fingerprints of two recipes never match. Those with a window, such as
jenkins-window-7, exist for each from 1 to 255; every window makes a recipe of
its own. words-v2 has one as well: words-v2-3 looks at runs of 3 words, and
words-v2 at runs of 2.

Examples:
  simshard recipes                            all, in short
  simshard recipes words-v3                   one in full
  simshard recipes --json                     all in full, a JSON object a line")]
pub struct RecipesArgs {
    /// Explain this one in full
    #[arg(value_name = "RECIPE", value_parser = recipe_names(), hide_possible_values = true)]
    pub recipe: Option<Recipe>,
    /// Print JSON, one object a recipe, with all that is known about it
    #[arg(long)]
    pub json: bool,
}

/// Prints them.
pub fn run(args: RecipesArgs) -> anyhow::Result<()> {
    let text = match (args.recipe, args.json) {
        (None, false) if io::stdout().is_terminal() => paragraphs(textwrap::termwidth()),
        (None, false) => table(),
        (Some(recipe), false) => in_full(&recipe.explanation()),
        (None, true) => Recipe::LISTED.map(as_json).concat(),
        (Some(recipe), true) => as_json(recipe),
    };
    Ok(io::stdout().write_all(text.as_bytes())?)
}

/// What a terminal with this number of columns shows: the lines of the table are wider.
fn paragraphs(columns: usize) -> String {
    let indented = textwrap::Options::new(columns)
        .initial_indent("  ")
        .subsequent_indent("  ");
    let paragraph = |recipe: Recipe| {
        let Explanation { name, takes, .. } = recipe.explanation();
        let takes = match windows(recipe) {
            "" => takes.name().to_owned(),
            windows => format!("{}, windows {windows}", takes.name()),
        };
        let summary = textwrap::fill(recipe.summary(), &indented);
        format!("{name} ({takes})\n{summary}\n")
    };
    Recipe::LISTED.map(paragraph).concat()
}

/// Tab-separated columns, padded so that people can read them.
fn table() -> String {
    let rows = Recipe::LISTED.map(|recipe| {
        let Explanation { name, takes, .. } = recipe.explanation();
        let [takes, windows, summary] = [takes.name(), windows(recipe), recipe.summary()];
        [
            name,
            takes.to_owned(),
            windows.to_owned(),
            summary.to_owned(),
        ]
    });
    let header = ["name", "takes", "windows", "what it looks at, and what for"];
    let mut table = String::new();
    for [name, takes, windows, summary] in [header.map(str::to_owned)].into_iter().chain(rows) {
        table += &format!("{name:<23}\t{takes:<8}\t{windows:<7}\t{summary}\n");
    }
    table
}

/// An aspect a line.
fn in_full(explanation: &Explanation) -> String {
    let Explanation {
        name,
        takes,
        summary,
        tokens,
        features,
        hash,
        ties,
        empty,
        version,
        source,
        choose,
    } = explanation;
    format!(
        "\
{name}: {summary}

takes     {}
tokens    {tokens}
features  {features}
hash      {hash}
ties      {ties}
empty     {empty}
version   {version}
source    {source}
choose    for {choose}
",
        takes.name()
    )
}

/// An explanation as programs get it.
fn as_json(recipe: Recipe) -> String {
    let all = recipe.explanation();
    let record = json!({
        "name": all.name,
        "takes": all.takes.name(),
        "summary": all.summary,
        "tokens": all.tokens,
        "features": all.features,
        "hash": all.hash,
        "ties": all.ties,
        "empty": all.empty,
        "version": all.version,
        "source": all.source,
        "choose": all.choose,
    });
    record.to_string() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_has_a_line_with_four_columns() {
        let table = table();
        let rows: Vec<Vec<&str>> = table
            .lines()
            .map(|line| line.split('\t').map(str::trim_end).collect())
            .collect();
        assert_eq!(rows.len(), 1 + Recipe::LISTED.len());
        for (row, recipe) in rows[1..].iter().zip(Recipe::LISTED) {
            assert_eq!(row[0].parse(), Ok(recipe));
            let expected = [recipe.takes().name(), windows(recipe), recipe.summary()];
            assert_eq!(row[1..], expected);
        }
    }

    #[test]
    fn the_columns_stand_below_one_another() {
        for recipe in Recipe::LISTED {
            assert!(recipe.to_string().len() <= 23, "{recipe}");
        }
    }

    #[test]
    fn an_explanation_names_every_aspect() {
        let text = in_full(&Recipe::default().explanation());
        assert!(text.starts_with("words-v3: words and runs"), "{text}");
        for aspect in [
            "takes", "tokens", "features", "hash", "ties", "empty", "version", "source", "choose",
        ] {
            let line = text.lines().find(|line| line.starts_with(aspect));
            assert!(line.is_some_and(|line| line.len() > 12), "{aspect}: {text}");
        }
    }

    #[test]
    fn json_holds_what_the_explanation_says() {
        let line = as_json("jenkins-window-7-compat".parse().unwrap());
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["name"], "jenkins-window-7-compat");
        assert_eq!(value["takes"], "text");
        assert_eq!(value.as_object().unwrap().len(), 11);
        assert!(line.ends_with("}\n"));
    }

    #[test]
    fn a_terminal_shows_each_recipe_within_its_width() {
        for columns in [60, 80] {
            let shown = paragraphs(columns);
            assert!(shown.lines().all(|line| line.chars().count() <= columns));
            let mut rest = shown.split_whitespace();
            for recipe in Recipe::LISTED {
                let words = recipe.summary().split_whitespace();
                for word in [&*recipe.explanation().name].into_iter().chain(words) {
                    assert!(rest.any(|shown| shown == word), "{word} in {shown}");
                }
            }
        }
    }
}
