//! The text of the corpora file.
//!
//! ```toml
//! version = 1
//! corpus_count = 1
//!
//! [[corpora]]
//! name = "default"
//! uid = "67e55044-10b1-426f-9247-bb680e5fe0c8"
//! blocks = 5
//! distance = 3
//! recipe = "words-v1"
//! create_time_seconds = 1700000000
//! create_time_nanos = 123456789
//! ```
//!
//! Corpora are sorted by name. The time is seconds since 1970 (negative before),
//! plus nanoseconds from 0 to 999,999,999, so that it comes back exactly. The count,
//! and the line end that closes the file, give away a file that was cut short.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::corpus::{CorpusName, CorpusRecord};

/// The corpora of a cluster by name.
pub(super) type Corpora = BTreeMap<CorpusName, CorpusRecord>;

/// The only version there is so far.
const VERSION: u32 = 1;

const HEADER: &str = "\
# The corpora of this cluster, kept by Simshard. Do not edit: use `simshard corpus`.

";

const NANOS_PER_SECOND: u32 = 1_000_000_000;

/// Why a text is no corpora file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FormatError {
    /// A later Simshard wrote it.
    UnknownVersion { found: u32 },
    /// It is damaged at this line and column, both from 1.
    Corrupt {
        line: usize,
        column: usize,
        message: String,
    },
}

