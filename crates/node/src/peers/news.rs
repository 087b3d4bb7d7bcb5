//! Records that other stores have and this one has not: the metadata may not reach this node while all others do. It asks
//! a store that has them.
//!
//! # Invariants
//! - PE11: a store that reports a later record of a shard for a while is asked for it, and tells only what it has on disk.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use simshard_cluster::ClusterLayout;
use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::shard_service_client::ShardServiceClient;
use simshard_storage::decode_record;
use simshard_topology::ShardId;
use simshard_topology::replication::{Epoch, ShardEpochs, ShardRecords, StoreId};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tonic::Status;
use tracing::{debug, info};

use super::Peers;
use super::health::{INTERVAL, Others};
use super::pings::{ANSWER_TIMEOUT, channel_to};
use crate::engine::Engine;

/// The metadata has this time to tell of a record that another store has.
const LAG_TIMEOUT: Duration = Duration::from_millis(500);

/// Asks for records as long as it is polled.
pub(super) async fn run(
    peers: &Arc<Peers>,
    engine: &Engine,
    followed: watch::Receiver<Arc<ClusterLayout>>,
) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut lag = Lag::default();
    loop {
        ticks.tick().await;
        let (_, own) = engine.reports();
        let asked = lag.look(Instant::now(), &own, &peers.others.lock());
        let layout = Arc::clone(&followed.borrow());
        for (store, shards) in asked {
            let Some(node) = layout.node_of(store) else {
                continue;
            };
            match ask(&node.address, store, &shards).await {
                Ok(records) => {
                    // What waits for a report is told again.
                    if **peers.told.borrow() != records {
                        info!(node = %node.id, records = records.len(), "another node tells of newer records of shards");
                    }
                    peers.told.send_replace(Arc::new(records));
                }
                Err(error) => {
                    debug!(node = %node.id, %error, "no newer records of shards are told");
                }
            }
        }
    }
}

/// Since when other stores have later records.
#[derive(Debug, Default)]
struct Lag {
    /// For each shard of which others have a later record: the own epoch, and when the lag was first seen.
    since: BTreeMap<ShardId, (Epoch, Instant)>,
}

impl Lag {
    /// The live stores to ask now, and for which shards. `own` has the epochs of this store.
    fn look(
        &mut self,
        now: Instant,
        own: &ShardEpochs,
        others: &Others,
    ) -> BTreeMap<StoreId, Vec<ShardId>> {
        let mut asked: BTreeMap<StoreId, Vec<ShardId>> = BTreeMap::new();
        let mut since = BTreeMap::new();
        let live = others.live(now);
        for &(shard, epoch) in own {
            let report = |store: &StoreId| (others.by_store[store].report(shard), *store);
            let Some((latest, store)) = live.iter().map(report).max() else {
                continue;
            };
            if latest <= epoch {
                continue;
            }
            let known = self.since.get(&shard).filter(|(of, _)| *of == epoch);
            let (_, first) = *since
                .entry(shard)
                .or_insert(known.copied().unwrap_or((epoch, now)));
            if now.saturating_duration_since(first) >= LAG_TIMEOUT {
                asked.entry(store).or_default().push(shard);
            }
        }
        self.since = since;
        asked
    }
}

/// Asks a store for its records of some shards.
async fn ask(address: &str, store: StoreId, shards: &[ShardId]) -> Result<ShardRecords, Status> {
    let channel = channel_to(address);
    let channel = channel.ok_or_else(|| Status::invalid_argument("no address"))?;
    let request = pb::ListRecordsRequest {
        store: store.0.to_vec(),
        shards: shards.iter().map(|shard| shard.0.into()).collect(),
    };
    let mut client = ShardServiceClient::new(channel);
    let answer = timeout(ANSWER_TIMEOUT, client.list_records(request)).await;
    let answer = answer.map_err(|_| Status::deadline_exceeded("it does not answer"))??;
    let pb::ListRecordsResponse {
        shards: told,
        records,
    } = answer.into_inner();
    if told.len() != records.len() {
        return Err(Status::internal("the columns of records differ"));
    }
    let records = told.iter().zip(&records).map(|(shard, record)| {
        let shard = u8::try_from(*shard).ok().map(ShardId);
        let shard = shard.filter(|shard| shards.contains(shard));
        let record = decode_record(record).map(Arc::new);
        shard.zip(record)
    });
    let records: Option<ShardRecords> = records.collect();
    records.ok_or_else(|| Status::internal("these are no records"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::health::Sign;
    use super::*;

    const SHARDS: [ShardId; 2] = [ShardId(7), ShardId(8)];

    fn epoch(number: u64) -> Epoch {
        Epoch {
            generation: 0,
            number,
        }
    }

    /// PE11.
    #[test]
    fn the_store_with_the_latest_record_is_asked_for_it_after_a_while() {
        let [one, other] = [StoreId([1; 16]), StoreId([2; 16])];
        let now = Instant::now();
        let mut others = Others::default();
        others.look(now, &BTreeSet::from([one, other]));
        let mut report = |now, store: StoreId, number| {
            let sign = Sign {
                reports: Some(SHARDS.map(|shard| (shard, epoch(number))).into()),
                ..Sign::default()
            };
            others.by_store.get_mut(&store).unwrap().note(now, sign);
            others.clone()
        };
        let own = vec![(SHARDS[0], epoch(3)), (SHARDS[1], epoch(5))];
        let mut lag = Lag::default();
        report(now, one, 4);
        let seen = report(now, other, 5);
        assert_eq!(lag.look(now, &own, &seen), BTreeMap::new());
        let later = now + LAG_TIMEOUT;
        let asked = BTreeMap::from([(other, vec![SHARDS[0]])]);
        assert_eq!(lag.look(later, &own, &seen), asked);
        // It has got another one meanwhile.
        let newer = vec![(SHARDS[0], epoch(4))];
        assert_eq!(lag.look(later, &newer, &seen), BTreeMap::new());
        assert_eq!(lag.look(later, &own, &seen), BTreeMap::new());
        // A store that is silent is not asked.
        let silent = later + LAG_TIMEOUT * 2;
        assert_eq!(lag.look(silent, &own, &seen), BTreeMap::new());
    }
}
