//! Jobs of numbers, which are answered by their doubles.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use tokio::sync::{Notify, Semaphore};

use super::*;

#[derive(Debug)]
struct Number(usize);

impl Job for Number {
    type Answer = usize;

    fn weight(&self) -> usize {
        self.0
    }
}

type Numbers = Coalescer<&'static str, Number>;

/// What the batches were, once they have all been let through.
#[derive(Default)]
struct Record {
    batches: Mutex<Vec<Vec<usize>>>,
    under_way: AtomicUsize,
    most: AtomicUsize,
    begun: Notify,
}

/// Has every number answered, each batch only as `gate` lets it through.
async fn run(
    numbers: &Arc<Numbers>,
    key: &'static str,
    number: usize,
    record: &Arc<Record>,
    gate: &Arc<Semaphore>,
) -> Option<usize> {
    let (record, gate) = (Arc::clone(record), Arc::clone(gate));
    let work = move |jobs: Vec<Number>, replies: Replies<usize>| {
        let (record, gate) = (Arc::clone(&record), Arc::clone(&gate));
        async move {
            let jobs: Vec<usize> = jobs.into_iter().map(|job| job.0).collect();
            record.batches.lock().unwrap().push(jobs.clone());
            let under_way = record.under_way.fetch_add(1, Ordering::SeqCst) + 1;
            record.most.fetch_max(under_way, Ordering::SeqCst);
            record.begun.notify_one();
            gate.acquire().await.unwrap().forget();
            record.under_way.fetch_sub(1, Ordering::SeqCst);
            for (place, number) in jobs.into_iter().enumerate() {
                replies.send(place, 2 * number);
            }
        }
    };
    numbers.run(key, Number(number), work).await
}

#[tokio::test]
async fn a_job_alone_goes_at_once() {
    let numbers = Arc::new(Numbers::default());
    let record = Arc::default();
    let gate = Arc::new(Semaphore::new(1));
    assert_eq!(run(&numbers, "a", 7, &record, &gate).await, Some(14));
    assert_eq!(*record.batches.lock().unwrap(), [[7]]);
    assert!(numbers.lock().is_empty(), "nothing is kept");
}

/// CL1, CL2.
#[tokio::test]
async fn jobs_that_arrive_while_the_workers_are_busy_are_one_batch() {
    let numbers = Arc::new(Numbers::default());
    let record = Arc::default();
    let gate = Arc::new(Semaphore::new(0));
    let jobs = (1..=10).map(|number| run(&numbers, "a", number, &record, &gate));
    let open = async {
        record.begun.notified().await;
        gate.add_permits(10);
    };
    let (answers, ()) = tokio::join!(join_all(jobs), open);
    let expected: Vec<Option<usize>> = (1..=10).map(|number| Some(2 * number)).collect();
    assert_eq!(answers, expected);
    let batches = record.batches.lock().unwrap();
    // The workers start when all jobs wait: the first takes them all.
    let done: usize = batches.iter().map(Vec::len).sum();
    assert_eq!(done, 10, "{batches:?}");
    assert!(batches.len() <= WORKERS + 1, "{batches:?}");
    assert!(record.most.load(Ordering::SeqCst) <= WORKERS);
    assert!(numbers.lock().is_empty());
}

#[tokio::test]
async fn other_keys_are_other_batches() {
    let numbers = Arc::new(Numbers::default());
    let record = Arc::default();
    let gate = Arc::new(Semaphore::new(2));
    let (a, b) = tokio::join!(
        run(&numbers, "a", 1, &record, &gate),
        run(&numbers, "b", 2, &record, &gate)
    );
    assert_eq!((a, b), (Some(2), Some(4)));
    let mut batches = record.batches.lock().unwrap().clone();
    batches.sort();
    assert_eq!(batches, [[1], [2]]);
}

/// CL3.
#[tokio::test]
async fn batches_are_no_heavier_than_allowed() {
    let numbers = Arc::new(Numbers::default());
    let record = Arc::default();
    let gate = Arc::new(Semaphore::new(100));
    let weights = [HEAVIEST / 2, HEAVIEST / 2, 1, HEAVIEST + 1, 5, HEAVIEST];
    let jobs = weights.map(|number| run(&numbers, "a", number, &record, &gate));
    let answers = join_all(jobs).await;
    assert_eq!(answers, weights.map(|number| Some(2 * number)));
    for batch in &*record.batches.lock().unwrap() {
        assert!(
            batch.iter().sum::<usize>() <= HEAVIEST || batch.len() == 1,
            "{batch:?}"
        );
    }
}

#[tokio::test]
async fn jobs_that_nobody_waits_for_are_not_begun() {
    let numbers = Arc::new(Numbers::default());
    let record = Arc::default();
    let gate = Arc::new(Semaphore::new(0));
    let held: Vec<_> = (0..WORKERS)
        .map(|number| {
            let (numbers, record, gate) =
                (Arc::clone(&numbers), Arc::clone(&record), Arc::clone(&gate));
            tokio::spawn(async move { run(&numbers, "a", number, &record, &gate).await })
        })
        .collect();
    record.begun.notified().await;
    let given_up = run(&numbers, "a", 1000, &record, &gate);
    let mut given_up = Box::pin(given_up);
    assert!(futures_util::poll!(&mut given_up).is_pending());
    drop(given_up);
    gate.add_permits(10);
    for task in held {
        task.await.unwrap();
    }
    assert_eq!(run(&numbers, "a", 3, &record, &gate).await, Some(6));
    let batches = record.batches.lock().unwrap().concat();
    assert!(!batches.contains(&1000), "{batches:?}");
}

