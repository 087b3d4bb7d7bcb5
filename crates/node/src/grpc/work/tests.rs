//! Lanes over channels, to an engine whose one thread the test can hold up.

use std::collections::VecDeque;
use std::time::SystemTime;

use simshard_cluster::random_corpus_uid;
use simshard_proto::{MAX_MESSAGE_BYTES, Reason, status_from_bytes};
use simshard_runtime::observed::Observed;
use simshard_storage::Store;
use simshard_topology::{MapDigest, NodeId, ShardId, ShardSet};
use simshard_transport::Budget;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;

use super::*;
use crate::engine::{Class, Threads};
use crate::target::{PlannedBy, Target};
use crate::work_watch::watch;

/// A longer wait means that the event will not come.
const LONG: Duration = Duration::from_secs(20);

/// The map of the node.
const MAP: MapDigest = MapDigest(0x1234);

fn watched() -> Arc<WorkWatch> {
    let node = NodeId::new("n1").unwrap();
    Arc::new(watch(&Observed::default(), &node))
}

/// The router's end of a lane, and what is behind the other one.
struct Scene {
    engine: Arc<Engine>,
    threads: Arc<Threads>,
    target: pb::Target,
    requests: mpsc::Sender<Result<pb::WorkRequest, Status>>,
    answers: mpsc::Receiver<Result<WorkMessage, Status>>,
    /// Outcomes of the last message that were not looked at yet.
    outcomes: VecDeque<pb::WorkOutcome>,
    stopping: CancellationToken,
    lane: JoinHandle<()>,
}

impl Scene {
    /// A node with the shards 00 to 7f, and room for more requests than a lane has in flight.
    async fn new(budget: &Budget) -> Self {
        let threads = Arc::new(Threads::start(1).unwrap());
        let owned = (0..=0x7f).map(ShardId).collect::<ShardSet>();
        let store = Store::in_memory(owned);
        let engine = Engine::start(store, MAP, None, Arc::clone(&threads), MAX_MESSAGE_BYTES);
        let engine = Arc::new(engine.unwrap());
        let target = Target {
            corpus: random_corpus_uid(),
            blocks: 5,
            distance: 3,
            planned_by: PlannedBy::Map(MAP),
        };
        engine.create_corpus(target.clone()).await.unwrap();
        let (requests, receiver) = mpsc::channel(2 * IN_FLIGHT);
        let (sender, answers) = mpsc::channel(1);
        let stopping = CancellationToken::new();
        let lane = WorkStream {
            engine: Arc::clone(&engine),
            answers: sender,
            admitted: Admitted::new(budget, None),
            stopping: stopping.clone(),
            watch: watched(),
        };
        Self {
            engine,
            threads,
            target: pb::Target {
                corpus_uid: target.corpus.to_string(),
                blocks: 5,
                distance: 3,
                map_digest: MAP.0,
                ..pb::Target::default()
            },
            requests,
            answers,
            outcomes: VecDeque::new(),
            stopping,
            lane: tokio::spawn(lane.run(ReceiverStream::new(receiver))),
        }
    }

    /// Has the engine do no small work until what is returned is dropped.
    fn hold_up(&self) -> Vec<std::sync::mpsc::Sender<()>> {
        self.threads.hold_up(Class::Small)
    }

    /// A search of shard 00, for so much that the threads of the engine do it.
    fn find(&self) -> pb::FindAll {
        pb::FindAll {
            target: Some(self.target.clone()),
            shards: vec![0],
            active_lead_groups: 1,
            max_distance: 3,
            fingerprints: vec![7; 64],
            ..Default::default()
        }
    }

    /// A search for so much that it is large from the start.
    fn find_many(&self) -> pb::FindAll {
        pb::FindAll {
            fingerprints: vec![7; 1 << 12],
            ..self.find()
        }
    }

    async fn ask(&self, sequence: u64, work: Work) {
        self.ask_within(3 * LONG, sequence, work).await;
    }

    async fn ask_within(&self, time: Duration, sequence: u64, work: Work) {
        let item = pb::WorkItem {
            sequence,
            timeout_micros: u64::try_from(time.as_micros()).unwrap(),
            work: Some(work),
        };
        self.send([item]).await;
    }

