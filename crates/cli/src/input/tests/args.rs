//! The command line: defaults, inference and contradictions.

use clap::{CommandFactory, Parser};

use simshard_simhash::Recipe;

use super::*;
use crate::input::{Carries, LineParser, paths};

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    input: InputArgs,
}

fn parse(arguments: &[&str]) -> Result<InputArgs, clap::Error> {
    let line = ["command"].iter().chain(arguments);
    Command::try_parse_from(line).map(|command| command.input)
}

fn inferred(arguments: &[&str]) -> Format {
    parse(arguments).unwrap().resolve(Format::Lines).unwrap().1
}

#[test]
fn the_arguments_are_sound() {
    Command::command().debug_assert();
}

#[test]
fn fields_have_defaults() {
    let args = parse(&[]).unwrap();
    assert_eq!(args.id_field, None);
    assert_eq!(args.text_field, None);
    assert_eq!(args.fingerprint_field, None);
    assert!(!args.skip_bad_lines);
}

#[test]
fn the_format_is_inferred_where_all_paths_agree() {
    assert_eq!(inferred(&[]), Format::Lines);
    assert_eq!(inferred(&["-"]), Format::Lines);
    assert_eq!(inferred(&["a.txt"]), Format::Lines);
    assert_eq!(inferred(&["a.jsonl"]), Format::Jsonl);
    assert_eq!(inferred(&["a.jsonl", "b.NDJSON"]), Format::Jsonl);
    assert_eq!(inferred(&["a.tsv", "b.tsv"]), Format::Tsv);
    assert_eq!(inferred(&["a.txt", "b", "-"]), Format::Lines);
    assert_eq!(
        inferred(&["a.jsonl.gz", "b.ndjson.ZST", "c.jsonl"]),
        Format::Jsonl
    );
    assert_eq!(inferred(&["a.tsv.zst"]), Format::Tsv);
    assert_eq!(inferred(&["a.gz", "b.txt.gz"]), Format::Lines);
    assert_eq!(inferred(&["a.parquet", "b.PARQUET"]), Format::Parquet);
    assert_eq!(inferred(&["a.warc", "a.wet", "b.WARC.gz"]), Format::Warc);
    assert_eq!(
        inferred(&["CC-MAIN-2024-00000.warc.wet.gz", "b.wet.zst"]),
        Format::Warc
    );
    assert_eq!(inferred(&["parquet", "warc.gz"]), Format::Lines);
}

#[test]
fn only_formats_of_lines_are_parsed_by_line() {
    use clap::ValueEnum;
    for format in Format::value_variants() {
        let parser = LineParser::new(&parse(&[]).unwrap(), Needs::CLIENT, *format, false);
        let of_lines = !matches!(format, Format::Parquet | Format::Warc | Format::Files);
        assert_eq!(parser.is_some(), of_lines, "{format}");
    }
}

#[test]
fn a_folder_among_the_paths_means_files() {
    let folder = Folder::new();
    let path = folder.path();
    assert_eq!(inferred(&["a.tsv", path.to_str().unwrap()]), Format::Files);
}

/// Nothing in a line of JSON or CSV says that it is no text.
#[test]
fn json_and_csv_are_lines_of_text_only_where_that_is_said() {
    for (name, hint) in [
        ("a.json", "add --format jsonl if each of them is an object"),
        (
            "a.JSON.gz",
            "add --format jsonl if each of them is an object",
        ),
        ("a.csv", "write them as jsonl or tsv"),
        ("a.csv.zst", "write them as jsonl or tsv"),
    ] {
        let args = parse(&["b.txt", name]).unwrap();
        let error = args.resolve(Format::Lines).unwrap_err().to_string();
        let expected = format!(
            "the lines of {name} are no texts by its name: {hint}, or --format lines if they \
             are texts"
        );
        assert_eq!(error, expected);
        let hashes = args.resolve(Format::Hashes).unwrap().1;
        assert_eq!(hashes, Format::Hashes, "a bad line says what it looks like");
        for format in ["lines", "jsonl"] {
            assert_eq!(inferred(&["--format", format, name]).to_string(), format);
        }
    }
}

