//! The options: defaults, inference and contradictions.

use clap::ValueEnum;
use simshard_simhash::Recipe;

use super::*;
use crate::paths;
use crate::{Carries, LineParser};

/// Options as if these words had been given on the command line.
fn options(words: &[&str]) -> InputOptions {
    let mut options = InputOptions {
        format: None,
        skip_bad_lines: false,
        ..InputOptions::walking(Vec::new())
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || Some((*words.next().unwrap()).to_owned());
        match *word {
            "--format" => {
                let name = value();
                let named = |format: &Format| name == Some(format.to_string());
                options.format = Some(
                    Format::value_variants()
                        .iter()
                        .copied()
                        .find(named)
                        .unwrap(),
                );
            }
            "--id-field" => options.id_field = value(),
            "--text-field" => options.text_fields = value().into_iter().collect(),
            "--fingerprint-field" => options.fingerprint_field = value(),
            "--features-field" => options.features_field = value(),
            "--separator" => options.separator = value().map(|name| name.parse().unwrap()),
            path => options.paths.push(path.into()),
        }
    }
    options
}

fn inferred(arguments: &[&str]) -> Format {
    options(arguments).resolve(Format::Lines).unwrap().format
}

#[test]
fn the_format_is_inferred_where_all_paths_agree() {
    assert_eq!(inferred(&[]), Format::Lines);
    assert_eq!(inferred(&["-"]), Format::Lines);
    assert_eq!(inferred(&["a.jl", "b.jsonlines"]), Format::Jsonl);
    assert_eq!(inferred(&["a.csv", "b.CSV.xz"]), Format::Csv);
    assert_eq!(inferred(&["a.jsonl"]), Format::Jsonl);
    assert_eq!(inferred(&["a.jsonl", "b.NDJSON"]), Format::Jsonl);
    assert_eq!(inferred(&["a.tsv", "b.tsv"]), Format::Tsv);
    assert_eq!(
        inferred(&["a.jsonl.gz", "b.ndjson.ZST", "c.jsonl"]),
        Format::Jsonl
    );
    assert_eq!(inferred(&["a.tsv.zst"]), Format::Tsv);
    for ending in ["gz", "zst", "zstd", "bz2", "xz", "lz4"] {
        assert_eq!(inferred(&[&format!("a.jl.{ending}")]), Format::Jsonl);
    }
    assert_eq!(inferred(&["a.parquet", "b.PARQUET"]), Format::Parquet);
    assert_eq!(
        inferred(&["a.warc", "a.wet", "a.wat", "b.WARC.gz"]),
        Format::Warc
    );
    assert_eq!(
        inferred(&["CC-MAIN-2024-00000.warc.wet.gz", "b.wet.zst"]),
        Format::Warc
    );
    assert_eq!(inferred(&["a.html", "b.HTM.gz", "c.xhtml"]), Format::Files);
}

#[test]
fn only_formats_of_lines_are_parsed_by_line() {
    for &format in Format::value_variants() {
        let parser = LineParser::new(&options(&[]), Needs::CLIENT, format, false);
        let of_lines = !matches!(
            format,
            Format::Csv | Format::Parquet | Format::Arrow | Format::Warc | Format::Files
        );
        assert_eq!(parser.is_some(), of_lines, "{format}");
    }
}

#[test]
fn a_folder_among_the_paths_means_files() {
    let folder = Folder::new();
    let path = folder.path();
    assert_eq!(inferred(&["a.tsv", path.to_str().unwrap()]), Format::Files);
}

const UNSAID: &str = "the name of PATH does not say what it holds: ";

/// Nothing in a line says that it is no text.
#[test]
fn a_file_is_lines_of_text_only_where_that_is_said() {
    let folder = Folder::new();
    for (name, content, expected) in [
        ("a.txt", "one\ntwo\n", UNSAID),
        ("a", "", UNSAID),
        ("b.csv.txt", "id,text\n", UNSAID),
        (
            "a.json",
            "{\"id\": 1}\n",
            "PATH looks like JSON: add --format jsonl if each",
        ),
        (
            "b.json",
            " [\n{\"id\": 1}]",
            "PATH looks like an array of JSON: write each of its",
        ),
        (
            "a.json.txt",
            "WARC/1.0\r\n",
            "PATH looks like WARC: add --format warc",
        ),
        (
            "arc.old",
            "filedesc://a 0.0.0.0 20080430204825 text/plain 7\n",
            "PATH looks like ARC: add --format warc",
        ),
        (
            "a.bin",
            "FEA1\0",
            "PATH looks like Feather 1: write it as Arrow or Parquet",
        ),
    ] {
        let path = folder.write(name, content);
        let name = path.to_str().unwrap();
        let given = options(&[name]);
        let error = given.resolve(Format::Lines).unwrap_err().to_string();
        assert!(
            error.starts_with(&expected.replace("PATH", name)),
            "{error}"
        );
        let hashes = given.resolve(Format::Hashes).unwrap().format;
        assert_eq!(hashes, Format::Hashes, "no text is a fingerprint");
        for format in ["lines", "jsonl", "files"] {
            assert_eq!(inferred(&["--format", format, name]).to_string(), format);
        }
    }
}

