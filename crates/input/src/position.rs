//! A place between two documents of an input, to go on from there in another process.

use crate::digest::Digest;
use crate::document::{Content, Document};
use crate::documents::Documents;
use crate::error::InputError;

/// How far an input has been read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The number of documents before it.
    pub documents: u64,
    /// Of all these documents: another input, or one that has changed, has another.
    pub digest: Digest,
}

impl Position {
    /// The position after `count` documents, or at the end of an input that has fewer.
    ///
    /// # Errors
    /// If one of them cannot be read.
    pub fn after(count: u64, documents: &mut Documents) -> Result<Self, InputError> {
        let mut position = Self::default();
        while position.documents < count {
            let Some(document) = documents.next() else {
                break;
            };
            position.pass(&document?);
        }
        Ok(position)
    }

    /// Goes on behind a document.
    pub fn pass(&mut self, document: &Document) {
        self.documents += 1;
        self.digest.add(document.id.as_bytes());
        match &document.content {
            Content::Text(text) => self.digest.add(text.as_bytes()),
            Content::Fingerprint(fingerprint) => self.digest.add(&fingerprint.0.to_le_bytes()),
        }
    }
}
