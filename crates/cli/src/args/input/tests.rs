//! The command line: names, defaults, conflicts and help.

use clap::{CommandFactory, Parser, ValueEnum};
use simshard_input::Format;

use super::InputArgs;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    input: InputArgs,
}

fn parse(arguments: &[&str]) -> Result<InputArgs, clap::Error> {
    let line = ["command"].iter().chain(arguments);
    Command::try_parse_from(line).map(|command| command.input)
}

#[test]
fn the_arguments_are_sound() {
    Command::command().debug_assert();
}

#[test]
fn fields_have_defaults() {
    let args = parse(&[]).unwrap();
    assert_eq!(args.id_field, None);
    assert!(args.text_field.is_empty());
    assert_eq!(args.fingerprint_field, None);
    assert!(!args.skip_bad_lines);
}

#[test]
fn the_names_of_other_programs_are_understood() {
    let args = parse(&["--format", "json", "--text_column=body", "--id_column", "n"]).unwrap();
    assert_eq!(args.options().format, Some(Format::Jsonl));
    assert_eq!(args.text_field, ["body"]);
    assert_eq!(args.id_field.as_deref(), Some("n"));
    let format = |name| parse(&["--format", name]).unwrap().options().format;
    assert_eq!(format("hash"), Some(Format::Tsv));
    assert_eq!(format("wet"), Some(Format::Warc));
    let args = parse(&["-f", "json", "-tbody", "-x", "n"]).unwrap();
    assert_eq!(args.options().format, Some(Format::Jsonl));
    assert_eq!(args.text_field, ["body"]);
    assert_eq!(args.id_field.as_deref(), Some("n"));
}

#[test]
fn help_tells_of_the_names_of_other_programs() {
    let help = Command::command().render_long_help().to_string();
    for name in [
        "[alias: --text_column]",
        "[alias: --id_column]",
        "also called `json`",
        "also called `hash`",
        "Also called `wet`",
    ] {
        assert!(help.contains(name), "{name}: {help}");
    }
}

#[test]
fn a_text_field_and_a_fingerprint_field_conflict() {
    assert!(parse(&["--fingerprint-field", "f"]).is_ok());
    assert!(parse(&["--fingerprint-field", "f", "--text-field", "t"]).is_err());
}

#[test]
fn help_tells_of_the_temporary_copy() {
    let help = Command::command().render_long_help().to_string();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("first copied to a temporary file"), "{help}");
}

#[test]
fn a_command_keeps_its_own_description() {
    /// Do this one thing
    #[derive(Parser)]
    struct Described {
        #[command(flatten)]
        _input: InputArgs,
    }
    let help = Described::command().render_help().to_string();
    assert!(help.starts_with("Do this one thing"), "{help}");
}

/// Messages and checkpoints call a format as the command line does.
#[test]
fn every_format_has_one_name() {
    let shown = Format::value_variants().iter().map(Format::to_string);
    let names = [
        "hashes", "lines", "jsonl", "tsv", "csv", "parquet", "arrow", "warc", "files",
    ];
    assert!(shown.eq(names));
    for name in names {
        let format = parse(&["--format", name]).unwrap().options().format;
        assert_eq!(format.unwrap().to_string(), name);
    }
}
