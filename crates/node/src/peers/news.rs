//! Records that a node lacks because the metadata does not reach it, while it reaches other nodes. It asks a store that has
//! them. It may know no such store, as only the records that it lacks name one. So a node tells the other stores, too.
//!
//! # Invariants
//! - PE11: a store that reports a later record of a shard for a while is asked for it, and answers with what it has on
//!   disk.
//! - PE14: a store that reports an earlier record of a shard than the metadata has is told the later one after a while.
//!   Likewise a store that reports none, if the record concerns it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use simshard_cluster::ClusterLayout;
use simshard_proto::Violations;
use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::shard_service_client::ShardServiceClient;
use simshard_storage::{decode_record, encode_record};
use simshard_topology::ShardId;
use simshard_topology::replication::{Epoch, ShardEpochs, ShardRecord, ShardRecords, StoreId};
use simshard_transport::Dialer;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tonic::transport::Channel;
use tonic::{Response, Status};
use tracing::debug;

use super::Peers;
use super::health::{INTERVAL, Others};
use super::pings::{ANSWER_TIMEOUT, quick_channel_to};
use crate::engine::Engine;

/// The metadata has this time to tell of a record that another store has.
const LAG_TIMEOUT: Duration = Duration::from_millis(500);

/// Asks for records and tells of them, as long as it is polled.
pub(super) async fn run(
    peers: &Arc<Peers>,
    engine: &Engine,
    followed: watch::Receiver<Arc<ClusterLayout>>,
) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut lag, mut behind) = (Lag::default(), Behind::default());
    loop {
        ticks.tick().await;
        let (_, own) = engine.reports();
        let layout = Arc::clone(&followed.borrow());
        let others = peers.others.lock().clone();
        let now = Instant::now();
        let asked = lag.look(now, &own, &others).into_iter();
        let asked = asked.map(async |(store, shards)| {
            let told = ask((&peers.dialer, &layout), store, &shards).await?;
            peers.hear(told);
            Ok(())
        });
        let told = layout
            .records()
            .map(|records| behind.look(now, records, &others));
        let told = told.into_iter().flatten();
        let told = told
            .map(async |(store, records)| tell((&peers.dialer, &layout), store, &records).await);
        let (asked, told) = tokio::join!(join_all(asked), join_all(told));
        let outcomes = asked.into_iter().chain(told);
        for error in outcomes.filter_map(Result::<(), Status>::err) {
            debug!(%error, "no newer records of shards are told");
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

/// Since when other stores have earlier records than the metadata.
#[derive(Debug, Default)]
struct Behind {
    /// For each store and shard: the epoch that it has, and when that was first seen, or last told about.
    since: BTreeMap<(StoreId, ShardId), (Epoch, Instant)>,
}

impl Behind {
    /// The live stores to tell now, and which of these records. Each is told again as long as it is behind.
    fn look(
        &mut self,
        now: Instant,
        records: &ShardRecords,
        others: &Others,
    ) -> BTreeMap<StoreId, ShardRecords> {
        let mut told: BTreeMap<StoreId, ShardRecords> = BTreeMap::new();
        let mut since = BTreeMap::new();
        for store in others.live(now) {
            for (&shard, record) in records {
                let epoch = others.by_store[&store].report(shard);
                let is_news = epoch != Epoch::NONE || concerns(record, store);
                if epoch >= record.epoch || !is_news {
                    continue;
                }
                let of_store = self.since.get(&(store, shard));
                let known = of_store.filter(|(of, _)| *of == epoch);
                let mut first = known.map_or(now, |(_, first)| *first);
                if now.saturating_duration_since(first) >= LAG_TIMEOUT {
                    told.entry(store)
                        .or_default()
                        .insert(shard, Arc::clone(record));
                    first = now;
                }
                since.insert((store, shard), (epoch, first));
            }
        }
        self.since = since;
        told
    }
}

/// Whether a store that has no record of a shard installs this one.
fn concerns(record: &ShardRecord, store: StoreId) -> bool {
    record.names(store) || record.previous.contains(&store)
}

/// Asks a store for its records of some shards.
async fn ask(
    cluster: (&Dialer, &ClusterLayout),
    store: StoreId,
    shards: &[ShardId],
) -> Result<ShardRecords, Status> {
    let mut client = client_of(cluster, store)?;
    let request = pb::ListRecordsRequest {
        store: store.0.to_vec(),
        shards: shards.iter().map(|shard| shard.0.into()).collect(),
    };
    let answer = in_time(client.list_records(request)).await?;
    let mut records = records_of(&answer.shards, &answer.records)?;
    records.retain(|shard, _| shards.contains(shard));
    Ok(records)
}

/// Tells a store of records.
async fn tell(
    cluster: (&Dialer, &ClusterLayout),
    store: StoreId,
    records: &ShardRecords,
) -> Result<(), Status> {
    let mut client = client_of(cluster, store)?;
    let (shards, records) = columns_of(records);
    let request = pb::TellRecordsRequest {
        store: store.0.to_vec(),
        shards,
        records,
    };
    in_time(client.tell_records(request)).await.map(drop)
}

fn client_of(
    (dialer, layout): (&Dialer, &ClusterLayout),
    store: StoreId,
) -> Result<ShardServiceClient<Channel>, Status> {
    let node = layout.node_of(store);
    let channel = node.and_then(|node| quick_channel_to(dialer, &node.address));
    let channel = channel.ok_or_else(|| Status::invalid_argument("no address"))?;
    Ok(ShardServiceClient::new(channel))
}

async fn in_time<T>(
    answer: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, Status> {
    let answer = timeout(ANSWER_TIMEOUT, answer).await;
    let answer = answer.map_err(|_| Status::deadline_exceeded("it does not answer"))?;
    Ok(answer?.into_inner())
}

/// The columns of a message that has these records.
pub(crate) fn columns_of(records: &ShardRecords) -> (Vec<u32>, Vec<Vec<u8>>) {
    let records = records.iter();
    records
        .map(|(shard, record)| (u32::from(shard.0), encode_record(record)))
        .unzip()
}

/// The records of the columns of a message.
pub(crate) fn records_of(shards: &[u32], records: &[Vec<u8>]) -> Result<ShardRecords, Status> {
    if shards.len() != records.len() {
        return Err(Violations::of("records", "is not as long as shards"));
    }
    let records = shards.iter().zip(records).map(|(shard, record)| {
        let shard = u8::try_from(*shard).ok().map(ShardId);
        shard.zip(decode_record(record).map(Arc::new))
    });
    let records: Option<ShardRecords> = records.collect();
    records.ok_or_else(|| Violations::of("records", "has other bytes than records of shards"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use simshard_topology::replication::{Learner, Step};

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

    fn others(now: Instant, reports: &[(StoreId, &[(ShardId, Epoch)])]) -> Others {
        let mut others = Others::default();
        others.look(now, &reports.iter().map(|(store, _)| *store).collect());
        for (store, reports) in reports {
            let sign = Sign {
                reports: Some(reports.to_vec()),
                ..Sign::default()
            };
            others.by_store.get_mut(store).unwrap().note(now, sign);
        }
        others
    }

    /// PE14.
    #[test]
    fn a_store_with_an_earlier_record_than_the_metadata_is_told_after_a_while_and_again() {
        let [own, alone] = [StoreId([1; 16]), StoreId([2; 16])];
        let first = ShardRecord::first(0, &[alone], 7).with_want(2);
        let come = first.after(Step::AddLearner(own), 8, |_| first.epoch, |_| false);
        // The other shard is as the store has it.
        let records = ShardRecords::from([
            (SHARDS[0], Arc::new(come.unwrap())),
            (SHARDS[1], Arc::new(first)),
        ]);
        let now = Instant::now();
        let reports = SHARDS.map(|shard| (shard, epoch(1)));
        let others = others(now + INTERVAL, &[(alone, &reports)]);
        let mut behind = Behind::default();
        let mut told = |after| behind.look(now + after, &records, &others);
        assert_eq!(told(Duration::ZERO), BTreeMap::new());
        let expected = ShardRecords::from([(SHARDS[0], Arc::clone(&records[&SHARDS[0]]))]);
        let expected = BTreeMap::from([(alone, expected)]);
        assert_eq!(told(LAG_TIMEOUT), expected);
        assert_eq!(told(LAG_TIMEOUT + INTERVAL), BTreeMap::new());
        assert_eq!(told(LAG_TIMEOUT * 2), expected);
        // It is silent by then.
        assert_eq!(told(LAG_TIMEOUT * 3), BTreeMap::new());
    }

    /// PE14: a newcomer that was cut off right after it wrote the record cannot know of it.
    #[test]
    fn a_store_that_has_no_record_is_told_those_that_concern_it() {
        let stores = [1, 2, 3, 4].map(|number| StoreId([number; 16]));
        let [learner, left, other, in_sync] = stores;
        let mut record = ShardRecord::first(0, &[in_sync], 7);
        record.previous = vec![in_sync, left];
        record.learners.push(Learner {
            store: learner,
            added: record.epoch,
        });
        let records = ShardRecords::from([(SHARDS[0], Arc::new(record))]);
        let now = Instant::now();
        let others = others(now, &stores.map(|store| (store, &[][..])));
        let mut behind = Behind::default();
        behind.look(now, &records, &others);
        let told = behind.look(now + LAG_TIMEOUT, &records, &others);
        assert!(!told.contains_key(&other));
        let told: Vec<StoreId> = told.into_keys().collect();
        assert_eq!(told, [learner, left, in_sync]);
    }

    /// What waits for a report must not get lost.
    #[test]
    fn what_several_stores_tell_is_all_known() {
        let stores = [StoreId([1; 16]), StoreId([2; 16])];
        let peers = Peers::new(stores[0], 1, crate::Takeover::default(), Dialer::PLAIN);
        let record = |number| {
            let mut record = ShardRecord::first(0, &stores, number);
            record.epoch = epoch(number);
            Arc::new(record)
        };
        for (shard, number) in [(SHARDS[0], 4), (SHARDS[1], 5), (SHARDS[0], 3)] {
            let (shards, records) = columns_of(&ShardRecords::from([(shard, record(number))]));
            peers.hear(records_of(&shards, &records).unwrap());
        }
        let expected = ShardRecords::from([(SHARDS[0], record(4)), (SHARDS[1], record(5))]);
        assert_eq!(*peers.told().borrow(), expected);
    }

    #[test]
    fn columns_that_are_no_records_are_refused() {
        let shards = [1, 2];
        for records in [vec![], vec![vec![], vec![]]] {
            assert!(records_of(&shards, &records).is_err());
        }
        let record = encode_record(&ShardRecord::first(0, &[StoreId([1; 16])], 7));
        assert!(records_of(&[256], std::slice::from_ref(&record)).is_err());
        assert!(records_of(&[255], &[record]).is_ok());
    }
}
