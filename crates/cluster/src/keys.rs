//! Every key of the metadata in a key-value store.
//!
//! | key | value |
//! |---|---|
//! | `corpora/revision` | how many changes of corpora there have been |
//! | `corpora/by-name/NAME` | the record of a corpus, as JSON |

use crate::corpus::CorpusName;

/// Before all keys about corpora.
pub(crate) const CORPORA: &str = "corpora/";

/// Counts the changes of corpora. Each change compares and writes it.
pub(crate) const CORPORA_REVISION: &str = "corpora/revision";

/// Before the records of corpora.
const CORPUS_BY_NAME: &str = "corpora/by-name/";

/// The record of a corpus.
pub(crate) fn corpus(name: &CorpusName) -> String {
    format!("{CORPUS_BY_NAME}{name}")
}

/// Whether a key holds the record of a corpus.
pub(crate) fn is_corpus(key: &str) -> bool {
    key.starts_with(CORPUS_BY_NAME)
}
