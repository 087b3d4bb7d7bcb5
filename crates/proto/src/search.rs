//! The options of a search.

use std::num::NonZeroU32;

use crate::{shard, v1};

/// The options of a search: one type from decoding on, in clients, routers and nodes. On the wire, a
/// limit of 0 means all; here that is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchSpec {
    /// Largest distance of a match; `None` means the corpus's.
    pub max_distance: Option<u32>,
    /// Most matches of a query, the nearest; `None` means all.
    pub limit: Option<NonZeroU32>,
    /// Most ids of a match; `None` means all.
    pub max_ids: Option<NonZeroU32>,
    /// Take what the reachable nodes hold, with a certificate, over an error.
    pub allow_partial: bool,
}

impl SearchSpec {
    /// The options in a client's request.
    #[must_use]
    pub const fn of_find_all(request: &v1::FindAllRequest) -> Self {
        Self {
            max_distance: request.max_distance,
            limit: NonZeroU32::new(request.limit),
            max_ids: NonZeroU32::new(request.max_ids),
            allow_partial: request.allow_partial,
        }
    }

    /// The options in a client's request for the first match, which is a search with limit 1.
    #[must_use]
    pub const fn of_find_first(request: &v1::FindFirstRequest) -> Self {
        Self {
            max_distance: request.max_distance,
            limit: Some(NonZeroU32::MIN),
            max_ids: NonZeroU32::new(request.max_ids),
            allow_partial: request.allow_partial,
        }
    }

    /// The options in a router's request to a node.
    #[must_use]
    pub const fn of_shards(request: &shard::v1::FindAll) -> Self {
        Self {
            max_distance: Some(request.max_distance),
            limit: NonZeroU32::new(request.limit),
            max_ids: NonZeroU32::new(request.max_ids),
            allow_partial: false,
        }
    }

    /// The largest distance of a match in a corpus whose own is `most`.
    #[must_use]
    pub fn distance_in(&self, most: u32) -> u32 {
        self.max_distance.unwrap_or(most)
    }
}

/// The request without its corpus and queries.
impl From<SearchSpec> for v1::FindAllRequest {
    fn from(spec: SearchSpec) -> Self {
        Self {
            max_distance: spec.max_distance,
            limit: limit_from(spec.limit),
            max_ids: limit_from(spec.max_ids),
            allow_partial: spec.allow_partial,
            ..Self::default()
        }
    }
}

/// The request without its corpus and queries.
impl From<SearchSpec> for v1::FindFirstRequest {
    fn from(spec: SearchSpec) -> Self {
        Self {
            max_distance: spec.max_distance,
            max_ids: limit_from(spec.max_ids),
            allow_partial: spec.allow_partial,
            ..Self::default()
        }
    }
}

/// A limit as the wire has it: 0 means all.
#[must_use]
pub fn limit_from(limit: Option<NonZeroU32>) -> u32 {
    limit.map_or(0, NonZeroU32::get)
}

/// A limit as a number of things: as many as there may be, if there is none.
#[must_use]
pub fn at_most(limit: Option<NonZeroU32>) -> usize {
    limit.map_or(usize::MAX, |limit| limit.get() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limit_is_all_and_on_the_wire_zero() {
        assert_eq!((limit_from(None), at_most(None)), (0, usize::MAX));
        let three = NonZeroU32::new(3);
        assert_eq!((limit_from(three), at_most(three)), (3, 3));
        let all = SearchSpec::of_find_all(&v1::FindAllRequest::default());
        assert_eq!(all, SearchSpec::default());
        let first = SearchSpec::of_find_first(&v1::FindFirstRequest::default());
        assert_eq!(at_most(first.limit), 1);
    }

    #[test]
    fn a_search_is_the_same_after_it_was_sent() {
        let spec = SearchSpec {
            max_distance: Some(2),
            limit: NonZeroU32::new(3),
            max_ids: NonZeroU32::new(4),
            allow_partial: true,
        };
        assert_eq!(SearchSpec::of_find_all(&spec.into()), spec);
        let first = SearchSpec {
            limit: Some(NonZeroU32::MIN),
            ..spec
        };
        assert_eq!(SearchSpec::of_find_first(&spec.into()), first);
    }

    #[test]
    fn a_search_goes_as_far_as_its_corpus_unless_it_says_how_far() {
        let mut spec = SearchSpec::default();
        assert_eq!(spec.distance_in(3), 3);
        spec.max_distance = Some(2);
        assert_eq!(spec.distance_in(3), 2);
    }
}
