//! Documents as results show them.

use std::borrow::Cow;

use simshard_simhash::Fingerprint;

/// The name of a document without an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BareName {
    /// Its fingerprint.
    Fingerprint,
    /// The number of its line.
    Line,
}

/// A document as results show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// Its id; `None` where its fingerprint stands for one.
    pub id: Option<Cow<'a, str>>,
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
}
