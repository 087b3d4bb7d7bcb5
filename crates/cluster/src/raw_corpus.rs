//! The record of a corpus as its text says it: a part of the corpora file, or a value of a key-value store.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::corpus::{CorpusName, CorpusRecord, CorpusState};

const NANOS_PER_SECOND: u32 = 1_000_000_000;

/// The fields of a record. The time is seconds since 1970 (negative before), plus nanoseconds. A live corpus has no
/// state.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawCorpus {
    name: String,
    uid: String,
    blocks: u32,
    distance: u32,
    recipe: String,
    create_time_seconds: i64,
    create_time_nanos: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<RawState>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RawState {
    Creating,
    Deleting,
}

impl RawCorpus {
    /// The record, or why these fields make none.
    pub(crate) fn validated(self) -> Result<CorpusRecord, String> {
        let (seconds, nanos) = (self.create_time_seconds, self.create_time_nanos);
        let Some(create_time) = time_from_unix(seconds, nanos) else {
            return Err(format!(
                "{seconds} seconds and {nanos} nanoseconds is no time"
            ));
        };
        Ok(CorpusRecord {
            name: CorpusName::new(self.name).map_err(|error| error.to_string())?,
            uid: self.uid.parse().map_err(|error| format!("{error}"))?,
            blocks: self.blocks,
            distance: self.distance,
            recipe: self.recipe,
            create_time,
            state: match self.state {
                None => CorpusState::Live,
                Some(RawState::Creating) => CorpusState::Creating,
                Some(RawState::Deleting) => CorpusState::Deleting,
            },
        })
    }
}

impl From<&CorpusRecord> for RawCorpus {
    fn from(record: &CorpusRecord) -> Self {
        let (create_time_seconds, create_time_nanos) = unix_from_time(record.create_time);
        Self {
            name: record.name.to_string(),
            uid: record.uid.to_string(),
            blocks: record.blocks,
            distance: record.distance,
            recipe: record.recipe.clone(),
            create_time_seconds,
            create_time_nanos,
            state: match record.state {
                CorpusState::Creating => Some(RawState::Creating),
                CorpusState::Live => None,
                CorpusState::Deleting => Some(RawState::Deleting),
            },
        }
    }
}

/// Whole seconds since 1970, rounded down, and the nanoseconds after them.
pub(crate) fn unix_from_time(time: SystemTime) -> (i64, u32) {
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
}
