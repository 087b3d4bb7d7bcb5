//! What is found of a part of the cluster.

use serde_json::Value;

/// What an operator looks at first of a part of the cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The part.
    pub part: &'static str,
    /// Whether it is well.
    pub is_well: bool,
    /// A sentence for people: what is, and what to do about it.
    pub details: String,
    /// The same for programs: an object.
    pub facts: Value,
}

pub(crate) const fn finding(
    part: &'static str,
    is_well: bool,
    details: String,
    facts: Value,
) -> Finding {
    Finding {
        part,
        is_well,
        details,
        facts,
    }
}
