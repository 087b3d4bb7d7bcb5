//! Items of work for nodes.

use crate::shard::v1::work_item::Work;
use crate::shard::v1::{Change, FindAll};

impl From<Change> for Work {
    fn from(change: Change) -> Self {
        Self::Change(Box::new(change))
    }
}

impl From<FindAll> for Work {
    fn from(find: FindAll) -> Self {
        Self::FindAll(Box::new(find))
    }
}