    /// Sends items as one message.
    async fn send(&self, items: impl IntoIterator<Item = pb::WorkItem>) {
        let items = items.into_iter().collect();
        self.requests
            .send(Ok(pb::WorkRequest { items }))
            .await
            .unwrap();
    }

    /// Waits until at most `left` requests are unread.
    async fn until_read(&self, left: usize) {
        while self.requests.max_capacity() - self.requests.capacity() > left {
            tokio::task::yield_now().await;
        }
    }

    /// The next outcome; `None` once the lane has ended.
    async fn outcome(&mut self) -> Option<pb::WorkOutcome> {
        while self.outcomes.is_empty() {
            let message = timeout(LONG, self.answers.recv()).await;
            self.outcomes.extend(
                message
                    .expect("an answer")?
                    .unwrap()
                    .into_response()
                    .outcomes,
            );
        }
        self.outcomes.pop_front()
    }

    /// The sequence of the next answer, and why it is a refusal if it is one; `None` once the lane has ended.
    async fn answer(&mut self) -> Option<(u64, Option<Reason>)> {
        let answer = self.outcome().await?;
        let reason = match answer.outcome.unwrap() {
            Outcome::Changed(_) | Outcome::Matches(_) | Outcome::Confirmed(_) => None,
            Outcome::Status(status) => Some(Reason::of(&status_from_bytes(status)).unwrap()),
        };
        Some((answer.sequence, reason))
    }
}

fn plenty() -> Budget {
    Budget::new(1 << 20)
}

/// WK1.
#[tokio::test]
async fn each_request_is_answered_and_a_refusal_ends_nothing() {
    let mut scene = Scene::new(&plenty()).await;
    let foreign = pb::FindAll {
        shards: vec![0x80],
        ..scene.find()
    };
    let about = |change: &dyn Fn(&mut pb::Target)| {
        let mut target = scene.target.clone();
        change(&mut target);
        pb::FindAll {
            target: Some(target),
            ..scene.find()
        }
    };
    let unknown = about(&|target| target.corpus_uid = random_corpus_uid().to_string());
    let other_map = about(&|target| target.map_digest += 1);
    let other_blocks = about(&|target| target.blocks = 6);
    let other_distance = about(&|target| target.distance = 2);
    let good = scene.find();
    for (sequence, find, reason) in [
        (1, foreign, Some(Reason::NotOwner)),
        (9, unknown, Some(Reason::CorpusNotLoaded)),
        (5, other_map, Some(Reason::NotOwner)),
        (6, other_blocks, Some(Reason::CorpusDiffers)),
        (7, other_distance, Some(Reason::CorpusDiffers)),
        (4, pb::FindAll::default(), Some(Reason::InvalidRequest)),
        (2, good, None),
    ] {
        scene.ask(sequence, Work::from(find)).await;
        assert_eq!(scene.answer().await, Some((sequence, reason)));
    }
    scene.send([pb::WorkItem::default()]).await;
    let refusal = Some((0, Some(Reason::InvalidRequest)));
    assert_eq!(scene.answer().await, refusal);
}

#[tokio::test]
async fn work_that_was_not_begun_by_its_deadline_was_too_late() {
    let mut scene = Scene::new(&plenty()).await;
    scene
        .ask_within(Duration::ZERO, 1, Work::from(scene.find()))
        .await;
    let late = Some((1, Some(Reason::DeadlineTooShort)));
    assert_eq!(scene.answer().await, late);
}

/// WK1, WK2.
#[tokio::test]
async fn a_lane_limits_the_requests_in_flight_and_answers_all_in_the_end() {
    let mut scene = Scene::new(&plenty()).await;
    let held = scene.hold_up();
    let asked = IN_FLIGHT + 10;
    for sequence in 0..asked {
        scene.ask(sequence as u64, Work::from(scene.find())).await;
    }
    scene.until_read(10).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        scene.requests.max_capacity() - scene.requests.capacity(),
        10
    );
    drop(held);
    let mut answered = Vec::new();
    for _ in 0..asked {
        let (sequence, reason) = scene.answer().await.unwrap();
        assert_eq!(reason, None);
        answered.push(sequence);
    }
    answered.sort_unstable();
    assert!(answered.into_iter().eq(0..asked as u64), "each once");
}

