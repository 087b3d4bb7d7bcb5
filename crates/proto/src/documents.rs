//! Columns of documents and queries: checking that a batch is well formed.

use simshard_simhash::{Documents, Fingerprint};
use tonic::Status;
use tonic_types::{ErrorDetails, FieldViolation};

use crate::{MAX_BATCH, MAX_ID_BYTES, MalformedColumns, Reason};

/// The documents of these columns.
///
/// # Errors
/// If there are ids, but not one a fingerprint.
pub fn documents_of_columns(
    fingerprints: Vec<u64>,
    ids: Vec<String>,
) -> Result<Documents, MalformedColumns> {
    if !ids.is_empty() && ids.len() != fingerprints.len() {
        return Err(MalformedColumns {
            column: "ids",
            found: ids.len(),
            expected: fingerprints.len(),
        });
    }
    let fingerprints = fingerprints.into_iter().map(Fingerprint).collect();
    Ok(Documents { fingerprints, ids })
}

/// The problems of a request, field by field.
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
            "has a length of {}, not of {documents} as the documents: give one id a document or none at all",
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
        assert_eq!(documents_of_columns(vec![1, 2], ids(0)).unwrap().id(1), "");
        assert_eq!(documents_of_columns(vec![1, 2], ids(2)).unwrap().len(), 2);
        assert!(documents_of_columns(vec![1, 2], ids(1)).is_err());
        assert!(documents_of_columns(vec![], ids(1)).is_err());
    }

    #[test]
    fn columns_at_their_limits_pass() {
        let mut violations = Violations::default();
        check_batch("texts", MAX_BATCH, &mut violations);
        check_ids(&["x".repeat(MAX_ID_BYTES)], 1, &mut violations);
        check_ids(&[], 7, &mut violations);
        assert!(violations.check().is_ok());
    }
}
