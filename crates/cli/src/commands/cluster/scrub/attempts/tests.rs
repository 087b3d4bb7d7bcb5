//! Attempts in time that is not waited for, by the metadata of two nodes.

use std::cell::Cell;
use std::future::{pending, ready};
use std::sync::atomic::{AtomicU32, Ordering};

use simshard_cluster::force;
use simshard_topology::ShardId;
use tokio::time::Instant;

use super::super::super::access::ClusterAccess;
use super::super::super::two_nodes::{STORES, two_nodes};
use super::*;

const SHARD: ShardId = ShardId(7);

/// The second node leaves a shard.
async fn leave(access: &ClusterAccess, shard: ShardId) {
    let forced = force(access.keys(), STORES[0], |of, _| of == shard, |_| true).await;
    assert_eq!(forced.unwrap().taken.len(), 1);
}

fn only(shard: ShardId) -> ShardSet {
    ShardSet::from_iter([shard])
}

/// What may succeed later.
fn later() -> ScrubError {
    ScrubError::left()
}

/// What cannot.
fn never() -> ScrubError {
    ScrubError::unregistered()
}

/// Does it in a time that is long enough for all of it.
async fn test(attempts: &Attempts<'_>, work: impl Future<Output = ()>) {
    let done = timeout(Duration::from_secs(600), attempts.during(work)).await;
    done.expect("an end");
}

#[tokio::test(start_paused = true)]
async fn work_is_cut_off_once_a_store_of_its_shard_leaves() {
    let access = two_nodes().await;
    let attempts = Attempts::begin(&access).await.unwrap();
    test(&attempts, async {
        let holders = attempts.places().holders(only(SHARD));
        assert_eq!(holders, STORES.map(|store| (SHARD, store)));
        let lasts = async {
            sleep(5 * PAUSE).await;
            Ok(())
        };
        leave(&access, ShardId(8)).await;
        attempts.while_held(&holders, lasts).await.unwrap();
        leave(&access, SHARD).await;
        let hangs = attempts.while_held(&holders, pending::<Result<(), _>>());
        hangs.await.unwrap_err();
        // What begins now is not for the store that has left.
        let lasts = async {
            sleep(5 * PAUSE).await;
            Ok(())
        };
        let holders = attempts.places().holders(only(SHARD));
        attempts.while_held(&holders, lasts).await.unwrap();
    })
    .await;
}

/// What the node said as it ended counts, though its store has left.
#[tokio::test(start_paused = true)]
async fn a_node_that_lives_ends_by_itself() {
    let access = two_nodes().await;
    let attempts = Attempts::begin(&access).await.unwrap();
    test(&attempts, async {
        let holders = attempts.places().holders(only(SHARD));
        leave(&access, SHARD).await;
        let says_so = async {
            sleep(3 * PAUSE / 2).await;
            Err::<(), _>(never())
        };
        let ended = attempts.while_held(&holders, says_so).await.unwrap_err();
        assert_eq!(ended.to_string(), never().to_string());
    })
    .await;
}

/// Makes attempts that do some work and fail, and answers how many.
async fn failed(attempts: &Attempts<'_>, shard: ShardId, work: impl AsyncFn()) -> u32 {
    let made = Cell::new(0);
    let done = attempts.repeat(shard, only(shard), async |_, _| {
        made.set(made.get() + 1);
        work().await;
        Err::<(), _>(later())
    });
    let problem = done.await.unwrap_err();
    assert!(problem.contains(&later().to_string()), "{problem}");
    made.get()
}

/// Attempts where all nodes answer, or none does.
async fn begin(access: &ClusterAccess, answers: bool) -> Attempts<'_> {
    let mut attempts = Attempts::begin(access).await.unwrap();
    attempts.answers = Box::new(move |_| ready(answers).boxed());
    attempts
}

/// Other shards with the same first store.
fn others(attempts: &Attempts<'_>) -> Vec<ShardId> {
    let places = attempts.places();
    let of_node = |shard| places.reader(shard).map(|store| store.id);
    let others = ShardId::all().filter(|other| of_node(*other) == of_node(SHARD));
    let others: Vec<ShardId> = others.filter(|other| *other != SHARD).collect();
    assert!(others.len() > 100);
    others
}

