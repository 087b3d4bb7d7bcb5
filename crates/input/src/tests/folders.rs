//! Folders of files of one format, odd files among others, and folders without any.

use super::*;

const RECORD: &str = "{\"id\": \"a\", \"text\": \"one two\"}\n";

/// The ids of the documents, and what was skipped; or why there are none.
fn outcome(options: &InputOptions) -> Result<(Vec<String>, String), String> {
    let input = open_bytes(options, b"").map_err(|error| error.to_string())?;
    let mut documents = input.documents();
    let mut ids = Vec::new();
    for document in documents.by_ref() {
        ids.push(document.map_err(|error| error.to_string())?.id);
    }
    Ok((ids, documents.skipped().to_string()))
}

fn read(
    format: Option<Format>,
    skip_formats: bool,
    paths: &[PathBuf],
) -> Result<(Vec<String>, String), String> {
    outcome(&InputOptions {
        format,
        skip_formats,
        row_ids: format.is_some_and(|format| format == Format::Jsonl || format == Format::Arrow),
        ..args(Format::Files, paths)
    })
}

/// I3.
#[test]
fn a_folder_with_an_odd_file_goes_on_where_that_is_asked_for() {
    let folder = Folder::new();
    let text = folder.write("a.txt", "one two");
    folder.write("odd.jsonl.gz", "");
    folder.write("sub/odd.warc", "");
    let path = [folder.path()];
    let error = read(None, false, &path).unwrap_err();
    assert!(error.contains("odd.jsonl.gz looks like jsonl"), "{error}");
    assert!(error.contains("--skip-formats"), "{error}");
    let (ids, skipped) = read(None, true, &path).unwrap();
    assert_eq!(ids, [text.to_str().unwrap()]);
    assert_eq!(skipped, "skipped 2 other files (jsonl: 1, warc: 1)");
}

#[test]
fn files_of_other_formats_are_left_out_by_name_and_content() {
    let folder = Folder::new();
    let paths = [
        folder.write("a.jsonl", RECORD),
        folder.write("b.tsv", "x\t1\n"),
        folder.write("c.jsonl", "WARC/1.0\r\n"),
        folder.write("d", RECORD),
        folder.write("e.jl.gz", super::cutting::gzip(b"<!doctype html>")),
    ];
    let ids = |places: &[usize]| -> Vec<String> {
        let id = |place: &usize| format!("{}:1", paths[*place].display());
        places.iter().map(id).collect()
    };
    let (found, skipped) = read(Some(Format::Jsonl), true, &paths).unwrap();
    assert_eq!(found, ids(&[0, 3]));
    assert_eq!(
        skipped,
        "skipped 3 other files (WARC: 1, a page of HTML: 1, tsv: 1)"
    );
    let error = read(None, false, &paths).unwrap_err();
    assert!(error.contains("--format and --skip-formats"), "{error}");
    let error = read(Some(Format::Jsonl), true, &paths[1..3]).unwrap_err();
    assert_eq!(error, "no file is jsonl: WARC: 1, tsv: 1");
}

#[test]
fn a_folder_is_its_files_of_the_format_that_is_asked_for() {
    let folder = Folder::new();
    let one = folder.write("sub/one.jsonl", RECORD);
    let two = folder.write("two.NDJSON.gz", super::cutting::gzip(RECORD.as_bytes()));
    folder.write("README.md", "one two");
    folder.write(".hidden.jsonl", RECORD);
    folder.write("LICENSE", "one two");
    folder.write("b.csv", "id,text\n");
    let (ids, skipped) = read(Some(Format::Jsonl), false, &[folder.path()]).unwrap();
    let expected = [one, two].map(|path| format!("{}:1", path.display()));
    assert_eq!(ids, expected);
    let expected = "skipped 4 other files (.md: 1, csv: 1, hidden: 1, without extension: 1)";
    assert_eq!(skipped, expected);
    let error = read(Some(Format::Tsv), false, &[folder.path()]).unwrap_err();
    assert!(
        error.starts_with("no file is tsv: jsonl: 2, .md: 1"),
        "{error}"
    );
}