/// WK2.
#[tokio::test]
async fn a_message_with_too_many_items_ends_the_stream() {
    let mut scene = Scene::new(&plenty()).await;
    let items = vec![pb::WorkItem::default(); IN_FLIGHT + 1];
    let message = pb::WorkRequest { items };
    scene.requests.send(Ok(message)).await.unwrap();
    let refusal = scene.answers.recv().await.unwrap().err().unwrap();
    assert_eq!(Reason::of(&refusal), Some(Reason::InvalidRequest));
    assert!(scene.answers.recv().await.is_none());
}

/// WK2.
#[tokio::test]
async fn nothing_is_read_from_a_router_that_does_not_read() {
    let mut scene = Scene::new(&Budget::new(64 << 20)).await;
    let asked = IN_FLIGHT + 100;
    for sequence in 0..asked {
        let refused = Work::from(pb::FindAll::default());
        scene.ask(sequence as u64, refused).await;
    }
    scene.until_read(100).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let waiting = scene.requests.max_capacity() - scene.requests.capacity();
    // Two messages of answers are on their way.
    assert!((90..=100).contains(&waiting), "{waiting}");
    for _ in 0..asked {
        scene.answer().await.unwrap();
    }
}

/// WK1, WK3: items of one message have nothing else in common.
#[tokio::test]
async fn the_items_of_a_message_are_answered_as_each_is_done() {
    let mut scene = Scene::new(&plenty()).await;
    let held = scene.hold_up();
    let item = |sequence, work| pb::WorkItem {
        sequence,
        timeout_micros: u64::try_from(LONG.as_micros()).unwrap(),
        work: Some(work),
    };
    let refused = Work::from(pb::FindAll::default());
    scene
        .send([
            item(1, Work::from(scene.find())),
            item(2, Work::from(scene.find())),
            item(3, refused),
            item(0, Work::Cancel(2)),
        ])
        .await;
    let refusal = Some((3, Some(Reason::InvalidRequest)));
    assert_eq!(scene.answer().await, refusal);
    drop(held);
    assert_eq!(scene.answer().await, Some((1, None)));
    drop(scene.requests);
    timeout(LONG, scene.lane).await.unwrap().unwrap();
    assert!(scene.answers.recv().await.is_none(), "nothing else");
}

/// WK3.
#[tokio::test]
async fn cancelled_work_is_not_answered() {
    let mut scene = Scene::new(&plenty()).await;
    let held = scene.hold_up();
    for sequence in [1, 2, 3] {
        scene.ask(sequence, Work::from(scene.find())).await;
    }
    // That of 9 came too late, or was never asked.
    for sequence in [1, 9, 3] {
        scene.ask(0, Work::Cancel(sequence)).await;
    }
    scene.until_read(0).await;
    drop(held);
    assert_eq!(scene.answer().await, Some((2, None)));
    drop(scene.requests);
    timeout(LONG, scene.lane).await.unwrap().unwrap();
    assert!(scene.answers.recv().await.is_none(), "nothing else");
}

/// WK3.
#[tokio::test]
async fn all_work_is_given_up_once_the_router_goes() {
    let scene = Scene::new(&plenty()).await;
    let _held = scene.hold_up();
    scene.ask(1, Work::from(scene.find())).await;
    scene.until_read(0).await;
    drop(scene.answers);
    timeout(LONG, scene.lane).await.unwrap().unwrap();
}

/// WK4.
#[tokio::test]
async fn a_node_that_stops_answers_what_is_in_flight_and_refuses_the_rest() {
    let mut scene = Scene::new(&plenty()).await;
    let held = scene.hold_up();
    scene.ask(1, Work::from(scene.find())).await;
    scene.until_read(0).await;
    scene.stopping.cancel();
    scene.ask(2, Work::from(scene.find())).await;
    assert_eq!(scene.answer().await, Some((2, Some(Reason::Stopping))));
    drop(held);
    assert_eq!(scene.answer().await, Some((1, None)));
    assert_eq!(scene.answer().await, None, "though the router may yet ask");
    timeout(LONG, scene.lane).await.unwrap().unwrap();
}

