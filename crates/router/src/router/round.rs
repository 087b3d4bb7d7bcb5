//! One round of requests to nodes about the documents or queries of several requests: which of these can be answered
//! already, though some nodes have not answered yet. Pure.
//!
//! # Invariants
//! - RN1: a request is ready once all parts with documents or queries of it have arrived, and it is so once.

use std::ops::Range;

use crate::plan::Part;

/// What the requests of a batch wait for.
#[derive(Debug)]
pub(super) struct Round {
    /// For each request, the places of its documents or queries.
    places: Vec<Range<usize>>,
    /// For each request, the parts that are still out; `None` once it was ready or taken.
    out: Vec<Option<usize>>,
}

impl Round {
    /// Of requests with so many documents or queries each, one after the other, and all parts that are sent.
    pub(super) fn new<'a>(
        lengths: impl IntoIterator<Item = usize>,
        parts: impl IntoIterator<Item = &'a Part>,
    ) -> Self {
        let mut end = 0;
        let place = |length| {
            let first = end;
            end += length;
            first..end
        };
        let places: Vec<Range<usize>> = lengths.into_iter().map(place).collect();
        let mut out = vec![Some(0); places.len()];
        for part in parts {
            for (out, places) in out.iter_mut().zip(&places) {
                *out.get_or_insert(0) += usize::from(part.has_any(places));
            }
        }
        Self { places, out }
    }

    /// The places of a request.
    pub(super) fn places(&self, request: usize) -> Range<usize> {
        self.places[request].clone()
    }

    /// Takes note of an answer, or of its failure to come.
    pub(super) fn arrived(&mut self, part: &Part) {
        for (out, places) in self.out.iter_mut().zip(&self.places) {
            if let Some(out) = out {
                *out -= usize::from(part.has_any(places));
            }
        }
    }

    /// The requests that have become ready.
    pub(super) fn take_ready(&mut self) -> Vec<usize> {
        self.take_where(|_, out| out == 0)
    }

    /// Those requests, of which so many parts are out, that are to be dealt with now, as if they were ready.
    pub(super) fn take_where(&mut self, is_taken: impl Fn(usize, usize) -> bool) -> Vec<usize> {
        let mut taken = Vec::new();
        for (request, out) in self.out.iter_mut().enumerate() {
            if out.is_some_and(|out| is_taken(request, out)) {
                *out = None;
                taken.push(request);
            }
        }
        taken
    }

    /// Whether a request has not been ready.
    pub(super) fn is_out(&self, request: usize) -> bool {
        self.out[request].is_some()
    }

    /// Whether all requests have been ready.
    pub(super) fn is_over(&self) -> bool {
        self.out.iter().all(Option::is_none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(places: &[u32]) -> Part {
        Part {
            places: places.to_vec(),
            ..Part::default()
        }
    }

    /// RN1.
    #[test]
    fn a_request_is_ready_once_all_its_parts_have_arrived() {
        let parts = [part(&[0, 1, 4]), part(&[1, 2]), part(&[5])];
        let mut round = Round::new([2, 1, 0, 2, 1], &parts);
        assert_eq!(round.take_ready(), [2], "it waits for nothing");
        round.arrived(&parts[2]);
        assert_eq!(round.take_ready(), [4]);
        round.arrived(&parts[0]);
        assert_eq!(round.take_ready(), [3]);
        assert!(round.is_out(0) && round.is_out(1) && !round.is_out(2));
        round.arrived(&parts[1]);
        assert!(!round.is_over());
        assert_eq!(round.take_ready(), [0, 1]);
        assert!(round.take_ready().is_empty());
        assert!(round.is_over());
        assert_eq!(round.places(3), 3..5);
    }

    /// RN1.
    #[test]
    fn a_request_that_is_taken_before_it_is_ready_is_not_ready_later() {
        let parts = [part(&[0, 1]), part(&[1])];
        let mut round = Round::new([1, 1], &parts);
        let taken = round.take_where(|request, out| request == 1 && out == 2);
        assert_eq!(taken, [1]);
        assert!(!round.is_over());
        round.arrived(&parts[0]);
        round.arrived(&parts[1]);
        assert_eq!(round.take_ready(), [0]);
        assert!(round.is_over());
    }
}