#[test]
fn a_file_that_is_not_there_is_no_unknown_format() {
    let missing = options(&["no such file"]).resolve(Format::Lines);
    let missing = missing.unwrap_err().to_string();
    assert!(
        missing.starts_with("cannot read no such file: "),
        "{missing}"
    );
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
        ("b.csv.bz2", "csv", "*.csv.bz2"),
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
             document: name '{path}/{pattern}' instead of the folder, or add --format {format} for \
             all such files in it, --format files for all files, or --skip-formats for those of no format"
        );
        assert_eq!(message(open_bytes(&options(&[path]), b"")), expected);
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
        &options(&[data.parent().unwrap().to_str().unwrap()]),
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
    let options = options(&[texts, data]);
    let expected = format!("{data} looks like tsv, {texts} does not");
    assert!(message(open_bytes(&options, b"")).starts_with(&expected));
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
        let options = options(paths);
        assert_eq!(
            message(open_bytes(&options, b"")),
            format!(
                "{expected}: say with --format what they all are, or with --format and \
                 --skip-formats which are read"
            )
        );
        let chosen = [&["--format", "lines"], paths].concat();
        assert_eq!(inferred(&chosen), Format::Lines);
    }
}

#[test]
fn options_tell_whether_they_read_standard_input() {
    let reads_stdin = |arguments: &[&str]| options(arguments).reads_stdin();
    assert!(reads_stdin(&[]));
    assert!(reads_stdin(&["a", "-"]));
    assert!(!reads_stdin(&["a", "b"]));
}

#[test]
fn a_fingerprint_field_is_refused_where_no_format_has_fields() {
    let options = options(&["--fingerprint-field", "f", "-"]);
    assert_eq!(
        message(open_bytes(&options, b"")),
        "--fingerprint-field belongs to --format jsonl, csv, parquet or arrow, but the format is lines"
    );
}

#[test]
fn fields_are_refused_where_the_format_has_none_of_the_kind() {
    for (arguments, expected) in [
        (
            "--id-field n --format warc",
            "--id-field belongs to --format jsonl, csv, parquet or arrow, but the format is warc",
        ),
        (
            "--text-field t a.tsv",
            "--text-field belongs to --format jsonl, csv, parquet or arrow, but the format is tsv; a table with a header and \
             tabs is read with --format csv --separator tab",
        ),
        (
            "--separator ; a.parquet",
            "--separator belongs to --format csv, but the format is parquet",
        ),
        (
            "--separator ; a.tsv",
            "--separator belongs to --format csv, but the format is tsv; a table with a header and tabs is read \
             with --format csv --separator tab",
        ),
        (
            "--features-field f a.tsv",
            "--features-field belongs to --format jsonl, but the format is tsv",
        ),
        (
            "--features-field f a.parquet",
            "--features-field belongs to --format jsonl, but the format is parquet",
        ),
    ] {
        let options = options(&arguments.split(' ').collect::<Vec<_>>());
        assert_eq!(message(open_bytes(&options, b"")), expected);
    }
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_is_refused_with_the_way_to_build_it() {
    for arguments in [&["--format", "parquet"][..], &["a.parquet"]] {
        let message = message(open_bytes(&options(arguments), b""));
        let expected = "build it with `cargo build --release --features parquet`";
        assert!(message.ends_with(expected), "{message}");
    }
}

#[test]
fn standard_input_is_read_once_only() {
    let options = options(&["-", "-"]);
    assert_eq!(
        message(open_bytes(&options, b"")),
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
        let options = options(&arguments.split(' ').collect::<Vec<_>>());
        let input = open_bytes(&options, b"").unwrap();
        assert_eq!(input.carries(), carried, "{arguments}");
    }
}

#[test]
fn the_words_of_documents_without_texts_are_not_counted() {
    for arguments in [
        "--format hashes",
        "--format tsv",
        "--format jsonl --fingerprint-field f",
        "--format csv --fingerprint-field f",
        "--format jsonl --features-field f",
    ] {
        let mut options = options(&arguments.split(' ').collect::<Vec<_>>());
        options.min_words = 1;
        assert_eq!(
            message(open_bytes(&options, b"")),
            "--min-words counts the words of texts, and these documents carry none: leave it out",
            "{arguments}"
        );
    }
}

#[test]
fn a_recipe_for_something_else_than_the_documents_carry_is_refused() {
    let refusal = |arguments: &str, recipe: Recipe| {
        let options = options(&arguments.split(' ').collect::<Vec<_>>());
        let input = open_bytes(&options, b"").unwrap();
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
        "these documents carry features, and recipe words-v3 takes texts: add --recipe features"
    );
    assert_eq!(refusal("--format lines", texts), None);
    assert_eq!(refusal("--format tsv", Recipe::Features), None);
    assert_eq!(
        refusal("--format jsonl --features-field f", Recipe::Features),
        None
    );
}
