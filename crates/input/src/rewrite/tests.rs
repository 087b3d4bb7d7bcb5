//! What a file that is read twice gives.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::*;

fn open(path: &Path, format: Format) -> Rewrite {
    let mut options = InputOptions::walking(vec![path.to_owned()]);
    options.format = Some(format);
    options.skip_bad_lines = false;
    let (recipe, stdin) = (Recipe::default(), Box::new(std::io::empty()));
    Rewrite::open(&options, Needs::CLIENT, recipe, Preference::First, stdin).unwrap()
}

/// What is handed on once `between` has changed the file.
fn rewritten(
    format: Format,
    content: &[u8],
    between: impl FnOnce(&Path),
) -> Result<Vec<u8>, InputError> {
    rewritten_as("in".as_ref(), format, content, between)
}

/// The same, of a file of this name.
fn rewritten_as(
    name: &OsStr,
    format: Format,
    content: &[u8],
    between: impl FnOnce(&Path),
) -> Result<Vec<u8>, InputError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    let mut rewrite = open(&path, format);
    let mut read = rewrite.read(&mut |_| {})?;
    read.marks.leave_out(|document| document == 0);
    between(&path);
    let mut kept = Vec::new();
    rewrite.write(&read.marks, |_, piece| {
        kept.extend(piece.bytes);
        Ok::<_, InputError>(())
    })?;
    Ok(kept)
}

/// I6.
#[test]
fn units_without_a_document_and_those_of_kept_ones_stay() {
    for (format, units, kept) in inputs() {
        let read = rewritten(format, &units.concat(), |_| {}).unwrap();
        let expected: Vec<&[u8]> = kept.iter().map(|&unit| &*units[unit]).collect();
        assert_eq!(read, expected.concat(), "{format}");
    }
}

/// I6.
#[test]
fn a_file_that_changes_between_the_readings_is_an_error() {
    let inputs = inputs().into_iter();
    let contents = inputs.map(|(format, units, _)| (format, units.concat()));
    #[cfg(feature = "parquet")]
    let contents = contents.chain([(Format::Parquet, table())]);
    for (format, content) in contents {
        assert!(!rewritten(format, &content, |_| {}).unwrap().is_empty());
        let longer = |path: &Path| fs::write(path, content.repeat(2)).unwrap();
        let same = |path: &Path| fs::write(path, &content).unwrap();
        let replaced = |path: &Path| {
            fs::write(path.with_extension("new"), &content).unwrap();
            fs::rename(path.with_extension("new"), path).unwrap();
        };
        let changes: [&dyn Fn(&Path); 3] = [&longer, &same, &replaced];
        // One that is not UTF-8 is shown as another path.
        let names = [OsStr::new("in"), OsStr::from_bytes(b"\xFFin")];
        for (change, name) in changes
            .into_iter()
            .flat_map(|change| names.map(|name| (change, name)))
        {
            let changed = rewritten_as(name, format, &content, change);
            assert!(
                matches!(changed, Err(InputError::Changed { .. })),
                "{format}, {name:?}: {changed:?}"
            );
        }
    }
}

/// A table of two rows.
#[cfg(feature = "parquet")]
fn table() -> Vec<u8> {
    crate::tests::parquet::table(&[("1", Some("a b"), 1), ("2", Some("e f"), 2)])
}

/// Inputs of several units, the first document of which is left out, and the units that are kept.
fn inputs() -> Vec<(Format, Vec<Vec<u8>>, Vec<usize>)> {
    let record = |kind: &str, block: &str| {
        format!(
            "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: a\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        )
    };
    let bytes = |units: [&str; 4]| units.map(|unit| unit.as_bytes().to_vec()).to_vec();
    let json = [
        "\n",
        "{\"id\":\"1\",\"text\":\"a b\"}\n",
        "\n",
        "{\"id\":\"2\",\"text\":\"c d\"}\n",
    ];
    let csv = ["id,text\n", "1,\"a\nb\"\n", "\n", "2,c d\n"];
    let warc = [
        &*record("request", "x"),
        &record("conversion", "a b"),
        &record("metadata", &"y".repeat(600_000)),
        &record("conversion", "c d"),
    ];
    let all = [
        (Format::Jsonl, bytes(json)),
        (Format::Csv, bytes(csv)),
        (Format::Warc, bytes(warc)),
    ];
    let all = all.into_iter();
    all.map(|(format, units)| (format, units, vec![0, 2, 3]))
        .collect()
}