#[test]
fn links_and_hidden_files_of_a_folder_are_counted() {
    let (data, folder) = (Folder::new(), Folder::new());
    let target = data.write("one.jsonl", RECORD);
    let path = folder.path();
    for link in ["a.jsonl", "b.jsonl"] {
        std::os::unix::fs::symlink(&target, path.join(link)).unwrap();
    }
    let error = read(Some(Format::Jsonl), false, std::slice::from_ref(&path)).unwrap_err();
    let expected =
        "no file is jsonl: links: 2; links and hidden files are read where they are named";
    assert_eq!(error, expected);
    let (ids, _) = read(Some(Format::Jsonl), false, &[path.join("a.jsonl")]).unwrap();
    assert_eq!(ids, ["1"]);
    folder.write(".git/config.jsonl", RECORD);
    folder.write("c.jsonl", RECORD);
    let root = data.path().join("root");
    std::os::unix::fs::symlink(&path, &root).unwrap();
    for path in [path, root] {
        let (ids, skipped) = read(Some(Format::Jsonl), false, &[path]).unwrap();
        assert_eq!(ids, ["1"]);
        assert_eq!(skipped, "skipped 3 other files (links: 2, hidden: 1)");
    }
}

/// As `save_to_disk` of the library `datasets` writes them.
#[test]
fn a_saved_set_is_the_files_that_it_lists() {
    let folder = Folder::new();
    let data = include_bytes!("../arrow/tests/data/stream.arrow");
    for split in ["train", "test"] {
        let state = r#"{"_data_files": [{"filename": "data-1.arrow"}], "_format_type": null}"#;
        folder.write(&format!("{split}/state.json"), state);
        folder.write(&format!("{split}/dataset_info.json"), "{}");
        folder.write(&format!("{split}/data-1.arrow"), data);
        folder.write(&format!("{split}/cache-7.arrow"), data);
    }
    folder.write("dataset_dict.json", r#"{"splits": ["train", "test"]}"#);
    let read = |path: PathBuf| {
        outcome(&InputOptions {
            format: None,
            text_fields: vec!["doc.url".to_owned(), "text".to_owned()],
            row_ids: true,
            skip_bad_lines: true,
            ..args(Format::Files, &[path])
        })
    };
    let (ids, skipped) = read(folder.path()).unwrap();
    let id = |split: &str, row| format!("{}/{split}/data-1.arrow:{row}", folder.path().display());
    let rows = |split| (1..=5).map(move |row| id(split, row));
    let expected: Vec<String> = rows("train").chain(rows("test")).collect();
    assert_eq!((ids, skipped.as_str()), (expected, ""));
    let (ids, _) = read(folder.path().join("test")).unwrap();
    assert_eq!(ids, ["1", "2", "3", "4", "5"]);
    folder.write("test/state.json", "{}");
    let error = read(folder.path()).unwrap_err();
    assert!(
        error.contains("test/state.json does not list the files"),
        "{error}"
    );
}

/// Tables are no texts, so a folder of them cannot mean one document each.
#[test]
fn a_folder_of_tables_alone_needs_no_format() {
    let folder = Folder::new();
    let data = include_bytes!("../arrow/tests/data/stream.arrow");
    let one = folder.write("1.arrow", data);
    let two = folder.write("sub/2.feather", data);
    folder.write("_SUCCESS", "");
    folder.write(".1.arrow.crc", "x");
    let read = |paths: &[PathBuf]| {
        outcome(&InputOptions {
            format: None,
            text_fields: vec!["doc.url".to_owned(), "text".to_owned()],
            row_ids: true,
            skip_bad_lines: true,
            ..args(Format::Files, paths)
        })
    };
    let rows = |path: &PathBuf| {
        let path = path.display().to_string();
        (1..=5).map(move |row| format!("{path}:{row}"))
    };
    let (ids, skipped) = read(&[folder.path()]).unwrap();
    let expected: Vec<String> = rows(&one).chain(rows(&two)).collect();
    assert_eq!(ids, expected);
    assert_eq!(
        skipped,
        "skipped 2 other files (hidden: 1, without extension: 1)"
    );
    let (ids, _) = read(&[folder.path().join("sub"), one.clone()]).unwrap();
    assert_eq!(ids.len(), 10);
    // These describe a set, and are counted.
    folder.write("README.md", "one two");
    folder.write("sub/dataset_info.json", "{}");
    let (ids, skipped) = read(&[folder.path()]).unwrap();
    assert_eq!(ids, expected);
    assert_eq!(
        skipped,
        "skipped 4 other files (.json: 1, .md: 1, hidden: 1, without extension: 1)"
    );
    // Another file beside them may be a text.
    folder.write("sub/notes.md", "one two");
    let error = read(&[folder.path()]).unwrap_err();
    assert!(error.contains("add --format arrow"), "{error}");
    let other = Folder::new();
    other.write("1.arrow", data);
    other.write("2.parquet", "");
    let error = read(&[other.path()]).unwrap_err();
    assert!(error.contains("add --format arrow"), "{error}");
}

/// I3.
#[test]
fn a_saved_set_with_a_split_that_is_not_in_its_folder_is_refused() {
    let folder = Folder::new();
    let data = include_bytes!("../arrow/tests/data/stream.arrow");
    folder.write("train/data-1.arrow", data);
    folder.write("state.json", r#"{"_data_files": []}"#);
    let path = folder.path();
    let whole = path.display().to_string();
    let refusal = |list: &str| {
        let error = read(Some(Format::Arrow), false, std::slice::from_ref(&path)).unwrap_err();
        let start = format!("{whole}/{list} does not list the files of a saved set: ");
        let reason = error.strip_prefix(&start);
        reason.unwrap_or_else(|| panic!("{error}")).to_owned()
    };
    folder.write("dataset_dict.json", r#"{"splits": ["train"]}"#);
    assert_eq!(
        refusal("dataset_dict.json"),
        "train/state.json is not there"
    );
    for name in ["", ".", "..", "a/b", "train/", "./train", &whole] {
        let state = r#"{"_data_files": [{"filename": "data-1.arrow"}]}"#;
        folder.write("train/state.json", state);
        folder.write("dataset_dict.json", format!(r#"{{"splits": ["{name}"]}}"#));
        let expected = format!("\"{name}\" is no name of what is in its folder");
        let excerpt: String = expected.chars().take(20).collect();
        assert!(refusal("dataset_dict.json").starts_with(&excerpt), "{name}");
        let state = state.replace("data-1.arrow", name);
        folder.write("dataset_dict.json", r#"{"splits": ["train"]}"#);
        folder.write("train/state.json", state);
        assert!(refusal("train/state.json").starts_with(&excerpt), "{name}");
    }
}

/// I3. A path that is too long for the system cannot be read by root either.
#[test]
fn a_folder_that_cannot_be_read_is_an_error_where_all_files_of_a_format_are_meant() {
    let folder = Folder::new();
    let half = vec!["d".repeat(200); 12].join("/");
    folder.write("a.jsonl", RECORD);
    folder.write(&format!("one/{half}/b.jsonl"), RECORD);
    folder.write(&format!("two/{half}/c.jsonl"), RECORD);
    let path = folder.path();
    fs::rename(path.join("two"), path.join("one").join(half).join("two")).unwrap();
    let error = read(Some(Format::Jsonl), false, std::slice::from_ref(&path)).unwrap_err();
    let start = format!("cannot read {}: ", path.display());
    assert!(error.starts_with(&start), "{error}");
    assert!(error.contains("File name too long"), "{error}");
}

#[test]
fn a_folder_without_files_is_an_error_that_says_what_is_in_it() {
    let folder = Folder::new();
    let path = folder.path();
    let error = read(None, false, std::slice::from_ref(&path)).unwrap_err();
    let start = format!("there is no file to read in {}: ", path.display());
    assert_eq!(error, format!("{start}nothing is in it"));
    folder.write(".git/config", "");
    folder.write(".git/objects/a", "");
    folder.write(".env", "");
    fs::create_dir(path.join("empty")).unwrap();
    std::os::unix::fs::symlink("/etc", path.join("link")).unwrap();
    let error = read(Some(Format::Files), false, std::slice::from_ref(&path)).unwrap_err();
    let expected = "of what is in it, 2 hidden, 1 links are passed over unless named";
    assert_eq!(error, format!("{start}{expected}"));
    let hidden = path.join(".git");
    let (ids, _) = read(None, false, &[hidden]).unwrap();
    assert_eq!(ids.len(), 2);
}
