//! Golden files of both versions, and every way to damage one.

use std::time::{Duration, UNIX_EPOCH};

use super::*;

/// The bytes of version 1. They may never change: files like this are out there.
const GOLDEN_1: &str = r#"# The corpora of this cluster, kept by Simshard. Do not edit: use `simshard corpus`.

version = 1
corpus_count = 2

[[corpora]]
name = "default"
uid = "67e55044-10b1-426f-9247-bb680e5fe0c8"
blocks = 5
distance = 3
recipe = "words-v1"
create_time_seconds = 1700000000
create_time_nanos = 123456789

[[corpora]]
name = "old"
uid = "00000000-0000-0000-0000-000000000000"
blocks = 6
distance = 2
recipe = "leonsim-3"
create_time_seconds = -1
create_time_nanos = 750000000
"#;

/// The bytes of version 2. They may never change either.
const GOLDEN_2: &str = r#"# The corpora of this cluster, kept by Simshard. Do not edit: use `simshard corpus`.

version = 2
checksum = "5ad00c7755108fae3d3f8387fd1a501f650921d89d5983e757ccce0ed28c9028"
revision = 7
corpus_count = 2

[[corpora]]
name = "default"
uid = "67e55044-10b1-426f-9247-bb680e5fe0c8"
blocks = 5
distance = 3
recipe = "words-v1"
create_time_seconds = 1700000000
create_time_nanos = 123456789
state = "deleting"

[[corpora]]
name = "old"
uid = "00000000-0000-0000-0000-000000000000"
blocks = 6
distance = 2
recipe = "leonsim-3"
create_time_seconds = -1
create_time_nanos = 750000000
"#;

fn golden_corpora(revision: u64, state: CorpusState) -> Corpora {
    let records = [
        CorpusRecord {
            name: CorpusName::new("default").unwrap(),
            uid: "67e55044-10b1-426f-9247-bb680e5fe0c8".parse().unwrap(),
            blocks: 5,
            distance: 3,
            recipe: "words-v1".to_owned(),
            create_time: UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_789),
            state,
        },
        CorpusRecord {
            name: CorpusName::new("old").unwrap(),
            uid: "00000000-0000-0000-0000-000000000000".parse().unwrap(),
            blocks: 6,
            distance: 2,
            recipe: "leonsim-3".to_owned(),
            create_time: UNIX_EPOCH - Duration::from_millis(250),
            state: CorpusState::Live,
        },
    ];
    let by_name = records
        .into_iter()
        .map(|record| (record.name.clone(), record));
    Corpora::at(revision, by_name.collect())
}

/// Whether a text is refused as damaged, and where.
fn damage(text: &str) -> (usize, usize, String) {
    match parse(text.as_bytes()) {
        Err(FormatError::Corrupt(damage)) => (damage.line, damage.column, damage.message),
        other => panic!("{text}\ngave {other:?}"),
    }
}

#[test]
fn version_1_is_read_as_ever() {
    let corpora = golden_corpora(1, CorpusState::Live);
    assert_eq!(parse(GOLDEN_1.as_bytes()), Ok(corpora));
}

#[test]
fn version_2_is_written_as_ever() {
    let corpora = golden_corpora(7, CorpusState::Deleting);
    assert_eq!(render(&corpora), GOLDEN_2);
}

#[test]
fn version_2_is_read_as_ever() {
    let corpora = golden_corpora(7, CorpusState::Deleting);
    assert_eq!(parse(GOLDEN_2.as_bytes()), Ok(corpora));
}

#[test]
fn a_corpus_that_is_being_created_is_written_as_such() {
    let corpora = golden_corpora(7, CorpusState::Creating);
    let text = render(&corpora);
    assert_eq!(text.matches("state = \"creating\"\n").count(), 1);
    assert_eq!(parse(text.as_bytes()), Ok(corpora));
}

#[test]
fn no_corpora_survive_a_round_trip() {
    let none = Corpora::at(12, BTreeMap::new());
    let text = render(&none);
    assert_eq!(parse(text.as_bytes()), Ok(none));
}

#[test]
fn a_later_version_is_told_apart_from_damage() {
    let text = b"version = 3\nunheard_of = true\n";
    assert_eq!(parse(text), Err(FormatError::UnknownVersion { found: 3 }));
}

/// FS9.
#[test]
fn every_truncation_is_refused() {
    for golden in [GOLDEN_1, GOLDEN_2] {
        for end in 0..golden.len() {
            damage(&golden[..end]);
        }
    }
}

