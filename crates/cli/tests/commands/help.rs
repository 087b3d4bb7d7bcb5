//! What the commands say of themselves.

use clap::{Command, CommandFactory};
use simshard_cli::Cli;
use simshard_testkit::run;

use crate::BINARY;

/// Text that is written line by line fits the usual terminal.
const COLUMNS: usize = 80;

/// Every command and the verbs below it, with its arguments.
fn commands(path: &str, command: &Command, found: &mut Vec<(String, Command)>) {
    found.push((path.to_owned(), command.clone()));
    for verb in command.get_subcommands() {
        commands(&format!("{path} {}", verb.get_name()), verb, found);
    }
}

fn all_commands() -> Vec<(String, Command)> {
    let mut found = Vec::new();
    commands("simshard", &Cli::command(), &mut found);
    found
}

#[test]
fn the_arguments_of_all_commands_are_sound() {
    Cli::command().debug_assert();
    assert!(all_commands().len() > 15);
}

#[test]
fn what_follows_the_arguments_fits_a_terminal() {
    for (path, command) in all_commands() {
        let Some(text) = command.get_after_help() else {
            continue;
        };
        for line in text.to_string().lines() {
            let width = line.chars().count();
            assert!(width <= COLUMNS, "{path}: {width} characters: {line}");
        }
    }
}

#[test]
fn every_argument_says_what_it_is() {
    for (path, command) in all_commands() {
        assert!(command.get_about().is_some(), "{path}");
        for argument in command.get_arguments() {
            assert!(
                argument.get_help().is_some(),
                "{path} {}",
                argument.get_id()
            );
        }
    }
}

#[test]
fn every_recipe_has_a_line_in_the_help() {
    for command in [&["hash"][..], &["corpus", "create"], &["demo"]] {
        let output = run(BINARY, [command, &["--help"]].concat(), "");
        let help = String::from_utf8(output.stdout).unwrap();
        for recipe in [
            "words-v2:",
            "words-v1:",
            "leonsim-3:",
            "leonsim-4:",
            "moz-shingle-4:",
            "jenkins-window-5:",
            "jenkins-window-5-compat:",
            "textdedup-3:",
        ] {
            let line = help.lines().find(|line| line.contains(recipe));
            let line = line.unwrap_or_else(|| panic!("{command:?} without {recipe}: {help}"));
            assert!(line.trim().starts_with("- "), "{line}");
        }
    }
}
