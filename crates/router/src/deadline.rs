//! How long a request may take.

use std::time::Duration;

use tokio::time::Instant;
use tonic::metadata::MetadataMap;

/// The header in which gRPC clients say how long they wait.
const HEADER: &str = "grpc-timeout";

/// An answer that takes all the time there is comes too late: this share of it
/// is kept for sending it.
const RESERVE: u32 = 10;

/// Most time kept for that.
const MOST_RESERVE: Duration = Duration::from_millis(100);

/// The moment by which the router wants to have an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    /// A deadline this far away, less what is kept for sending the answer.
    pub(crate) fn within(time: Duration) -> Self {
        let reserve = (time / RESERVE).min(MOST_RESERVE);
        Self(Instant::now() + (time - reserve))
    }

    /// The client's own deadline, or `default`, whichever is earlier.
    pub(crate) fn from_metadata(metadata: &MetadataMap, default: Duration) -> Self {
        Self::within(asked(metadata).map_or(default, |asked| asked.min(default)))
    }

    /// The client's own deadline, if it has one.
    pub(crate) fn of_client(metadata: &MetadataMap) -> Option<Self> {
        asked(metadata).map(Self::within)
    }

    /// A deadline that has come.
    pub(crate) fn now() -> Self {
        Self(Instant::now())
    }

    /// The moment itself.
    pub(crate) const fn instant(self) -> Instant {
        self.0
    }

    /// A deadline half as far away: what is left after it is for another try.
    pub(crate) fn half(self) -> Self {
        let now = Instant::now();
        Self(now + self.0.saturating_duration_since(now) / 2)
    }
}

/// How long the client waits, if it says so.
fn asked(metadata: &MetadataMap) -> Option<Duration> {
    let header = metadata.get(HEADER)?.to_str().ok()?;
    parse(header)
}

/// A timeout as gRPC writes it: up to 8 digits and a unit.
fn parse(header: &str) -> Option<Duration> {
    let (digits, unit) = header.split_at_checked(header.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let amount: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(amount * 3600)),
        "M" => Some(Duration::from_secs(amount * 60)),
        "S" => Some(Duration::from_secs(amount)),
        "m" => Some(Duration::from_millis(amount)),
        "u" => Some(Duration::from_micros(amount)),
        "n" => Some(Duration::from_nanos(amount)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_read_as_grpc_writes_them() {
        for (header, expected) in [
            ("5S", Some(Duration::from_secs(5))),
            ("99999999n", Some(Duration::from_nanos(99_999_999))),
            ("250m", Some(Duration::from_millis(250))),
            ("1H", Some(Duration::from_secs(3600))),
            ("2M", Some(Duration::from_secs(120))),
            ("7u", Some(Duration::from_micros(7))),
            ("", None),
            ("S", None),
            ("-1S", None),
            ("123456789S", None),
            ("5s", None),
            ("5é", None),
        ] {
            assert_eq!(parse(header), expected, "{header:?}");
        }
    }

    #[test]
    fn the_earlier_of_the_clients_and_our_own_deadline_holds() {
        let mut metadata = MetadataMap::new();
        let default = Duration::from_secs(30);
        let ours = Deadline::from_metadata(&metadata, default).0 - Instant::now();
        assert!(ours > Duration::from_secs(29));
        metadata.insert(HEADER, "1S".parse().unwrap());
        let theirs = Deadline::from_metadata(&metadata, default).0 - Instant::now();
        assert!(theirs < Duration::from_secs(1));
        metadata.insert(HEADER, "9H".parse().unwrap());
        let bounded = Deadline::from_metadata(&metadata, default).0 - Instant::now();
        assert!(bounded < default);
        let unbounded = Deadline::of_client(&metadata).unwrap().0 - Instant::now();
        assert!(unbounded > default);
        assert_eq!(Deadline::of_client(&MetadataMap::new()), None);
    }
}