/// FS9.
#[test]
fn every_flipped_bit_is_refused() {
    for bit in 0..8 * GOLDEN_2.len() {
        let mut damaged = GOLDEN_2.as_bytes().to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let read = parse(&damaged);
        assert!(read.is_err(), "bit {bit} gave {read:?}");
    }
}

/// FS9: the checksum detects edits that keep the file well formed.
#[test]
fn an_edit_that_makes_sense_is_refused_and_what_it_says_is_not_used() {
    let (one, other) = (
        "67e55044-10b1-426f-9247-bb680e5fe0c8",
        "00000000-0000-0000-0000-000000000000",
    );
    let swapped = GOLDEN_2
        .replace(one, "?")
        .replace(other, one)
        .replace('?', other);
    let edits = [
        swapped,
        GOLDEN_2.replace("blocks = 5", "blocks = 4"),
        GOLDEN_2.replace("distance = 3", "distance = 2"),
        GOLDEN_2.replace("state = \"deleting\"\n", ""),
        GOLDEN_2.replace("revision = 7", "revision = 8"),
        GOLDEN_2.replace("Do not edit", "Do  edit"),
        GOLDEN_2.replace("checksum = ", "checksum  = "),
        GOLDEN_2.replace("\nversion = 2", "\nchecksum = \"\"\nversion = 2"),
        GOLDEN_2.to_owned() + "\n",
        GOLDEN_2.replace('\n', "\r\n"),
        "\n".to_owned() + GOLDEN_2,
    ];
    for edited in edits {
        assert_ne!(edited, GOLDEN_2);
        damage(&edited);
    }
    let (line, column, message) = damage(&GOLDEN_2.replace("blocks = 5", "blocks = 4"));
    assert_eq!((line, column), (4, 1));
    assert!(message.contains("damaged or edited"), "{message}");
}

#[test]
fn damage_is_located() {
    let position_of = |from: &str, to: &str| {
        assert!(GOLDEN_2.contains(from), "{from}");
        damage(&GOLDEN_2.replacen(from, to, 1))
    };
    let (line, column, _) = position_of("blocks = 5", "blocks = five");
    assert_eq!((line, column), (11, 10));
    let (line, _, message) = position_of("distance = 3\n", "");
    assert_eq!(line, 8);
    assert!(message.contains("distance"), "{message}");
    let (line, _, message) = position_of("distance = 2", "distance = 2\ncolour = 1");
    assert_eq!(line, 23);
    assert!(message.contains("colour"), "{message}");
    let (line, _, message) = position_of("\"default\"", "\"De fault\"");
    assert_eq!(line, 8);
    assert!(message.contains("De fault"), "{message}");
    let (line, _, message) = position_of("\"old\"", "\"default\"");
    assert_eq!(line, 18);
    assert!(message.contains("listed twice"), "{message}");
    let (line, _, message) = position_of(
        "00000000-0000-0000-0000-000000000000",
        "67e55044-10b1-426f-9247-bb680e5fe0c8",
    );
    assert_eq!(line, 18);
    assert!(message.contains("listed twice"), "{message}");
    let (line, _, message) = position_of("67e55044-", "67e5504-");
    assert_eq!(line, 8);
    assert!(message.contains("no corpus uid"), "{message}");
    let (line, _, message) = position_of("750000000", "1000000000");
    assert_eq!(line, 18);
    assert!(message.contains("no time"), "{message}");
    let (line, column, _) = position_of("\"deleting\"", "\"gone\"");
    assert_eq!((line, column), (16, 9));
    let (line, _, message) = position_of("corpus_count = 2", "corpus_count = 3");
    assert_eq!(line, 26);
    assert!(
        message.contains("corpus_count is 3, but 2 corpora"),
        "{message}"
    );
    let (line, column, message) = position_of("version = 2", "");
    assert_eq!((line, column), (1, 1));
    assert!(message.contains("version"), "{message}");
}

#[test]
fn what_is_no_text_is_located() {
    let mut damaged = GOLDEN_2.as_bytes().to_vec();
    let place = GOLDEN_2.find("words-v1").unwrap();
    damaged[place] = 0xff;
    let Err(FormatError::Corrupt(damage)) = parse(&damaged) else {
        panic!("it is refused");
    };
    assert_eq!((damage.line, damage.column), (13, 11));
}