#[tokio::test]
async fn a_panic_costs_its_own_batch_only() {
    let numbers = Arc::new(Numbers::default());
    for _ in 0..=WORKERS {
        let panics = |_, _| async { panic!("a fault") };
        assert_eq!(numbers.run("a", Number(1), panics).await, None);
    }
    let record = Arc::default();
    let gate = Arc::new(Semaphore::new(1));
    assert_eq!(run(&numbers, "a", 7, &record, &gate).await, Some(14));
}

/// CL2: nobody else arrives who could start another worker.
#[tokio::test]
async fn a_batch_that_hangs_holds_up_no_other() {
    let numbers = Arc::new(Numbers::default());
    let hanging = Arc::new(Semaphore::new(0));
    let job = |number| {
        let gate = Arc::clone(&hanging);
        let work = move |jobs: Vec<Number>, replies: Replies<usize>| {
            let gate = Arc::clone(&gate);
            async move {
                if jobs.iter().any(|job| job.0 == 0) {
                    gate.acquire().await.unwrap().forget();
                }
                for (place, job) in jobs.into_iter().enumerate() {
                    replies.send(place, 2 * job.0);
                }
            }
        };
        numbers.run("a", Number(number), work)
    };
    let mut hang = Vec::new();
    for _ in 0..WORKERS {
        let mut hangs = Box::pin(job(0));
        assert!(futures_util::poll!(&mut hangs).is_pending());
        // It is taken before the next one comes.
        while !numbers.lock()["a"].waiting.is_empty() {
            tokio::task::yield_now().await;
        }
        hang.push(hangs);
    }
    assert_eq!(job(3).await, Some(6));
    hanging.add_permits(WORKERS);
    for answer in join_all(hang).await {
        assert_eq!(answer, Some(0));
    }
}

async fn record_begun(record: &Arc<Record>) {
    record.begun.notified().await;
}

/// CL4.
#[tokio::test]
async fn a_batch_that_nobody_waits_for_is_given_up() {
    let numbers = Arc::new(Numbers::default());
    let record = Arc::<Record>::default();
    let gate = Arc::new(Semaphore::new(0));
    {
        let mut given_up = Box::pin(run(&numbers, "a", 1, &record, &gate));
        assert!(futures_util::poll!(&mut given_up).is_pending());
        record_begun(&record).await;
    }
    while !numbers.lock().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_job_is_answered_as_soon_as_it_can_be() {
    let numbers = Arc::new(Numbers::default());
    let first = |_: Vec<Number>, replies: Replies<usize>| async move {
        replies.send(0, 7);
        replies.send(0, 8);
        std::future::pending::<()>().await;
    };
    assert_eq!(numbers.run("a", Number(1), first).await, Some(7));
}

/// CL1: a queue goes with its last worker, and the next one begins anew, before that worker has quite ended.
#[tokio::test]
async fn a_worker_that_has_ended_is_not_taken_for_the_next_one() {
    let numbers = Arc::new(Numbers::default());
    let queue = || {
        let (sender, answer) = oneshot::channel();
        assert!(numbers.add(&"a", (Number(1), sender)));
        let worker = Worker {
            coalescer: Arc::clone(&numbers),
            key: "a",
            has_place: true,
        };
        (worker, answer)
    };
    let (mut first, _answer) = queue();
    assert_eq!(first.take().unwrap().len(), 1);
    assert!(first.take().is_none());
    let (mut second, mut answer) = queue();
    drop(first);
    assert_eq!(answer.try_recv(), Err(oneshot::error::TryRecvError::Empty));
    assert_eq!(second.take().unwrap().len(), 1);
}

/// CL2, CL5: nor do those that hang keep a place once they are slow, however many they are.
#[tokio::test(start_paused = true)]
async fn however_many_batches_hang_the_next_job_is_done() {
    let numbers = Arc::new(Numbers::default());
    let job = |number| {
        let work = |jobs: Vec<Number>, replies: Replies<usize>| async move {
            for (place, job) in jobs.iter().enumerate() {
                if job.0 != 0 {
                    replies.send(place, 2 * job.0);
                }
            }
            if jobs.iter().any(|job| job.0 == 0) {
                std::future::pending::<()>().await;
            }
        };
        numbers.run("a", Number(number), work)
    };
    let mut hang = Vec::new();
    for number in 1..=200 {
        let mut hangs = Box::pin(job(0));
        assert!(futures_util::poll!(&mut hangs).is_pending());
        hang.push(hangs);
        let begin = tokio::time::Instant::now();
        assert_eq!(job(number).await, Some(2 * number));
        assert!(
            begin.elapsed() < 2 * SLOW,
            "{number}: {:?}",
            begin.elapsed()
        );
        let queues = numbers.lock();
        assert!(queues.get("a").is_none_or(|queue| queue.workers <= WORKERS));
    }
    drop(hang);
    while !numbers.lock().is_empty() {
        tokio::task::yield_now().await;
    }
}