/// WK5.
#[tokio::test]
async fn where_there_is_no_room_that_is_the_answer() {
    let budget = Budget::new(1 << 10);
    let mut scene = Scene::new(&budget).await;
    let overloaded = |sequence| Some((sequence, Some(Reason::Overloaded)));

    let request_does_not_fit = budget.take(1 + (1 << 10));
    let held = scene.hold_up();
    scene.ask(1, Work::from(scene.find())).await;
    assert_eq!(scene.answer().await, overloaded(1), "nothing is done");
    drop(held);
    drop(request_does_not_fit);
    let answer_does_not_fit = budget.take(1 << 10);
    scene.ask(2, Work::from(scene.find())).await;
    assert_eq!(scene.answer().await, overloaded(2));
    drop(answer_does_not_fit);

    // One waits to be taken, one for the place of that.
    scene.ask(3, Work::from(scene.find())).await;
    while scene.answers.is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(budget.try_take(1 << 10).is_none(), "what waits counts");
    scene.ask(4, Work::from(scene.find())).await;
    let counted = async {
        while budget.try_take(1 << 10).is_some() {
            tokio::task::yield_now().await;
        }
    };
    timeout(LONG, counted).await.unwrap();
    for _ in 0..2 {
        assert_eq!(scene.answer().await.unwrap().1, None);
    }
    while budget.try_take(1 << 10).is_none() {
        tokio::task::yield_now().await;
    }
}

/// N4.
#[tokio::test]
async fn small_work_and_changes_do_not_wait_for_large_work() {
    let mut scene = Scene::new(&plenty()).await;
    let held = scene.threads.hold_up(Class::Large);
    scene.ask(1, Work::from(scene.find_many())).await;
    scene.ask(2, Work::from(scene.find())).await;
    assert_eq!(scene.answer().await, Some((2, None)));
    let change = pb::Change {
        target: Some(scene.target.clone()),
        kind: pb::ChangeKind::Insert.into(),
        shards: vec![0],
        fingerprints: vec![7],
        version: 1,
        ..Default::default()
    };
    scene.ask(3, Work::from(change)).await;
    assert_eq!(scene.answer().await, Some((3, None)));
    drop(held);
    assert_eq!(scene.answer().await, Some((1, None)));
}

/// An answer to be sent.
fn done(sequence: u64, is_large: bool) -> WaitingAnswer {
    WaitingAnswer {
        answer: response(sequence, Ok(Outcome::Matches(Default::default()))),
        is_large,
        _memory: Memory {
            own: plenty().take(0),
            _message: Arc::new(plenty().take(0)),
        },
    }
}

/// WK2.
#[test]
fn a_stream_has_room_while_answers_wait_but_not_without_end() {
    let mut in_flight = InFlight::default();
    for sequence in 0..IN_FLIGHT as u64 {
        assert!(in_flight.has_room(), "{sequence}");
        in_flight.ready.push(done(sequence, sequence % 2 == 0));
    }
    assert!(!in_flight.has_room());
}

/// WK3.
#[tokio::test]
async fn a_large_answer_that_waits_is_dropped_when_it_is_cancelled() {
    let (answers, _unread) = mpsc::channel(1);
    let scene = Scene::new(&plenty()).await;
    let stream = WorkStream {
        engine: Arc::clone(&scene.engine),
        answers,
        admitted: Admitted::new(&plenty(), None),
        stopping: CancellationToken::new(),
        watch: watched(),
    };
    let mut in_flight = InFlight::default();
    in_flight.ready.push(done(1, true));
    in_flight.ready.push(done(2, true));
    let cancel = pb::WorkItem {
        work: Some(Work::Cancel(1)),
        ..pb::WorkItem::default()
    };
    in_flight.begin(&stream, cancel, &Arc::new(plenty().take(0)));
    let left = in_flight.ready.message().into_response().outcomes;
    assert_eq!((left[0].sequence, in_flight.is_empty()), (2, true));
}

