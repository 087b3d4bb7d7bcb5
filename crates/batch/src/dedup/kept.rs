//! The kept documents, for a corpus that they are added to.

use std::borrow::Cow;

use simshard_simhash::Fingerprint;

use super::choice::Choice;
use crate::documents::DocumentSet;

/// The documents that were kept, but for those without a fingerprint.
#[derive(Debug)]
pub struct KeptDocuments {
    pub(super) documents: DocumentSet,
    pub(super) choice: Choice,
}

impl KeptDocuments {
    /// Their ids and fingerprints, by fingerprint.
    pub fn iter(&self) -> impl Iterator<Item = (Cow<'_, str>, Fingerprint)> {
        let set = self.documents.fingerprints().as_slice();
        let numbered = set.iter().enumerate().flat_map(|(place, &fingerprint)| {
            let numbers = self.documents.numbers(place).iter();
            numbers.map(move |&document| (document as usize, fingerprint))
        });
        let kept = numbered.filter(|(document, _)| !self.choice.is_dropped(*document));
        kept.map(|(document, fingerprint)| {
            (
                self.documents.id_of(document).unwrap_or_default(),
                fingerprint,
            )
        })
    }
}
