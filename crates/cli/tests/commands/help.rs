//! What the commands say of themselves.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, process};

use clap::{Arg, Command, CommandFactory};
use simshard_cli::Cli;
use simshard_testkit::run;

use crate::{BINARY, log};

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

/// The files below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// A wrong name would be ignored, and the setting with it.
#[test]
fn what_is_deployed_sets_variables_that_the_program_has() {
    // These have no flag.
    let mut known =
        BTreeSet::from(["SIMSHARD_LOG", "SIMSHARD_METADATA_PASSWORD"].map(str::to_owned));
    for (_, command) in all_commands() {
        let variables = command.get_arguments().filter_map(Arg::get_env);
        known.extend(variables.map(|name| name.to_string_lossy().into_owned()));
    }
    let mut deployed = Vec::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");
    files(Path::new(folder), &mut deployed);
    let mut found = 0;
    for file in deployed {
        let text = fs::read_to_string(&file).unwrap();
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        for name in words.filter(|word| word.starts_with("SIMSHARD_")) {
            assert!(known.contains(name), "{}: {name}", file.display());
            found += 1;
        }
    }
    assert!(found > 30, "{found}");
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
fn each_command_about_a_cluster_tells_programs_what_it_did() {
    let of_cluster = |(path, command): &(String, Command)| {
        path.starts_with("simshard cluster ") && !command.has_subcommands()
    };
    let mut count = 0;
    for (path, command) in all_commands().into_iter().filter(of_cluster) {
        let mut arguments = command.get_arguments();
        let has_json = arguments.any(|argument| argument.get_id() == "json");
        assert!(has_json, "{path} has no --json");
        count += 1;
    }
    assert!(count > 20, "{count}");
}

/// A heading holds for all arguments behind it, so others must stand before.
#[test]
fn only_the_access_to_etcd_stands_under_its_heading() {
    let mut count = 0;
    for (path, command) in all_commands() {
        for argument in command.get_arguments() {
            let is_access = argument.get_help_heading() == Some("Access to etcd");
            let id = argument.get_id().as_str();
            assert!(!is_access || id.starts_with("metadata_"), "{path} {id}");
            count += usize::from(is_access);
        }
    }
    assert!(count > 0);
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
fn a_placeholder_says_what_is_named() {
    for (path, command) in all_commands() {
        for argument in command.get_arguments() {
            for placeholder in argument.get_value_names().unwrap_or_default() {
                let says_nothing = placeholder.starts_with("NAME");
                assert!(!says_nothing, "{path} {}", argument.get_id());
            }
        }
    }
}

#[test]
fn the_usage_of_an_error_is_that_of_the_help_whatever_the_environment_sets() {
    for (args, usage) in [
        ("corpus create", "corpus create [OPTIONS] <CORPUS>"),
        ("find --bogus", "find [OPTIONS] [PATH]..."),
        (
            "corpus show --router http://127.0.0.1:1",
            "corpus show [OPTIONS] <CORPUS>",
        ),
    ] {
        let mut command = process::Command::new(BINARY);
        command.args(args.split(' '));
        command.env("SIMSHARD_ROUTER", "http://127.0.0.1:1");
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args}");
        let said = log(&output);
        let line = format!("\nUsage: simshard {usage}\n");
        assert!(said.contains(&line), "{args}: {said}");
    }
}

#[test]
fn every_recipe_has_a_line_in_the_help() {
    for command in [&["hash"][..], &["corpus", "create"], &["demo"]] {
        let output = run(BINARY, [command, &["--help"]].concat(), "");
        let help = String::from_utf8(output.stdout).unwrap();
        for recipe in [
            "words-v3:",
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

#[test]
fn find_pairs_has_the_name_of_its_ancestor_too() {
    let printed = |verb| {
        let output = run(BINARY, [verb], "4\n5\n");
        assert!(output.status.success(), "{verb}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(printed("find-all"), "[4, 5]\n");
    assert_eq!(printed("find-all"), printed("find-pairs"));
    let help = run(BINARY, ["--help"], "");
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(help.contains("[alias: find-all]"), "{help}");
}

/// The commands that print no table: they print documents, a story for people, or nothing.
const WITHOUT_TABLES: [&str; 19] = [
    "simshard bench echo",
    "simshard completions",
    "simshard config check node",
    "simshard config check router",
    "simshard corpus create",
    "simshard corpus delete",
    "simshard dedup",
    "simshard demo",
    "simshard distance",
    "simshard find",
    "simshard find-first",
    "simshard insert",
    "simshard man-pages",
    "simshard ready",
    "simshard remove",
    "simshard serve node",
    "simshard serve router",
    "simshard storage verify",
    "simshard token new",
];

/// The page lists those that do.
#[test]
fn every_command_that_prints_a_table_prints_json_too() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, said) = page
        .split_once("prints JSON with `--json`, one object a line. These are those\n  of ")
        .unwrap();
    let (said, _) = said.split_once(".\n").unwrap();
    let said: BTreeSet<&str> = said.split('`').skip(1).step_by(2).collect();
    let mut found = BTreeSet::new();
    for (path, command) in all_commands() {
        if command.has_subcommands() {
            continue;
        }
        let has = |option| {
            command
                .get_arguments()
                .any(|one| one.get_long() == Some(option))
        };
        if has("json") {
            let name = path.trim_start_matches("simshard ");
            let group = name.split(' ').next().unwrap();
            found.insert(if said.contains(group) { group } else { name }.to_owned());
        } else if !has("output-format") {
            assert!(WITHOUT_TABLES.contains(&&*path), "{path} has no --json");
        }
    }
    assert!(found.iter().eq(said.iter()), "{found:?} and {said:?}");
}

/// The cells of the rows of a table, below its head.
fn rows<'a>(page: &'a str, head: &str) -> Vec<Vec<&'a str>> {
    let table = page.split_once(head).expect("a table").1;
    let rows = table.lines().skip(2).take_while(|row| row.starts_with('|'));
    rows.map(|row| row.split('|').map(str::trim).collect())
        .collect()
}

#[test]
fn the_table_of_names_has_every_method_and_names_commands_that_there_are() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let read = |path: &str| std::fs::read_to_string(format!("{root}/{path}")).unwrap();
    let page = read("docs/cli.md");
    let rows = rows(
        &page,
        "| gRPC method | command | on files, without a server |",
    );
    let proto = read("proto/simshard/v1/corpus_service.proto");
    let methods = proto
        .lines()
        .filter_map(|line| line.trim().strip_prefix("rpc "));
    for method in methods.filter_map(|line| line.split('(').next()) {
        let has = |row: &&Vec<&str>| row[1].contains(&format!("`{method}`"));
        assert_eq!(rows.iter().filter(has).count(), 1, "{method}");
    }
    let commands = all_commands();
    let is_command = |path: &str| {
        commands.iter().any(|(known, command)| {
            let (parent, _) = known.rsplit_once(' ').unwrap_or_default();
            let mut aliases = command.get_all_aliases();
            known == path || aliases.any(|alias| format!("{parent} {alias}") == path)
        })
    };
    for row in &rows {
        let mut group = "simshard".to_owned();
        for name in row[2..].join(" ").split('`').skip(1).step_by(2) {
            if let Some((first, _)) = name.split_once(' ') {
                group = format!("simshard {first}");
            }
            let last = name.rsplit(' ').next().unwrap_or_default();
            let known = is_command(&format!("{group} {last}"));
            assert!(known || is_command(&format!("simshard {name}")), "{name}");
        }
    }
}

#[test]
fn each_command_has_a_page_of_the_manual() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    let output = run(BINARY, ["man-pages", pages.to_str().unwrap()], "");
    assert!(output.status.success(), "{}", log(&output));
    let commands = all_commands();
    assert_eq!(fs::read_dir(&pages).unwrap().count(), commands.len());
    for (path, command) in commands {
        let name = path.replace(' ', "-");
        let page = fs::read_to_string(pages.join(format!("{name}.1"))).unwrap();
        assert!(
            page.contains(&format!(".TH {}", name.to_uppercase())),
            "{page}"
        );
        for option in command.get_arguments().filter_map(Arg::get_long) {
            let option = format!("--{option}").replace('-', "\\-");
            assert!(page.contains(&option), "{path} {option}");
        }
    }
}