/// A folder of a crawl's files is not a folder of documents.
#[test]
fn a_folder_with_files_of_many_documents_needs_a_format_or_a_pattern() {
    for (name, format, pattern) in [
        ("b.jsonl.gz", "jsonl", "*.jsonl.gz"),
        ("b.1.NDJSON", "jsonl", "*.NDJSON"),
        ("b.parquet", "parquet", "*.parquet"),
        ("b.warc.wet.zst", "warc", "*.wet.zst"),
        ("2024/11/b.tsv", "tsv", "**/*.tsv"),
    ] {
        let folder = Folder::new();
        folder.write("a.txt", "a text");
        folder.write(".hidden.tsv", "a\t1\n");
        let path = folder.path();
        let path = path.to_str().unwrap();
        assert_eq!(inferred(&[path]), Format::Files);
        folder.write(name, "");
        let expected = format!(
            "{path}/{name} looks like {format}, and of a folder each file is read as one \
             document: name '{path}/{pattern}' instead of the folder, or add --format files"
        );
        assert_eq!(message(open_bytes(&parse(&[path]).unwrap(), b"")), expected);
        let named = format!("{path}/{pattern}");
        let found = paths::expand(&[named.into()]).unwrap();
        assert_eq!(found, [folder.path().join(name)]);
        assert_eq!(inferred(&["--format", "files", path]), Format::Files);
    }
}

#[test]
fn a_pattern_for_a_folder_whose_name_looks_like_one_matches_in_that_folder() {
    let folder = Folder::new();
    let data = folder.write("[ab]/c.tsv", "a\t1\n");
    folder.write("a/c.tsv", "a\t1\n");
    let message = message(open_bytes(
        &parse(&[data.parent().unwrap().to_str().unwrap()]).unwrap(),
        b"",
    ));
    let pattern = message.split('\'').nth(1).unwrap();
    assert_eq!(paths::expand(&[pattern.into()]).unwrap(), [data]);
}

#[test]
fn a_file_of_many_documents_beside_a_folder_needs_a_format() {
    let folder = Folder::new();
    let data = folder.write("data.tsv", "a\t1\n");
    folder.write("texts/a", "a text");
    let texts = folder.path().join("texts");
    let (data, texts) = (data.to_str().unwrap(), texts.to_str().unwrap());
    let args = parse(&[texts, data]).unwrap();
    let expected = format!("{data} looks like tsv, {texts} does not");
    assert!(message(open_bytes(&args, b"")).starts_with(&expected));
}

#[test]
fn the_format_given_beats_the_one_inferred() {
    assert_eq!(inferred(&["--format", "lines", "a.tsv"]), Format::Lines);
}

#[test]
fn paths_that_look_different_need_a_format() {
    for (paths, expected) in [
        (
            &["a.tsv", "b.jsonl"][..],
            "a.tsv looks like tsv, b.jsonl does not",
        ),
        (
            &["a.ndjson", "b.tsv"],
            "a.ndjson looks like jsonl, b.tsv does not",
        ),
        (
            &["a.txt", "b.jsonl"],
            "b.jsonl looks like jsonl, a.txt does not",
        ),
        (&["a.tsv", "b.tsv", "c"], "a.tsv looks like tsv, c does not"),
        (&["-", "a.jsonl"], "a.jsonl looks like jsonl, - does not"),
    ] {
        let args = parse(paths).unwrap();
        assert_eq!(
            message(open_bytes(&args, b"")),
            format!("{expected}: say with --format what they all are")
        );
        let chosen = [&["--format", "lines"], paths].concat();
        assert_eq!(inferred(&chosen), Format::Lines);
    }
}

#[test]
fn the_names_of_other_programs_are_understood() {
    let args = parse(&["--format", "json", "--text_column=body", "--id_column", "n"]).unwrap();
    assert_eq!(args.format, Some(Format::Jsonl));
    assert_eq!(args.text_field.as_deref(), Some("body"));
    assert_eq!(args.id_field.as_deref(), Some("n"));
    assert_eq!(inferred(&["--format", "hash"]), Format::Tsv);
    assert_eq!(inferred(&["--format", "wet"]), Format::Warc);
    let args = parse(&["-f", "json", "-tbody", "-x", "n"]).unwrap();
    assert_eq!(args.format, Some(Format::Jsonl));
    assert_eq!(args.text_field.as_deref(), Some("body"));
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
        "also called `wet`",
    ] {
        assert!(help.contains(name), "{name}: {help}");
    }
}

