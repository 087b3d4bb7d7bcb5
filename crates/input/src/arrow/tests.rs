//! What reading Arrow promises. The files are written by pyarrow 26: five rows in batches of three, with columns of
//! other types before those that are read.

use std::io::{self, Cursor};

use super::*;
use crate::document::{Content, Document};
use crate::fields::ContentColumn;
use crate::notation::Notation;

macro_rules! data {
    ($name:literal) => {
        (
            $name,
            include_bytes!(concat!("tests/data/", $name, ".arrow")).as_slice(),
        )
    };
}

/// All of the same rows.
const ALIKE: [(&str, &[u8]); 6] = [
    data!("stream"),
    data!("file"),
    data!("views"),
    data!("lz4"),
    data!("zstd"),
    data!("legacy"),
];

/// Those that are files, not streams.
const FILES: [&str; 3] = ["file", "views", "lz4"];

const TEXTS: [Option<&str>; 5] = [
    Some("one"),
    Some(""),
    Some("drei é"),
    Some("a text that is longer than twelve bytes"),
    None,
];

fn columns(id: Option<&str>, texts: &[&str]) -> TableColumns {
    TableColumns {
        id: id.map(str::to_owned),
        content: ContentColumn::Texts(texts.iter().map(|name| (*name).to_owned()).collect()),
        rank: None,
    }
}

fn open(bytes: &[u8], columns: &TableColumns) -> Result<ArrowDocuments, ArrowError> {
    let from = Box::new(Cursor::new(bytes.to_vec()));
    ArrowDocuments::open("a.arrow".to_owned(), from, columns, Ids::Any)
}

/// The documents as `id: text`, or what is wrong with them.
fn read(bytes: &[u8], columns: &TableColumns) -> Vec<String> {
    match open(bytes, columns) {
        Err(error) => vec![error.to_string()],
        Ok(documents) => documents
            .map(|document| match document {
                Err(error) => error.to_string(),
                Ok(Document { id, content }) => match content {
                    Content::Text(text) => format!("{id}: {text}"),
                    Content::Fingerprint(fingerprint) => format!("{id}: {fingerprint}"),
                },
            })
            .collect(),
    }
}

#[test]
fn rows_are_the_same_in_every_way_to_write_them() {
    for (name, bytes) in ALIKE {
        let ids = ["7", "-8", "9", "10", "11"];
        let expected: Vec<String> = ids
            .iter()
            .zip(TEXTS)
            .map(|(id, text)| format!("{id}: {}", text.unwrap_or_default()))
            .collect();
        assert_eq!(
            read(bytes, &columns(Some("id"), &["text"])),
            expected,
            "{name}"
        );

        let expected = [
            "7: one",
            "-8: ",
            "9: drei é",
            "10: a text that is longer than twelve bytes",
            "11: ",
        ];
        let inner = columns(Some("id"), &["doc.text"]);
        assert_eq!(read(bytes, &inner), expected, "{name}");

        let expected = ["1: p\none", "2: ", "3: r\ndrei é"];
        let joined = columns(None, &["doc.url", "text"]);
        assert_eq!(read(bytes, &joined)[..3], expected, "{name}");
        let same = columns(Some("text"), &["text"]);
        assert_eq!(read(bytes, &same)[2], "drei é: drei é", "{name}");
    }
}

#[test]
fn fingerprints_are_integers() {
    for (name, bytes) in ALIKE {
        let of = |column: &str, notation| TableColumns {
            id: None,
            content: ContentColumn::Fingerprint(column.to_owned(), notation),
            rank: None,
        };
        let found = read(bytes, &of("print", Notation::Unsigned));
        let expected = ["1: 18446744073709551615", "2: 0", "3: 5", "4: 6"];
        assert_eq!(found[..4], expected, "{name}");
        assert!(found[4].ends_with("\"print\" is null"), "{name}");
        let found = read(bytes, &of("id", Notation::Unsigned));
        assert!(
            found[1].contains("\"id\" is -8, and fingerprints"),
            "{found:?}"
        );
        let found = read(bytes, &of("id", Notation::Signed));
        assert_eq!(found[1], "2: 18446744073709551608", "{name}");
    }
}

