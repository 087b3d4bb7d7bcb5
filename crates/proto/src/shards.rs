//! Sets of shards and their epochs, to and from the columns that carry them.

use simshard_topology::replication::{Epoch, ShardEpochs};
use simshard_topology::{ShardId, ShardSet};
use tonic::Status;

use crate::Violations;

/// The shards of a set, ascending.
#[must_use]
pub fn shards_from(shards: ShardSet) -> Vec<u32> {
    shards.iter().map(|shard| shard.0.into()).collect()
}

/// The shard of this number, which a field has.
///
/// # Errors
/// If it is over 255.
pub fn shard_into(field: &str, number: u32) -> Result<ShardId, Status> {
    let wrong = |_| Violations::of(field, format!("has {number}: a shard is 0 to 255"));
    u8::try_from(number).map(ShardId).map_err(wrong)
}

/// The set of these shards.
///
/// # Errors
/// If one is over 255.
pub fn shards_into(shards: &[u32]) -> Result<ShardSet, Status> {
    let shards = shards.iter().map(|shard| shard_into("shards", *shard));
    shards.collect()
}

/// The numbers and the generations of the epochs of shards. Generations that are all 0 are left out.
#[must_use]
pub fn epochs_from(epochs: &[(ShardId, Epoch)]) -> (Vec<u64>, Vec<u32>) {
    let numbers = epochs.iter().map(|(_, epoch)| epoch.number);
    let mut generations: Vec<u32> = epochs.iter().map(|(_, epoch)| epoch.generation).collect();
    if generations.iter().all(|&generation| generation == 0) {
        generations.clear();
    }
    (numbers.collect(), generations)
}

/// The epochs of these shards; `None` if no columns were sent.
///
/// # Errors
/// If there is not one for each shard, or the shards are not ascending.
pub fn epochs_into(
    shards: &[u32],
    numbers: &[u64],
    generations: &[u32],
) -> Result<Option<ShardEpochs>, Status> {
    if numbers.is_empty() && generations.is_empty() {
        return Ok(None);
    }
    let wrong = |column| {
        let of = shards.len();
        Err(Violations::of(
            column,
            format!("has not one for each of {of} shards"),
        ))
    };
    if numbers.len() != shards.len() {
        return wrong("target.epoch_numbers");
    }
    if !generations.is_empty() && generations.len() != shards.len() {
        return wrong("target.epoch_generations");
    }
    if !shards.is_sorted_by(|one, next| one < next) {
        return Err(Violations::of("shards", "is not ascending"));
    }
    let generations = generations.iter().copied().chain(std::iter::repeat(0));
    let epochs = numbers.iter().zip(generations);
    let epochs = epochs.map(|(&number, generation)| Epoch { generation, number });
    let shards = shards_into(shards)?;
    Ok(Some(shards.iter().zip(epochs).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_come_back_as_they_went() {
        let set: ShardSet = [0, 7, 255].map(ShardId).into_iter().collect();
        assert_eq!(shards_from(set), [0, 7, 255]);
        assert_eq!(shards_into(&[255, 0, 7]).unwrap(), set);
        assert_eq!(shard_into("shard", 255).unwrap(), ShardId(255));
        for (field, refused) in [
            ("shards", shards_into(&[7, 256]).unwrap_err()),
            ("shard", shard_into("shard", 256).unwrap_err()),
        ] {
            let told = refused.message();
            assert!(told.contains(&format!("{field} has 256: ")), "{told}");
        }
    }

    #[test]
    fn epochs_come_back_as_they_went() {
        let epoch = |generation, number| Epoch { generation, number };
        for generations in [[0, 0], [0, 3]] {
            let epochs = vec![
                (ShardId(7), epoch(generations[0], 9)),
                (ShardId(255), epoch(generations[1], 1)),
            ];
            let (numbers, columns) = epochs_from(&epochs);
            assert_eq!(numbers, [9, 1]);
            assert_eq!(columns.is_empty(), generations == [0, 0]);
            let back = epochs_into(&[7, 255], &numbers, &columns).unwrap();
            assert_eq!(back, Some(epochs));
        }
        assert_eq!(epochs_into(&[7, 255], &[], &[]).unwrap(), None);
    }

    #[test]
    fn columns_that_are_no_epochs_of_the_shards_are_refused() {
        let wrong: [(&[u32], &[u64], &[u32]); 6] = [
            (&[7, 255], &[1], &[]),
            (&[7, 255], &[1, 1], &[0]),
            (&[7, 255], &[], &[0, 0]),
            (&[255, 7], &[1, 1], &[]),
            (&[7, 7], &[1, 1], &[]),
            (&[7, 256], &[1, 1], &[]),
        ];
        for (shards, numbers, generations) in wrong {
            assert!(
                epochs_into(shards, numbers, generations).is_err(),
                "{shards:?}"
            );
        }
    }
}