#[test]
fn arguments_tell_whether_they_read_standard_input() {
    let reads_stdin = |arguments: &[&str]| parse(arguments).unwrap().reads_stdin();
    assert!(reads_stdin(&[]));
    assert!(reads_stdin(&["a", "-"]));
    assert!(!reads_stdin(&["a", "b"]));
}

#[test]
fn a_text_field_and_a_fingerprint_field_conflict() {
    assert!(parse(&["--fingerprint-field", "f"]).is_ok());
    assert!(parse(&["--fingerprint-field", "f", "--text-field", "t"]).is_err());
}

#[test]
fn a_fingerprint_field_is_refused_where_no_format_has_fields() {
    let args = parse(&["--fingerprint-field", "f", "a.txt"]).unwrap();
    assert_eq!(
        message(open_bytes(&args, b"")),
        "--fingerprint-field belongs to --format jsonl or parquet, but the format is lines"
    );
}

#[test]
fn fields_are_refused_where_the_format_has_none_of_the_kind() {
    for (arguments, expected) in [
        (
            "--id-field n --format warc",
            "--id-field belongs to --format jsonl or parquet, but the format is warc",
        ),
        (
            "--text-field t a.tsv",
            "--text-field belongs to --format jsonl or parquet, but the format is tsv",
        ),
        (
            "--features-field f a.parquet",
            "--features-field belongs to --format jsonl, but the format is parquet",
        ),
    ] {
        let args = parse(&arguments.split(' ').collect::<Vec<_>>()).unwrap();
        assert_eq!(message(open_bytes(&args, b"")), expected);
    }
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_is_refused_with_the_way_to_build_it() {
    for arguments in [&["--format", "parquet"][..], &["a.parquet"]] {
        let message = message(open_bytes(&parse(arguments).unwrap(), b""));
        let expected = "build it with `cargo build --release --features parquet`";
        assert!(message.ends_with(expected), "{message}");
    }
}

#[test]
fn help_tells_of_the_temporary_copy() {
    let help = Command::command().render_long_help().to_string();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("first copied to a temporary file"), "{help}");
}

#[test]
fn standard_input_is_read_once_only() {
    let args = parse(&["-", "-"]).unwrap();
    assert_eq!(
        message(open_bytes(&args, b"")),
        "standard input (`-`) is named more than once"
    );
}

#[test]
fn input_tells_what_it_carries() {
    use Carries::{Features, Fingerprints, Texts};
    for (arguments, carried) in [
        ("--format lines", Texts),
        ("--format tsv", Fingerprints),
        ("--format hashes", Fingerprints),
        ("--format jsonl", Texts),
        ("--format warc", Texts),
        ("--format jsonl --fingerprint-field f", Fingerprints),
        ("--format jsonl --features-field f", Features),
    ] {
        let args = parse(&arguments.split(' ').collect::<Vec<_>>()).unwrap();
        let input = open_bytes(&args, b"").unwrap();
        assert_eq!(input.carries(), carried, "{arguments}");
    }
}

#[test]
fn a_recipe_for_something_else_than_the_documents_carry_is_refused() {
    let refusal = |arguments: &str, recipe: Recipe| {
        let args = parse(&arguments.split(' ').collect::<Vec<_>>()).unwrap();
        let input = open_bytes(&args, b"").unwrap();
        input
            .text_recipe(recipe)
            .err()
            .map(|error| error.to_string())
    };
    let texts = Recipe::default();
    assert_eq!(
        refusal("--format lines", Recipe::Features).unwrap(),
        "recipe features takes no texts: give it hashed features, or fingerprints made of them"
    );
    assert_eq!(
        refusal("--format jsonl --features-field f", texts).unwrap(),
        "these documents carry features, and recipe words-v1 takes texts: add --recipe features"
    );
    assert_eq!(refusal("--format lines", texts), None);
    assert_eq!(refusal("--format tsv", Recipe::Features), None);
    assert_eq!(
        refusal("--format jsonl --features-field f", Recipe::Features),
        None
    );
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
