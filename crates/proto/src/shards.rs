//! Sets of shards, to and from the columns that carry them.

use simshard_topology::{ShardId, ShardSet};
use tonic::Status;

use crate::Violations;

/// The shards of a set, ascending.
#[must_use]
pub fn shards_from(shards: ShardSet) -> Vec<u32> {
    shards.iter().map(|shard| shard.0.into()).collect()
}

/// The set of these shards.
///
/// # Errors
/// If one is over 255.
pub fn shards_into(shards: &[u32]) -> Result<ShardSet, Status> {
    let mut set = ShardSet::EMPTY;
    for &shard in shards {
        let Ok(shard) = u8::try_from(shard) else {
            let wrong = format!("has {shard}: a shard is 0 to 255");
            return Err(Violations::of("shards", wrong));
        };
        set.insert(ShardId(shard));
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_come_back_as_they_went() {
        let set: ShardSet = [0, 7, 255].map(ShardId).into_iter().collect();
        assert_eq!(shards_from(set), [0, 7, 255]);
        assert_eq!(shards_into(&[255, 0, 7]).unwrap(), set);
        assert!(shards_into(&[256]).is_err());
    }
}
