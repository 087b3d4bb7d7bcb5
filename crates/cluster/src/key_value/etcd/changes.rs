//! The changes that a watch of etcd tells.
//!
//! The watch stays open from one wait to the next. It begins at the revision of etcd when it is opened, so etcd tells of each
//! change at once. A watch that begins earlier has to wait for a tick of 100 ms.

use async_trait::async_trait;

use super::login::may_lack_token;
use super::members::{Answers, CallError};
use super::wire::{WatchCreateRequest, WatchRequest, WatchResponse};
use super::{EtcdKeyValues, after_all, revision};
use crate::key_value::{Changes, KeyValueError, KeyValueStore, Revision, Snapshot};

const WATCH: &str = "/etcdserverpb.Watch/Watch";

/// The changes of some of the keys.
#[derive(Debug)]
pub(super) struct EtcdChanges<'a> {
    store: &'a EtcdKeyValues,
    prefix: String,
    watch: Option<Answers<WatchResponse>>,
    /// The revision of etcd when the watch was opened, told of a change, or the keys were read, whichever was last. A
    /// caller that has read an earlier one has to read.
    told: Revision,
}

impl<'a> EtcdChanges<'a> {
    pub(super) fn new(store: &'a EtcdKeyValues, prefix: &str) -> Self {
        Self {
            store,
            prefix: prefix.to_owned(),
            watch: None,
            told: Revision::default(),
        }
    }

    /// Waits for an answer of the watch: the first, once it is open, or a change. Answers the revision of etcd then.
    async fn hear(&mut self) -> Result<Revision, KeyValueError> {
        let failed = |error: CallError| self.store.unread(&error);
        let watch = match &mut self.watch {
            Some(watch) => watch,
            None => self
                .watch
                .insert(open(self.store, &self.prefix).await.map_err(failed)?),
        };
        let answer = self.store.members.next(watch).await;
        if let Ok(answer) = &answer
            && !has_ended(answer)
        {
            return Ok(revision(answer.header.unwrap_or_default().revision));
        }
        let watch = self.watch.take();
        let end = answer.map_err(failed)?;
        if let Some(watch) = watch
            && may_lack_token(&end.cancel_reason)
        {
            self.store.members.forget_token(&watch).await;
        }
        Err(KeyValueError::Refused {
            store: self.store.name.clone(),
            reason: format!("the watch has ended: {}", end.cancel_reason),
        })
    }
}

#[async_trait]
impl Changes for EtcdChanges<'_> {
    async fn next(&mut self, after: Revision) -> Result<Snapshot, KeyValueError> {
        while self.told <= after {
            self.told = self.hear().await?;
        }
        let snapshot = self.store.read(&self.prefix).await?;
        // It is earlier than what was told if etcd was restored from a backup.
        self.told = snapshot.revision;
        Ok(snapshot)
    }
}

/// Opens a watch that tells of all changes after the revision of its first answer.
async fn open(store: &EtcdKeyValues, prefix: &str) -> Result<Answers<WatchResponse>, CallError> {
    let key = store.key(prefix);
    let create = WatchCreateRequest {
        range_end: after_all(&key),
        key,
    };
    let request = WatchRequest {
        create: Some(create),
    };
    store.members.stream(WATCH, &request).await
}

/// Whether etcd has ended the watch. It does so if it was too slow, and etcd has forgotten what the watch has to tell.
const fn has_ended(answer: &WatchResponse) -> bool {
    answer.canceled || answer.compact_revision > 0
}
