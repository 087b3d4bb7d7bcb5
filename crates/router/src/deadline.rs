//! How long a request may take.

use std::time::Duration;

use simshard_transport::client_timeout;
use tokio::time::Instant;
use tonic::metadata::MetadataMap;

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
        Self::within(client_timeout(metadata.as_ref()).map_or(default, |asked| asked.min(default)))
    }

    /// The client's own deadline, if it has one.
    pub(crate) fn of_client(metadata: &MetadataMap) -> Option<Self> {
        client_timeout(metadata.as_ref()).map(Self::within)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// FI2.
    #[tokio::test(start_paused = true)]
    async fn half_of_the_time_that_is_left_is_kept_for_another_try() {
        let second = Duration::from_secs(1);
        let deadline = Deadline(Instant::now() + 4 * second);
        assert_eq!(deadline.half(), Deadline(Instant::now() + 2 * second));
        tokio::time::advance(3 * second).await;
        assert_eq!(deadline.half(), Deadline(Instant::now() + second / 2));
        tokio::time::advance(2 * second).await;
        assert_eq!(deadline.half(), Deadline::now(), "none is left");
    }

    #[test]
    fn the_earlier_of_the_clients_and_our_own_deadline_holds() {
        let mut metadata = MetadataMap::new();
        let default = Duration::from_secs(30);
        let ours = Deadline::from_metadata(&metadata, default).0 - Instant::now();
        assert!(ours > Duration::from_secs(29));
        metadata.insert("grpc-timeout", "1S".parse().unwrap());
        let theirs = Deadline::from_metadata(&metadata, default).0 - Instant::now();
        assert!(theirs < Duration::from_secs(1));
        metadata.insert("grpc-timeout", "9H".parse().unwrap());
        let bounded = Deadline::from_metadata(&metadata, default).0 - Instant::now();
        assert!(bounded < default);
        let unbounded = Deadline::of_client(&metadata).unwrap().0 - Instant::now();
        assert!(unbounded > default);
        assert_eq!(Deadline::of_client(&MetadataMap::new()), None);
    }
}
