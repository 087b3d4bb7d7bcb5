//! Documents and queries, and cutting them into batches that fit a message.

use simshard_proto::v1::{InsertRequest, RemoveRequest};
use simshard_proto::{MAX_BATCH, MAX_MESSAGE_BYTES};
use simshard_simhash::Fingerprint;

/// Room for the parts of a message that are no documents.
const HEADER_BYTES: usize = 64 << 10;

/// Bytes of a fingerprint, and of the tags and lengths around a string.
const FINGERPRINT_BYTES: usize = 8;
const STRING_BYTES: usize = 6;

/// Fingerprints to search for or to store, or texts that the router turns into
/// fingerprints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Queries {
    /// Fingerprints.
    Fingerprints(Vec<Fingerprint>),
    /// Texts.
    Texts(Vec<String>),
}

impl Queries {
    /// Number of queries.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Fingerprints(values) => values.len(),
            Self::Texts(texts) => texts.len(),
        }
    }

    /// Whether there is no query.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The two columns of a request, one of them empty.
    pub(crate) fn into_columns(self) -> (Vec<u64>, Vec<String>) {
        match self {
            Self::Fingerprints(values) => (values.into_iter().map(|v| v.0).collect(), Vec::new()),
            Self::Texts(texts) => (Vec::new(), texts),
        }
    }

    /// Splits in two; the queries from `at` on are returned.
    pub(crate) fn split_off(&mut self, at: usize) -> Self {
        match self {
            Self::Fingerprints(values) => Self::Fingerprints(values.split_off(at)),
            Self::Texts(texts) => Self::Texts(texts.split_off(at)),
        }
    }
}

/// Documents as columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Documents {
    /// One fingerprint or text a document.
    pub keys: Queries,
    /// One id a document, or no ids at all: then all are empty.
    pub ids: Vec<String>,
}

pub(crate) fn insert_request(corpus: &str, recipe: &str, documents: Documents) -> InsertRequest {
    let (fingerprints, texts) = documents.keys.into_columns();
    InsertRequest {
        corpus: corpus.to_owned(),
        recipe: recipe.to_owned(),
        fingerprints,
        texts,
        ids: documents.ids,
    }
}

pub(crate) fn remove_request(
    corpus: &str,
    recipe: &str,
    documents: Documents,
    beyond_clock: bool,
) -> RemoveRequest {
    let (fingerprints, texts) = documents.keys.into_columns();
    RemoveRequest {
        corpus: corpus.to_owned(),
        recipe: recipe.to_owned(),
        fingerprints,
        texts,
        ids: documents.ids,
        beyond_clock,
    }
}

/// Says when a batch is full, by number and by bytes.
#[derive(Clone, Copy, Debug)]
pub struct Batcher {
    most: usize,
    count: usize,
    bytes: usize,
}

impl Batcher {
    /// Batches of at most `most` documents.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            most: most.clamp(1, MAX_BATCH),
            count: 0,
            bytes: HEADER_BYTES,
        }
    }

    /// Whether a document still fits; if not, a new batch starts with it.
    pub fn fits(&mut self, text: Option<&str>, id: &str) -> bool {
        let text = text.map_or(FINGERPRINT_BYTES, |text| STRING_BYTES + text.len());
        let bytes = text + STRING_BYTES + id.len();
        if self.count > 0 && (self.count == self.most || self.bytes + bytes > MAX_MESSAGE_BYTES) {
            (self.count, self.bytes) = (1, HEADER_BYTES + bytes);
            return false;
        }
        self.count += 1;
        self.bytes += bytes;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_end_at_their_number() {
        let mut batcher = Batcher::new(3);
        let fits: Vec<bool> = (0..7).map(|_| batcher.fits(None, "id")).collect();
        assert_eq!(fits, [true, true, true, false, true, true, false]);
    }

    #[test]
    fn batches_end_before_a_message_is_too_large() {
        let text = "x".repeat(1 << 20);
        let mut batcher = Batcher::new(MAX_BATCH);
        let first = (0..20)
            .take_while(|_| batcher.fits(Some(&text), ""))
            .count();
        assert_eq!(first, 15);
    }

    #[test]
    fn a_document_alone_always_starts_a_batch() {
        let text = "x".repeat(MAX_MESSAGE_BYTES);
        let mut batcher = Batcher::new(10);
        assert!(batcher.fits(Some(&text), ""));
        assert!(!batcher.fits(Some(&text), ""));
    }
}