/// Just enough of any version to know which one it is.
#[derive(Deserialize)]
struct RawVersion {
    version: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCorpora {
    #[serde(rename = "version")]
    _version: u32,
    corpus_count: usize,
    #[serde(default)]
    corpora: Vec<Spanned<RawCorpus>>,
}

#[derive(Serialize)]
struct WrittenCorpora {
    version: u32,
    corpus_count: usize,
    corpora: Vec<RawCorpus>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCorpus {
    name: String,
    uid: String,
    blocks: u32,
    distance: u32,
    recipe: String,
    create_time_seconds: i64,
    create_time_nanos: u32,
}

/// Reads the text of a corpora file.
pub(super) fn parse(text: &str) -> Result<Corpora, FormatError> {
    let corrupt = |error: &toml::de::Error| {
        let (line, column, message) = super::locate(text, error);
        FormatError::Corrupt {
            line,
            column,
            message,
        }
    };
    let RawVersion { version } = toml::from_str(text).map_err(|error| corrupt(&error))?;
    if version != VERSION {
        return Err(FormatError::UnknownVersion { found: version });
    }
    let raw: RawCorpora = toml::from_str(text).map_err(|error| corrupt(&error))?;
    let (expected, found) = (raw.corpus_count, raw.corpora.len());
    if expected != found {
        let message = format!("corpus_count is {expected}, but {found} corpora are here");
        return Err(corrupt_at(text, text.len(), message));
    }
    if !text.ends_with('\n') {
        let message = "the last line has no end".to_owned();
        return Err(corrupt_at(text, text.len(), message));
    }
    let mut corpora = Corpora::new();
    for raw in raw.corpora {
        let start = raw.span().start;
        let added = validate(raw.into_inner()).and_then(|record| insert(&mut corpora, record));
        if let Err(message) = added {
            return Err(corrupt_at(text, start, message));
        }
    }
    Ok(corpora)
}

fn corrupt_at(text: &str, offset: usize, message: String) -> FormatError {
    let (line, column) = super::position(text, offset);
    FormatError::Corrupt {
        line,
        column,
        message,
    }
}

/// The text of a corpora file that holds these.
pub(super) fn render(corpora: &Corpora) -> Result<String, toml::ser::Error> {
    let written = WrittenCorpora {
        version: VERSION,
        corpus_count: corpora.len(),
        corpora: corpora.values().map(raw_from_record).collect(),
    };
    Ok(format!("{HEADER}{}", toml::to_string(&written)?))
}

fn insert(corpora: &mut Corpora, record: CorpusRecord) -> Result<(), String> {
    if corpora.contains_key(&record.name) {
        return Err(format!("corpus {} is listed twice", record.name));
    }
    corpora.insert(record.name.clone(), record);
    Ok(())
}

fn validate(raw: RawCorpus) -> Result<CorpusRecord, String> {
    let (seconds, nanos) = (raw.create_time_seconds, raw.create_time_nanos);
    let Some(create_time) = time_from_unix(seconds, nanos) else {
        return Err(format!(
            "{seconds} seconds and {nanos} nanoseconds is no time"
        ));
    };
    Ok(CorpusRecord {
        name: CorpusName::new(raw.name).map_err(|error| error.to_string())?,
        uid: raw.uid.parse().map_err(|error| format!("{error}"))?,
        blocks: raw.blocks,
        distance: raw.distance,
        recipe: raw.recipe,
        create_time,
    })
}

fn raw_from_record(record: &CorpusRecord) -> RawCorpus {
    let (create_time_seconds, create_time_nanos) = unix_from_time(record.create_time);
    RawCorpus {
        name: record.name.to_string(),
        uid: record.uid.to_string(),
        blocks: record.blocks,
        distance: record.distance,
        recipe: record.recipe.clone(),
        create_time_seconds,
        create_time_nanos,
    }
}

/// Whole seconds since 1970, rounded down, and the nanoseconds after them.
fn unix_from_time(time: SystemTime) -> (i64, u32) {
    // No system counts further than i64 seconds, so the fallback is never reached.
    let whole = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => (whole(after), after.subsec_nanos()),
        Err(error) => {
            let before = error.duration();
            match before.subsec_nanos() {
                0 => (-whole(before), 0),
                nanos => (-whole(before) - 1, NANOS_PER_SECOND - nanos),
            }
        }
    }
}

fn time_from_unix(seconds: i64, nanos: u32) -> Option<SystemTime> {
    if nanos >= NANOS_PER_SECOND {
        return None;
    }
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let second = if seconds < 0 {
        UNIX_EPOCH.checked_sub(whole)?
    } else {
        UNIX_EPOCH.checked_add(whole)?
    };
    second.checked_add(Duration::from_nanos(u64::from(nanos)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of version 1. They may never change: files like this are out there.
    const GOLDEN: &str = r#"# The corpora of this cluster, kept by Simshard. Do not edit: use `simshard corpus`.

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

    fn golden_corpora() -> Corpora {
        let records = [
            CorpusRecord {
                name: CorpusName::new("default").unwrap(),
                uid: "67e55044-10b1-426f-9247-bb680e5fe0c8".parse().unwrap(),
                blocks: 5,
                distance: 3,
                recipe: "words-v1".to_owned(),
                create_time: UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_789),
            },
            CorpusRecord {
                name: CorpusName::new("old").unwrap(),
                uid: "00000000-0000-0000-0000-000000000000".parse().unwrap(),
                blocks: 6,
                distance: 2,
                recipe: "leonsim-3".to_owned(),
                create_time: UNIX_EPOCH - Duration::from_millis(250),
            },
        ];
        let by_name = records
            .into_iter()
            .map(|record| (record.name.clone(), record));
        by_name.collect()
    }

    #[test]
    fn version_1_is_written_as_ever() {
        assert_eq!(render(&golden_corpora()).unwrap(), GOLDEN);
    }

    #[test]
    fn version_1_is_read_as_ever() {
        assert_eq!(parse(GOLDEN), Ok(golden_corpora()));
    }

    #[test]
    fn no_corpora_survive_a_round_trip() {
        let text = render(&Corpora::new()).unwrap();
        assert_eq!(parse(&text), Ok(Corpora::new()));
    }

    #[test]
    fn times_come_back_exactly() {
        let times = [
            UNIX_EPOCH,
            UNIX_EPOCH + Duration::new(0, 1),
            UNIX_EPOCH - Duration::new(0, 1),
            UNIX_EPOCH - Duration::from_secs(1),
            UNIX_EPOCH + Duration::new(4_000_000_000, 999_999_999),
            UNIX_EPOCH - Duration::new(4_000_000_000, 999_999_999),
        ];
        for time in times {
            let (seconds, nanos) = unix_from_time(time);
            assert_eq!(time_from_unix(seconds, nanos), Some(time));
        }
        assert_eq!(time_from_unix(0, NANOS_PER_SECOND), None);
    }

    #[test]
    fn a_later_version_is_told_apart_from_damage() {
        let text = "version = 2\nunheard_of = true\n";
        assert_eq!(parse(text), Err(FormatError::UnknownVersion { found: 2 }));
    }

    #[test]
    fn every_truncation_is_refused() {
        for end in 0..GOLDEN.len() {
            let result = parse(&GOLDEN[..end]);
            assert!(
                matches!(result, Err(FormatError::Corrupt { .. })),
                "cut at {end} gave {result:?}"
            );
        }
    }

    #[test]
    fn damage_is_located() {
        let position_of = |from: &str, to: &str| {
            assert!(GOLDEN.contains(from), "{from}");
            match parse(&GOLDEN.replacen(from, to, 1)) {
                Err(FormatError::Corrupt {
                    line,
                    column,
                    message,
                }) => (line, column, message),
                other => panic!("{from} as {to} gave {other:?}"),
            }
        };
        let (line, column, _) = position_of("blocks = 5", "blocks = five");
        assert_eq!((line, column), (9, 10));
        let (line, _, message) = position_of("distance = 3\n", "");
        assert_eq!(line, 6);
        assert!(message.contains("distance"), "{message}");
        let (line, _, message) = position_of("distance = 2", "distance = 2\ncolour = 1");
        assert_eq!(line, 20);
        assert!(message.contains("colour"), "{message}");
        let (line, _, message) = position_of("\"default\"", "\"De fault\"");
        assert_eq!(line, 6);
        assert!(message.contains("De fault"), "{message}");
        let (line, _, message) = position_of("\"old\"", "\"default\"");
        assert_eq!(line, 15);
        assert!(message.contains("listed twice"), "{message}");
        let (line, _, message) = position_of("67e55044-", "67e5504-");
        assert_eq!(line, 6);
        assert!(message.contains("no corpus uid"), "{message}");
        let (line, _, message) = position_of("750000000", "1000000000");
        assert_eq!(line, 15);
        assert!(message.contains("no time"), "{message}");
        let (line, _, message) = position_of("corpus_count = 2", "corpus_count = 3");
        assert_eq!(line, 23);
        assert!(
            message.contains("corpus_count is 3, but 2 corpora"),
            "{message}"
        );
        let (line, column, message) = position_of("version = 1", "");
        assert_eq!((line, column), (1, 1));
        assert!(message.contains("version"), "{message}");
    }
}