#[tokio::test(start_paused = true)]
async fn attempts_end_once_no_reading_changes_anything_however_long_each_takes() {
    let access = two_nodes().await;
    for takes in [Duration::ZERO, 5 * PAUSE] {
        let attempts = begin(&access, true).await;
        test(&attempts, async {
            let made = failed(&attempts, SHARD, async || sleep(takes).await).await;
            assert_eq!(made, PATIENCE + 1);
            for other in others(&attempts) {
                assert_eq!(failed(&attempts, other, async || ()).await, 1);
            }
        })
        .await;
    }
}

/// Each attempt may take as long as a timeout.
#[tokio::test(start_paused = true)]
async fn stores_that_do_not_answer_are_waited_for_and_named() {
    let access = two_nodes().await;
    let attempts = begin(&access, false).await;
    test(&attempts, async {
        let (made, start) = (Cell::new(0), Instant::now());
        for shard in [&[SHARD], &others(&attempts)[..]].concat() {
            let attempt = async |_: &Places, _: &RegisteredStore| {
                made.set(made.get() + 1);
                sleep(15 * PAUSE).await;
                Err::<(), _>(later())
            };
            let problem = attempts.repeat(shard, only(shard), attempt).await;
            let problem = problem.unwrap_err();
            let both = ["n1 at http://", "n2 at http://", "do not answer"];
            assert!(both.iter().all(|said| problem.contains(said)), "{problem}");
        }
        assert_eq!(made.get(), 1);
        let took = start.elapsed();
        assert!(took < (15 + PATIENCE + 2) * PAUSE, "{took:?}");
    })
    .await;
}

/// What its attempt waits for may be back.
#[tokio::test(start_paused = true)]
async fn stores_that_answer_again_are_asked_again() {
    let access = two_nodes().await;
    let mut attempts = begin(&access, false).await;
    let asked = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&asked);
    attempts.answers = Box::new(move |_| {
        let number = counted.fetch_add(1, Ordering::Relaxed);
        ready(number >= 6).boxed()
    });
    test(&attempts, async {
        let made = Cell::new(0);
        let done = attempts.repeat(SHARD, only(SHARD), async |_, _| {
            made.set(made.get() + 1);
            if made.get() == 1 {
                Err(later())
            } else {
                Ok(())
            }
        });
        done.await.unwrap();
        assert_eq!(made.get(), 2);
        assert_eq!(
            asked.load(Ordering::Relaxed),
            8,
            "both stores, at four readings"
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_does_its_part_for_another_shard_is_not_given_up() {
    let access = two_nodes().await;
    let attempts = begin(&access, true).await;
    test(&attempts, async {
        let made = Cell::new(0);
        let is_done_between = async || {
            made.set(made.get() + 1);
            if made.get() == PATIENCE {
                let done = attempts.repeat(SHARD, only(SHARD), async |_, _| Ok(()));
                done.await.unwrap();
            }
        };
        failed(&attempts, SHARD, is_done_between).await;
        assert!(failed(&attempts, SHARD, async || ()).await > 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_shard_whose_stores_change_is_tried_again_without_a_pause() {
    let access = two_nodes().await;
    let attempts = begin(&access, true).await;
    test(&attempts, async {
        let made = Cell::new(0);
        let done = attempts.repeat(SHARD, only(SHARD), async |places, _| {
            made.set(made.get() + 1);
            match places.holders(only(SHARD)).len() {
                1 => return Ok(()),
                _ if made.get() == PATIENCE => leave(&access, SHARD).await,
                _ => {}
            }
            Err(later())
        });
        done.await.unwrap();
        assert_eq!(made.get(), PATIENCE + 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_succeed_is_tried_once() {
    let access = two_nodes().await;
    let attempts = Attempts::begin(&access).await.unwrap();
    test(&attempts, async {
        let made = Cell::new(0);
        let done = attempts.repeat(SHARD, only(SHARD), async |_, _| {
            made.set(made.get() + 1);
            Err::<(), _>(never())
        });
        done.await.unwrap_err();
        assert_eq!(made.get(), 1);
    })
    .await;
}
