//! Watches that stay open between two changes. etcd tells a watch of later changes at once. One that begins before its
//! latest change has to wait for a tick of 100 ms.

use std::collections::HashMap;

use parking_lot::Mutex;

use super::members::Answers;
use super::revision;
use super::wire::WatchResponse;
use crate::key_value::Revision;

/// A stream of changes of the keys that start with a prefix.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) answers: Answers<WatchResponse>,
    /// The last change that it has told, or what it begins after.
    pub(super) told: Revision,
}

/// The watches that are not waited for now, by their prefixes.
#[derive(Debug, Default)]
pub(super) struct Watches(Mutex<HashMap<String, Watch>>);

impl Watches {
    /// A watch of a prefix that has yet to tell of every change after a revision.
    pub(super) fn take(&self, prefix: &str, after: Revision) -> Option<Watch> {
        let watch = self.0.lock().remove(prefix);
        watch.filter(|watch| watch.told <= after)
    }

    /// Keeps a watch for the next who waits.
    pub(super) fn keep(&self, prefix: &str, watch: Watch) {
        self.0.lock().insert(prefix.to_owned(), watch);
    }
}

/// The last change of those that an answer tells.
pub(super) fn last_change(answer: &WatchResponse) -> Option<Revision> {
    let pairs = answer.events.iter().filter_map(|event| event.pair.as_ref());
    pairs.map(|pair| revision(pair.mod_revision)).max()
}