/// N4.
#[tokio::test]
async fn large_work_does_not_wait_for_small_work_or_changes() {
    let mut scene = Scene::new(&plenty()).await;
    let held = [Class::Small, Class::Change].map(|class| scene.threads.hold_up(class));
    scene.ask(1, Work::from(scene.find())).await;
    scene.ask(2, Work::from(scene.find_many())).await;
    assert_eq!(scene.answer().await, Some((2, None)));
    drop(held);
    assert_eq!(scene.answer().await, Some((1, None)));
}

/// WK6.
#[test]
fn small_answers_go_before_large_ones_that_wait() {
    let mut ready = WaitingAnswers::default();
    for (sequence, is_large) in [(1, true), (2, true), (3, false), (4, false)] {
        ready.push(done(sequence, is_large));
    }
    let sent = std::iter::from_fn(|| (!ready.is_empty()).then(|| ready.message()));
    let sequences = |message: WorkMessage| -> Vec<u64> {
        let outcomes = message.into_response().outcomes;
        outcomes.iter().map(|one| one.sequence).collect()
    };
    assert!(sent.map(sequences).eq([vec![3, 4], vec![1], vec![2]]));
}

impl Scene {
    /// A change of one document, whose shards are all owned, with this version.
    fn change(&self, kind: pb::ChangeKind, version: Version) -> pb::Change {
        pb::Change {
            target: self.find().target,
            kind: kind.into(),
            shards: vec![0],
            fingerprints: vec![7],
            version: version.0,
            ..Default::default()
        }
    }

    /// What the next answer says of a change, or why it is a refusal.
    async fn changed(&mut self) -> Result<pb::Changed, Reason> {
        match self.outcome().await.unwrap().outcome.unwrap() {
            Outcome::Changed(changed) => Ok(changed),
            Outcome::Status(status) => Err(Reason::of(&status_from_bytes(status)).unwrap()),
            other @ (Outcome::Matches(_) | Outcome::Confirmed(_)) => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_version_of_tomorrow_is_for_removals_beyond_the_clock_only() {
    let mut scene = Scene::new(&plenty()).await;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = u64::try_from(now.unwrap().as_millis()).unwrap();
    let (today, tomorrow) = (Version::at(now), Version::at(now + 86_400_000));
    let (insert, remove) = (pb::ChangeKind::Insert, pb::ChangeKind::Remove);
    let beyond = |change| pb::Change {
        beyond_clock: true,
        ..change
    };
    let changed = Ok(pb::Changed {
        documents: vec![1],
        ..Default::default()
    });
    let newer = Ok(pb::Changed {
        documents: vec![0],
        newer_documents: vec![0],
        newer_versions: vec![tomorrow.0],
        refused_shards: Vec::new(),
    });
    for (change, expected) in [
        (scene.change(insert, tomorrow), Err(Reason::ClockAhead)),
        (scene.change(remove, tomorrow), Err(Reason::ClockAhead)),
        (
            beyond(scene.change(insert, tomorrow)),
            Err(Reason::InvalidRequest),
        ),
        (scene.change(insert, today), changed.clone()),
        (beyond(scene.change(remove, tomorrow)), changed),
        (scene.change(insert, today.next()), newer),
    ] {
        let what = format!("{change:?}");
        scene.ask(1, Work::from(change)).await;
        assert_eq!(scene.changed().await, expected, "{what}");
    }
}

#[test]
fn a_document_with_several_newer_versions_is_listed_once_with_the_highest() {
    let outcome = engine::ChangeOutcome {
        changed: vec![3],
        newer: [(4, 5), (1, 7), (4, 9), (4, 8)]
            .map(|(place, version)| (place, Version(version)))
            .to_vec(),
        refused: [7, 9].map(ShardId).into_iter().collect(),
    };
    let columns = changed(5, &outcome);
    assert_eq!(columns.documents, [0b1000]);
    assert_eq!(columns.newer_documents, [1, 4]);
    assert_eq!(columns.newer_versions, [7, 9]);
    assert_eq!(columns.refused_shards, [7, 9]);
}
