//! The event loop: everything that happens is an event at a virtual time, and one seed decides all of it.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::hash::{DefaultHasher, Hash, Hasher};

use fastrand::Rng;
use simshard_topology::replication::StoreId;

use crate::faults::Fault;
use crate::message::{Message, Place};
use crate::metadata::Metadata;
use crate::node::Node;
use crate::oracle::{Breach, Oracle};
use crate::router::Router;
use crate::scene::{END, LAST_FAULTS, LAST_WRITES, MILLISECOND, Scene, Time};

/// What a process set itself to do.
#[derive(Clone, Debug)]
pub(crate) enum Timer {
    /// Of nodes: begin to run.
    Start,
    Tick,
    /// The records before this one are on disk.
    Synced(u64),
    Apply,
    /// Send the next part of a copy.
    Send(Box<(Place, Message)>),
    /// Ask the metadata to prove a read.
    Prove(usize),
}

#[derive(Clone, Debug)]
pub(crate) enum Event {
    Deliver {
        from: Place,
        to: Place,
        message: Message,
    },
    /// Of the process with this number of the place.
    Timer {
        place: Place,
        life: u64,
        timer: Timer,
    },
    Trouble,
    CutEnds(Place, Place),
    MetadataReturns,
    LastFaults,
    /// From now on the metadata does not reach a node.
    MetadataIsCutOff(usize),
    DiskIsLost(usize),
    /// A client begins something.
    Client,
    Check,
    LastWrites,
}

struct Scheduled {
    at: Time,
    number: u64,
    event: Event,
}

pub(crate) struct World {
    pub(crate) rng: Rng,
    pub(crate) scene: Scene,
    pub(crate) fault: Option<Fault>,
    pub(crate) now: Time,
    /// How many events there were: times of the oracle.
    pub(crate) moment: u64,
    queue: BinaryHeap<Reverse<Scheduled>>,
    scheduled: u64,
    pub(crate) metadata: Metadata,
    pub(crate) nodes: Vec<Node>,
    pub(crate) routers: Vec<Router>,
    /// Links that lose all, from one to another.
    pub(crate) cuts: BTreeSet<(Place, Place)>,
    /// Stores whose directories are gone.
    pub(crate) lost: BTreeSet<StoreId>,
    pub(crate) oracle: Oracle,
    trace: DefaultHasher,
    told: Option<Vec<String>>,
}

/// What a run showed.
pub(crate) struct Outcome {
    pub(crate) breach: Option<Breach>,
    /// The same for the same events.
    pub(crate) hash: u64,
    pub(crate) events: u64,
    pub(crate) acknowledged: usize,
    pub(crate) answered: usize,
    pub(crate) steps: usize,
    /// How many floors were settled, and tombstones dropped.
    pub(crate) settled: usize,
    pub(crate) dropped: usize,
    /// What happened, if that was asked for.
    pub(crate) told: Vec<String>,
}

/// Runs the world of a seed until something breaks, or to its end.
pub(crate) fn run(seed: u64, fault: Option<Fault>, tells: bool) -> Outcome {
    let mut rng = Rng::with_seed(seed);
    let scene = Scene::random(&mut rng);
    let mut world = World {
        metadata: Metadata::new(&scene),
        nodes: (0..scene.nodes).map(Node::new).collect(),
        routers: (0..scene.routers).map(|_| Router::new(&mut rng)).collect(),
        rng,
        fault,
        now: 0,
        moment: 0,
        queue: BinaryHeap::new(),
        scheduled: 0,
        cuts: BTreeSet::new(),
        lost: BTreeSet::new(),
        oracle: Oracle::new(fault),
        trace: DefaultHasher::new(),
        told: tells.then(Vec::new),
        scene,
    };
    world.begin();
    world.go();
    Outcome {
        breach: world.oracle.breach.take(),
        hash: world.trace.finish(),
        events: world.moment,
        acknowledged: world.oracle.acknowledged(),
        answered: world.oracle.answered,
        steps: world.metadata.steps,
        settled: world.metadata.settled,
        dropped: world.oracle.drops,
        told: world.told.unwrap_or_default(),
    }
}

impl World {
    fn begin(&mut self) {
        for node in 0..self.nodes.len() {
            self.timer(Place::Node(node), 0, Timer::Start);
        }
        for router in 0..self.routers.len() {
            self.timer(Place::Router(router), 0, Timer::Tick);
        }
        self.at(400 * MILLISECOND, Event::Trouble);
        self.at(100 * MILLISECOND, Event::Client);
        self.at(100 * MILLISECOND, Event::Check);
        self.at(LAST_WRITES, Event::LastWrites);
        if self.scene.cuts_off {
            self.at(LAST_FAULTS, Event::LastFaults);
        }
    }

