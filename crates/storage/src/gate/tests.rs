//! All interleavings of threads at the gate, by loom, which stands in for the lock and the queue.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::sync::{Arc, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use loom::thread;
use simshard_topology::replication::{ShardEpochs, ShardRecord, ShardRecords, StoreId};

use super::*;

const SHARD: ShardId = ShardId(3);

const STORE: StoreId = StoreId([7; 16]);

impl<T> Lock<T> for RwLock<T> {
    type Shared<'a>
        = RwLockReadGuard<'a, T>
    where
        T: 'a;
    type Exclusive<'a>
        = RwLockWriteGuard<'a, T>
    where
        T: 'a;

    fn shared(&self) -> Self::Shared<'_> {
        self.read().unwrap()
    }

    fn exclusive(&self) -> Self::Exclusive<'_> {
        self.write().unwrap()
    }
}

/// What stands in the queue of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queued {
    /// A change by the record of this epoch.
    Change(u64),
    /// The record of this epoch.
    Record(u64),
}

#[derive(Clone)]
struct Scene {
    replicas: Arc<RwLock<Replicas>>,
    queue: Arc<Mutex<Vec<Queued>>>,
}

fn epochs(number: u64) -> ShardEpochs {
    let generation = 0;
    vec![(SHARD, Epoch { generation, number })]
}

fn record(number: u64) -> ShardRecord {
    let mut record = ShardRecord::first(0, &[STORE], number);
    record.epoch.number = number;
    record
}

impl Scene {
    /// A store that has installed the first record.
    fn new() -> Self {
        let mut replicas = Replicas::new(STORE);
        let first = Operation::Install(vec![(SHARD, std::sync::Arc::new(record(1)))]);
        replicas.restore(&entries_of(&first).unwrap(), 0);
        Self {
            replicas: Arc::new(RwLock::new(replicas)),
            queue: Arc::new(Mutex::new(Vec::new())),
        }
    }

    /// Queues a change by a record. Answers whether it was taken.
    fn change(&self, number: u64) -> bool {
        let (epochs, sent) = (epochs(number), Sent::ByRouter);
        pass_change(&*self.replicas, &epochs, Version(1), sent, |barred| {
            if barred.refused.is_empty() {
                self.queue.lock().unwrap().push(Queued::Change(number));
            }
            barred.refused.is_empty()
        })
    }

    /// Threads that each queue a change, by the first record and by the second.
    fn writers(&self) -> [thread::JoinHandle<bool>; 2] {
        [1, 2].map(|number| {
            let scene = self.clone();
            thread::spawn(move || scene.change(number))
        })
    }

    fn install(&self, number: u64) -> bool {
        let records = ShardRecords::from([(SHARD, std::sync::Arc::new(record(number)))]);
        let find = |replicas: &Replicas| {
            // A record that is not later is refused.
            let news = replicas.news(&records, |_, _| Epoch::NONE);
            let news = news.unwrap_or_default();
            Ok::<_, Infallible>((!news.is_empty()).then_some(news))
        };
        let queue = |_| {
            self.queue.lock().unwrap().push(Queued::Record(number));
            Ok(())
        };
        // The look before would multiply the interleavings, and decides nothing.
        pass_alone(&*self.replicas, find, Operation::Install, queue).unwrap()
    }

    /// The log has written the record.
    fn sync(&self, number: u64) {
        let record = Operation::Install(vec![(SHARD, std::sync::Arc::new(record(number)))]);
        let entries = entries_of(&record).unwrap();
        self.replicas.exclusive().sync(&entries);
    }

    /// The log has refused the records that stand in its queue, and leaves what stands behind them.
    fn refuse(&self) {
        let mut queue = self.queue.lock().unwrap();
        queue.retain(|queued| matches!(queued, Queued::Change(_)));
        drop(queue);
        self.replicas.exclusive().withdraw();
    }