#[test]
fn dictionaries_may_grow_and_be_replaced() {
    for (name, bytes) in [data!("delta"), data!("replaced")] {
        let found = read(bytes, &columns(Some("id"), &["text"]));
        let expected = ["a: one", "b: two", "c: three", "d: "];
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn columns_that_cannot_be_read_are_named() {
    let (_, bytes) = ALIKE[0];
    for (id, text, expected) in [
        (
            Some("id"),
            "body",
            "a.arrow has no column \"body\": its columns are \"tags\", \"flag\"",
        ),
        (
            Some("id"),
            "tags",
            "a.arrow: the column \"tags\" is a list: expected strings",
        ),
        (
            Some("id"),
            "id",
            "a.arrow: the column \"id\" is integers: expected strings",
        ),
        (
            Some("id"),
            "doc",
            "a.arrow: the column \"doc\" is a struct: expected strings",
        ),
        (
            Some("when"),
            "text",
            "the column \"when\" is timestamps: expected strings or integers",
        ),
        (
            Some("doc.none"),
            "text",
            "a.arrow has no column \"doc.none\"",
        ),
    ] {
        let found = read(bytes, &columns(id, &[text]));
        assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
    }
}

/// AR2.
#[test]
fn a_file_that_is_cut_anywhere_is_an_error_and_a_stream_within_a_message() {
    for (name, bytes) in ALIKE {
        let whole = read(bytes, &columns(Some("id"), &["text"]));
        for length in 0..bytes.len() {
            let found = read(&bytes[..length], &columns(Some("id"), &["text"]));
            let last = found.last().map(String::as_str).unwrap_or_default();
            let is_told = last.contains("cannot be read as Arrow");
            // Between two messages, with all rows of the batches before.
            let is_stream = !FILES.contains(&name);
            let may_end =
                is_stream && matches!(found.len(), 0 | 3 | 5) && whole.starts_with(&found);
            assert!(is_told || may_end, "{name} cut at {length}: {found:?}");
        }
    }
}

/// AR2.
#[test]
fn what_follows_the_end_is_an_error() {
    let text = columns(None, &["text"]);
    for (name, bytes) in ALIKE {
        let is_file = FILES.contains(&name);
        let expected = if is_file {
            "what follows its end mark is not as long as its footer"
        } else {
            "data follows its end mark"
        };
        let mut damaged = vec![bytes.repeat(2)];
        if is_file {
            // The same end with something before it.
            let end = bytes.len() - 10;
            damaged.push([&bytes[..end], &[0; 8], &bytes[end..]].concat());
        } else {
            damaged.push([bytes, &[0]].concat());
        }
        for bytes in damaged {
            let found = read(&bytes, &text);
            assert_eq!(found.len(), 6, "{name}");
            assert!(found[5].ends_with(expected), "{name}: {found:?}");
        }
    }
    let (_, file) = ALIKE[1];
    let footer = u32::from_le_bytes(*file[file.len() - 10..].first_chunk().unwrap());
    let begin = file.len() - 10 - footer as usize;
    for (padding, is_read) in [(7, true), (8, false)] {
        let padded = [&file[..begin], &vec![0; padding], &file[begin..]].concat();
        assert_eq!(read(&padded, &text).len() == 5, is_read, "{padding}");
    }
}

/// How many bytes must be allowed for all of a batch to be read.
fn least_bytes(bytes: &[u8], columns: &TableColumns) -> u64 {
    let is_read = |most: u64| {
        let mut documents = open(bytes, columns).unwrap();
        documents.table.most_bytes = most;
        let errors = documents.filter_map(Result::err);
        let mut errors = errors.filter(|error| !error.is_bad_row());
        let error = errors.next().map(|error| error.to_string());
        let is_large = |error: &String| error.ends_with("larger than 1 GiB: write smaller ones");
        assert!(error.as_ref().is_none_or(is_large), "{error:?}");
        error.is_none()
    };
    (0..1 << 20).step_by(8).find(|most| is_read(*most)).unwrap()
}

/// AR1.
#[test]
fn all_buffers_count_once_and_so_does_all_of_a_dictionary() {
    for (name, bytes) in ALIKE {
        let [one, twice, other] = [(None, "text"), (Some("text"), "text"), (Some("id"), "text")]
            .map(|(id, text)| least_bytes(bytes, &columns(id, &[text])));
        assert_eq!(one, twice, "{name}");
        assert!(other > one, "{name}");
    }
    let [delta, replaced] = [data!("delta"), data!("replaced")]
        .map(|(_, bytes)| least_bytes(bytes, &columns(Some("id"), &["text"])));
    assert!(delta > replaced, "{delta}, {replaced}");
}

/// AR1, AR2.
#[test]
fn a_changed_byte_anywhere_is_no_panic() {
    for (_, bytes) in ALIKE.into_iter().chain([data!("delta")]) {
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7F, 0x80, 0xFF] {
                let mut damaged = bytes.to_vec();
                damaged[at] = value;
                let found = read(&damaged, &columns(Some("id"), &["text"]));
                assert!(found.len() <= 1 << 16, "byte {at}");
            }
        }
    }
}

/// AR1.
#[test]
fn a_length_that_lies_takes_no_memory() {
    /// Ends at once, whatever a length before it said.
    struct Nothing;
    impl io::Read for Nothing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Ok(0)
        }
    }
    let head = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x03];
    let from = Box::new(Cursor::new(head).chain(Nothing));
    let opened = ArrowDocuments::open(
        "a.arrow".to_owned(),
        from,
        &columns(None, &["text"]),
        Ids::Any,
    );
    let error = opened.err().map(|error| error.to_string());
    let expected = "a.arrow cannot be read as Arrow after row 0: it ends within a message";
    assert_eq!(error.as_deref(), Some(expected));
}
