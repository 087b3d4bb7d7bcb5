//! Columns of documents and queries: checking that a batch is well formed.

use simshard_simhash::Fingerprint;
use tonic::Status;
use tonic_types::{ErrorDetails, FieldViolation};

use crate::{MAX_BATCH, MAX_ID_BYTES, MalformedColumns, Reason};

/// Documents as columns of equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Documents {
    /// One fingerprint a document.
    pub fingerprints: Vec<Fingerprint>,
    /// One id a document, or no ids at all: then all are empty.
    pub ids: Vec<String>,
}

impl Documents {
    /// The documents of these columns.
    ///
    /// # Errors
    /// If there are ids, but not one a fingerprint.
    pub fn of_columns(fingerprints: Vec<u64>, ids: Vec<String>) -> Result<Self, MalformedColumns> {
        if !ids.is_empty() && ids.len() != fingerprints.len() {
            return Err(MalformedColumns {
                column: "ids",
                found: ids.len(),
                expected: fingerprints.len(),
            });
        }
        let fingerprints = fingerprints.into_iter().map(Fingerprint).collect();
        Ok(Self { fingerprints, ids })
    }

    /// Number of documents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fingerprints.len()
    }

    /// Whether there is no document.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fingerprints.is_empty()
    }

    /// The id of a document.
    ///
    /// # Panics
    /// If there are ids, but not so many.
    #[must_use]
    pub fn id(&self, document: usize) -> &str {
        if self.ids.is_empty() {
            ""
        } else {
            &self.ids[document]
        }
    }

    /// The documents at these places, in that order.
    ///
    /// # Panics
    /// If there are not so many documents.
    #[must_use]
    pub fn select(&self, places: &[u32]) -> Self {
        let mut selected = Self::default();
        for &place in places {
            selected
                .fingerprints
                .push(self.fingerprints[place as usize]);
        }
        if !self.ids.is_empty() {
            let ids = places.iter().map(|&place| self.ids[place as usize].clone());
            selected.ids = ids.collect();
        }
        selected
    }
}

/// What is wrong with a request, field by field.
#[derive(Debug, Default)]
pub struct Violations(Vec<FieldViolation>);

impl Violations {
    /// Notes that a field is wrong: `ids[3]`, "is over 1,024 bytes".
    pub fn add(&mut self, field: impl Into<String>, description: impl Into<String>) {
        self.0.push(FieldViolation::new(field, description));
    }

    /// An INVALID_ARGUMENT for a single wrong field.
    #[must_use]
    pub fn of(field: &str, description: impl Into<String>) -> Status {
        let violation = FieldViolation::new(field, description);
        invalid(vec![violation])
    }

    /// Whether nothing was noted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// An INVALID_ARGUMENT that names every field.
    #[must_use]
    pub fn status(self) -> Status {
        invalid(self.0)
    }

    /// Nothing, or that INVALID_ARGUMENT.
    ///
    /// # Errors
    /// If anything was noted.
    pub fn check(self) -> Result<(), Status> {
        if self.is_empty() {
            Ok(())
        } else {
            Err(self.status())
        }
    }
}

fn invalid(violations: Vec<FieldViolation>) -> Status {
    let named: Vec<String> = violations
        .iter()
        .map(|violation| format!("{} {}", violation.field, violation.description))
        .collect();
    let mut details = ErrorDetails::new();
    details.set_bad_request(violations);
    Reason::InvalidRequest.with_details(named.join("; "), [], details)
}

/// Notes a batch that is too long. `field` names its column.
pub fn check_batch(field: &str, count: usize, violations: &mut Violations) {
    if count > MAX_BATCH {
        let wrong =
            format!("has {count} elements: a batch holds at most {MAX_BATCH}, send several");
        violations.add(field, wrong);
    }
}

/// Notes a column of ids that does not fit its `documents`, or a long id.
pub fn check_ids(ids: &[String], documents: usize, violations: &mut Violations) {
    if !ids.is_empty() && ids.len() != documents {
        let wrong = format!(
            "has {} elements for {documents} documents: give one id a document or none at all",
            ids.len()
        );
        violations.add("ids", wrong);
    }
    let long = ids.iter().position(|id| id.len() > MAX_ID_BYTES);
    if let Some(place) = long {
        let bytes = ids[place].len();
        let wrong = format!("has {bytes} bytes: an id has at most {MAX_ID_BYTES}");
        violations.add(format!("ids[{place}]"), wrong);
    }
}

#[cfg(test)]
mod tests {
    use tonic_types::StatusExt;

    use super::*;

    #[test]
    fn wrong_columns_are_all_named() {
        let mut violations = Violations::default();
        check_batch("texts", MAX_BATCH + 1, &mut violations);
        check_ids(&["a".into(), "b".repeat(1025)], 3, &mut violations);
        let status = violations.check().unwrap_err();
        assert_eq!(Reason::of(&status), Some(Reason::InvalidRequest));
        let fields: Vec<String> = status
            .get_details_bad_request()
            .unwrap()
            .field_violations
            .into_iter()
            .map(|violation| violation.field)
            .collect();
        assert_eq!(fields, ["texts", "ids", "ids[1]"]);
    }

    #[test]
    fn documents_have_an_id_each_or_none_at_all() {
        let ids = |count| vec!["a".to_owned(); count];
        assert_eq!(Documents::of_columns(vec![1, 2], ids(0)).unwrap().id(1), "");
        assert_eq!(Documents::of_columns(vec![1, 2], ids(2)).unwrap().len(), 2);
        assert!(Documents::of_columns(vec![1, 2], ids(1)).is_err());
        assert!(Documents::of_columns(vec![], ids(1)).is_err());
    }

    #[test]
    fn columns_at_their_limits_pass() {
        let mut violations = Violations::default();
        check_batch("texts", MAX_BATCH, &mut violations);
        check_ids(&["x".repeat(MAX_ID_BYTES)], 1, &mut violations);
        check_ids(&[], 7, &mut violations);
        assert!(violations.check().is_ok());
    }

    #[test]
    fn selecting_keeps_ids_beside_their_fingerprints() {
        let documents = Documents {
            fingerprints: [1, 2, 3].map(Fingerprint).to_vec(),
            ids: ["a", "b", "c"].map(String::from).to_vec(),
        };
        let selected = documents.select(&[2, 0]);
        assert_eq!(selected.fingerprints, [3, 1].map(Fingerprint));
        assert_eq!((selected.id(0), selected.id(1)), ("c", "a"));
    }
}