    /// Whether the store confirms that it has no later record than this one.
    fn confirms(&self, number: u64) -> bool {
        let replicas = self.replicas.shared();
        replicas.unconfirmed(&epochs(number)).is_empty()
    }

    /// GA1, RI11.
    fn check_order(&self) {
        let mut installed = 1;
        for queued in &*self.queue.lock().unwrap() {
            match *queued {
                Queued::Record(number) => {
                    assert!(number > installed, "records go back");
                    installed = number;
                }
                Queued::Change(number) => {
                    assert_eq!(number, installed, "a change in a wrong place");
                }
            }
        }
    }
}

/// Tries all interleavings. Answers how many there were.
fn explore(run: impl Fn() + Send + Sync + 'static) -> usize {
    let count = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&count);
    loom::model(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        run();
    });
    let count = count.load(Ordering::Relaxed);
    println!("{count} interleavings");
    count
}

/// Replicas that can be shared only.
struct Shared(parking_lot::RwLock<Replicas>);

impl Lock<Replicas> for Shared {
    type Shared<'a> = parking_lot::RwLockReadGuard<'a, Replicas>;
    type Exclusive<'a> = parking_lot::RwLockWriteGuard<'a, Replicas>;

    fn shared(&self) -> Self::Shared<'_> {
        self.0.read()
    }

    fn exclusive(&self) -> Self::Exclusive<'_> {
        panic!("changes are held up")
    }
}

#[test]
fn looking_for_records_in_vain_holds_up_no_change() {
    let replicas = Shared(parking_lot::RwLock::new(Replicas::new(STORE)));
    let none = |_: &Replicas| Ok::<_, Infallible>(None);
    let passed = pass_entries(&replicas, none, Operation::Install, |_| {
        panic!("none is queued")
    });
    assert!(!passed.unwrap());
}

/// GA1, RI11.
#[test]
fn changes_stand_between_the_record_that_they_go_by_and_the_next_one() {
    let count = explore(|| {
        let scene = Scene::new();
        let writers = scene.writers();
        assert!(scene.install(2));
        assert!(!scene.change(1));
        scene.sync(2);
        assert!(scene.change(2));
        for writer in writers {
            writer.join().unwrap();
        }
        scene.check_order();
    });
    assert!(count > 10, "{count}");
}

/// RP1: the log refuses a record for a shortage, and no change by it stays.
#[test]
fn no_change_goes_by_a_record_that_the_log_refuses() {
    let count = explore(|| {
        let scene = Scene::new();
        let writers = scene.writers();
        assert!(scene.install(2));
        scene.refuse();
        assert!(scene.change(1));
        for writer in writers {
            writer.join().unwrap();
        }
        scene.check_order();
    });
    assert!(count > 10, "{count}");
}

/// Two installers with records of different ages never queue one after a later one.
#[test]
fn records_are_queued_upwards_by_any_two_threads() {
    let count = explore(|| {
        let scene = Scene::new();
        let other = {
            let scene = scene.clone();
            thread::spawn(move || scene.install(3))
        };
        scene.install(2);
        assert!(other.join().unwrap());
        scene.check_order();
    });
    assert!(count > 1, "{count}");
}

/// Once a change by a record is queued, no earlier record is confirmed: an answer by that one may lack the change.
#[test]
fn an_earlier_record_is_not_confirmed_beside_a_change_by_the_next() {
    let count = explore(|| {
        let scene = Scene::new();
        let installer = {
            let scene = scene.clone();
            thread::spawn(move || {
                scene.install(2);
                scene.sync(2);
            })
        };
        let writer = {
            let scene = scene.clone();
            thread::spawn(move || scene.change(2) && scene.confirms(1))
        };
        let was_confirmed = scene.confirms(1);
        let is_confirmed = scene.confirms(1);
        assert!(was_confirmed || !is_confirmed, "confirmations come back");
        assert!(!writer.join().unwrap());
        installer.join().unwrap();
        assert!(!scene.confirms(1));
        scene.check_order();
    });
    assert!(count > 10, "{count}");
}
