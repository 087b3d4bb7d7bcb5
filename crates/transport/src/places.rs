//! Places for requests in flight, shared fairly among peers.
//!
//! # Invariants
//! - PL1: a place comes back when it is dropped, once.
//! - PL2: an idle stream takes a part of a place, and a whole one again only if the share of its peer allows it.

use std::sync::Arc;

use parking_lot::Mutex;

use super::shares::{Peer, Shares};

/// Idle streams that take as much as one request.
const RESTING: usize = 4;

/// The size of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// Of a request, or of a stream with a batch in flight.
    Whole,
    /// Of an idle stream.
    Resting,
}

impl Size {
    const fn parts(self) -> usize {
        match self {
            Self::Whole => RESTING,
            Self::Resting => 1,
        }
    }
}

/// The places of a process. Clones share them.
#[derive(Clone, Debug)]
pub struct Places(Arc<Mutex<Shares>>);

impl Places {
    /// This many places, all free.
    #[must_use]
    pub fn new(places: usize) -> Self {
        let parts = places.saturating_mul(RESTING);
        Self(Arc::new(Mutex::new(Shares::new(parts))))
    }

    /// A place for a request of `peer`, if its share allows it.
    #[must_use]
    pub fn take(&self, peer: Peer) -> Option<Place> {
        self.take_of_size(peer, Size::Whole)
    }

    pub(super) fn take_of_size(&self, peer: Peer, size: Size) -> Option<Place> {
        let taken = self.0.lock().try_take(peer, size.parts());
        taken.then(|| Place {
            places: self.clone(),
            peer,
            size,
        })
    }

    /// Number of free places, rounded down.
    #[must_use]
    pub fn free(&self) -> usize {
        self.0.lock().free() / RESTING
    }
}

/// A place, given back when dropped.
#[derive(Debug)]
pub struct Place {
    places: Places,
    peer: Peer,
    size: Size,
}

impl Place {
    /// Changes its size if the share of its peer allows it; returns whether it does.
    pub(super) fn resize(&mut self, size: Size) -> bool {
        let (before, after) = (self.size.parts(), size.parts());
        let mut shares = self.places.0.lock();
        let fits = match before.checked_sub(after) {
            Some(less) => {
                shares.give_back(self.peer, less);
                true
            }
            None => shares.try_take(self.peer, after - before),
        };
        if fits {
            self.size = size;
        }
        fits
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.0.lock().give_back(self.peer, self.size.parts());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: Peer = Peer::UNKNOWN;

    /// PL1.
    #[test]
    fn a_place_comes_back_once_whatever_its_size_is() {
        let places = Places::new(4);
        let mut place = places.take(PEER).unwrap();
        assert_eq!(places.free(), 3);
        assert!(place.resize(Size::Resting));
        assert!(place.resize(Size::Resting));
        assert!(place.resize(Size::Whole));
        assert!(place.resize(Size::Resting));
        drop(place);
        assert_eq!(places.free(), 4);
    }

    /// PL2.
    #[test]
    fn many_streams_without_work_fit_where_few_requests_do() {
        let places = Places::new(16);
        let take_all = |size| {
            let take = || places.take_of_size(PEER, size);
            std::iter::from_fn(take).collect::<Vec<Place>>()
        };
        assert_eq!(take_all(Size::Whole).len(), 8);
        let mut streams = take_all(Size::Resting);
        assert_eq!(streams.len(), 8 * RESTING);
        assert!(!streams[0].resize(Size::Whole), "its peer has its share");
        streams.truncate(8 * RESTING / 2);
        assert!(streams[0].resize(Size::Whole));
    }
}