    fn go(&mut self) {
        while self.oracle.breach.is_none()
            && let Some(Reverse(next)) = self.queue.pop()
        {
            if next.at > END {
                break;
            }
            self.now = next.at;
            self.moment += 1;
            self.note(&next.event);
            self.happens(next.event);
        }
        if self.oracle.breach.is_none() {
            self.check_end();
        }
    }

    fn note(&mut self, event: &Event) {
        (self.now, self.rng.u64(..)).hash(&mut self.trace);
        std::mem::discriminant(event).hash(&mut self.trace);
        self.tell(|| format!("{event:?}"));
    }

    /// Adds to the story, if it is told.
    pub(crate) fn tell(&mut self, what: impl FnOnce() -> String) {
        let now = self.now as f64 / MILLISECOND as f64;
        if let Some(told) = &mut self.told {
            told.push(format!("{now:10.3} {}", what()));
        }
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Deliver { from, to, message } => self.arrives(from, to, message),
            Event::Timer { place, life, timer } => self.rings(place, life, timer),
            Event::Trouble => self.make_trouble(),
            Event::CutEnds(from, to) => drop(self.cuts.remove(&(from, to))),
            Event::MetadataReturns => self.metadata.is_away = false,
            Event::LastFaults => self.make_last_faults(),
            Event::MetadataIsCutOff(node) => self.cut_off_metadata(node),
            Event::DiskIsLost(node) => self.lose_disk(node),
            Event::Client => self.client(),
            Event::Check => self.check(),
            Event::LastWrites => self.last_writes(),
        }
    }

    fn rings(&mut self, place: Place, life: u64, timer: Timer) {
        match place {
            _ if self.is_paused(place) => {
                let again = Event::Timer { place, life, timer };
                self.defer(place, again);
            }
            Place::Node(node) if self.nodes[node].life == life => self.node_rings(node, timer),
            Place::Router(router) if self.routers[router].life == life => {
                self.router_rings(router, &timer);
            }
            Place::Node(_) | Place::Router(_) | Place::Metadata => {}
        }
    }

    fn arrives(&mut self, from: Place, to: Place, message: Message) {
        if self.is_paused(to) {
            self.defer(to, Event::Deliver { from, to, message });
            return;
        }
        self.leaves_network(&message);
        match to {
            _ if self.cuts.contains(&(from, to)) => {}
            Place::Metadata => self.metadata_takes(from, message),
            Place::Node(node) => self.node_takes(node, from, message),
            Place::Router(router) => self.router_takes(router, message),
        }
    }

    fn paused_until(&self, place: Place) -> Time {
        match place {
            Place::Metadata => 0,
            Place::Node(node) => self.nodes[node].paused_until,
            Place::Router(router) => self.routers[router].paused_until,
        }
    }

    fn is_paused(&self, place: Place) -> bool {
        self.paused_until(place) > self.now
    }

    /// Lets a paused process see an event when it goes on, in any order with others.
    fn defer(&mut self, place: Place, event: Event) {
        let until = self.paused_until(place);
        let at = until + self.rng.u64(..2 * MILLISECOND);
        self.at(at, event);
    }

    pub(crate) fn at(&mut self, at: Time, event: Event) {
        self.scheduled += 1;
        self.queue.push(Reverse(Scheduled {
            at,
            number: self.scheduled,
            event,
        }));
    }

    pub(crate) fn timer(&mut self, place: Place, after: Time, timer: Timer) {
        let life = match place {
            Place::Node(node) => self.nodes[node].life,
            Place::Router(router) => self.routers[router].life,
            Place::Metadata => 0,
        };
        self.at(self.now + after, Event::Timer { place, life, timer });
    }

    /// Sends a message, which may be lost or late. A write may arrive twice: a connection that breaks may have
    /// delivered it, and it is sent again.
    pub(crate) fn send(&mut self, from: Place, to: Place, message: Message) {
        if self.cuts.contains(&(from, to)) || self.rng.u64(..1000) < self.scene.lost {
            return;
        }
        if let Message::Write(_) = message
            && self.rng.u64(..50) == 0
        {
            self.deliver(from, to, message.clone());
        }
        self.deliver(from, to, message);
    }

    fn deliver(&mut self, from: Place, to: Place, message: Message) {
        let delay = match self.rng.u64(..100) {
            // A repair that is late is what its rules are about.
            ..30 if matches!(message, Message::Repair(_)) => self.rng.u64(..4_000),
            0 => self.rng.u64(..400),
            1..10 => self.rng.u64(..30),
            _ => self.rng.u64(..4),
        };
        if let Message::Write(write) = &message {
            self.oracle.operations[write.operation].in_flight += 1;
        }
        let after = delay * MILLISECOND + self.rng.u64(50..MILLISECOND);
        self.at(self.now + after, Event::Deliver { from, to, message });
    }

    fn leaves_network(&mut self, message: &Message) {
        if let Message::Write(write) = message {
            self.oracle.left_network(write.operation, self.moment);
        }
    }
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl Eq for Scheduled {}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
