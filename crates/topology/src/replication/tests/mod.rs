//! A search of all states of one shard and one element, made of the very code that nodes and routers run.
//!
//! Every order of its steps is tried: writes that are accepted, synced, applied and acknowledged; crashes that keep any
//! prefix of what was not synced; entries that the log refuses; records that are written, and installed by any store at
//! any time; copies; what a store has left, which it deletes; disks that are lost; routers and readers with records of any
//! age. Stores that differ in name only count once. Each configuration is searched to the end, but for the few of
//! [`LARGE`]: of these, ten million states are visited.
//!
//! A search without one of the rules must find a breach: see [`ablations`].

mod ablations;
mod actions;
mod checks;
mod comparison;
mod decisions;
mod floors;
mod former;
mod key;
mod metadata;
mod rules;
mod search;
mod world;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use search::{MOST_STATES, MOST_WAITING, search};
use world::{Config, Operation};

const INSERT: Operation = Operation {
    version: 4,
    live: true,
    may_fail: false,
};

/// A remove by a clock that is ahead, which may be given up, and an insert.
const SKEWED: &[Operation] = &[
    Operation {
        version: 12,
        live: false,
        may_fail: true,
    },
    Operation {
        version: 5,
        live: true,
        may_fail: false,
    },
];

/// One store and one insert that nothing happens to.
const QUIET: Config = Config {
    name: "",
    stores: 1,
    in_sync: 1,
    changes: 0,
    crashes: 0,
    wipes: 0,
    forces: 0,
    scrubs: 0,
    keeps: false,
    deletes: false,
    in_parts: false,
    floors: false,
    late: false,
    elsewhere: false,
    hot: 0,
    at_once: true,
    reads: true,
    operations: &[INSERT],
    before: &[],
    without: None,
};

/// Writes, syncs, applications and acknowledgements apart, and a crash.
const GATE: Config = Config {
    name: "gate",
    stores: 2,
    changes: 2,
    crashes: 1,
    at_once: false,
    ..QUIET
};

/// Every order of steps of the record.
const MEMBERSHIP: Config = Config {
    name: "membership",
    stores: 3,
    changes: 3,
    ..QUIET
};

/// Operations whose clocks differ, one of them given up; stores leave and come back.
const VERSIONS: Config = Config {
    name: "versions",
    stores: 2,
    in_sync: 2,
    changes: 3,
    operations: SKEWED,
    ..QUIET
};

/// A disk is lost, and a store with another name takes its place.
const LOST_DISK: Config = Config {
    name: "lost disk",
    stores: 3,
    in_sync: 2,
    changes: 2,
    wipes: 1,
    ..QUIET
};

/// Two removes and an insert, of which the first may be given up.
const THREE_WRITERS: Config = Config {
    name: "three writers",
    stores: 2,
    in_sync: 2,
    changes: 2,
    operations: &[
        Operation {
            version: 12,
            live: false,
            may_fail: true,
        },
        Operation {
            version: 5,
            live: true,
            may_fail: false,
        },
        Operation {
            version: 6,
            live: false,
            may_fail: false,
        },
    ],
    ..QUIET
};

/// An operator forces a record, whichever stores answer.
const FORCED: Config = Config {
    name: "forced",
    stores: 3,
    in_sync: 3,
    changes: 3,
    forces: 1,
    ..QUIET
};

/// A store comes back, and copies only what differs from what it had.
const IN_PARTS: Config = Config {
    name: "copies in parts",
    in_parts: true,
    ..VERSIONS
};

/// A scrub carries what a store has to others, which may be late.
const SCRUBBED: Config = Config {
    name: "scrubbed",
    stores: 3,
    in_sync: 3,
    changes: 2,
    scrubs: 1,
    operations: SKEWED,
    ..QUIET
};

/// Some stores hold tables and answer, others do not.
const HOT_AND_COLD: Config = Config {
    name: "hot and cold",
    stores: 3,
    in_sync: 2,
    changes: 2,
    hot: 1,
    keeps: true,
    ..QUIET
};

/// An insert and a remove, whose messages come once more, while floors are raised and tombstones dropped.
const FLOORS: Config = Config {
    name: "floors",
    stores: 2,
    in_sync: 2,
    changes: 2,
    floors: true,
    late: true,
    operations: REMOVED,
    ..QUIET
};

/// An insert, and a remove that may be given up.
const REMOVED: &[Operation] = &[
    INSERT,
    Operation {
        version: 5,
        live: false,
        may_fail: true,
    },
];

const SHORT: &[Config] = &[
    GATE,
    Config { in_sync: 2, ..GATE },
    Config {
        stores: 3,
        in_sync: 3,
        changes: 1,
        ..GATE
    },
    Config {
        keeps: true,
        ..MEMBERSHIP
    },
    Config {
        in_sync: 2,
        ..MEMBERSHIP
    },
    Config {
        in_sync: 3,
        ..MEMBERSHIP
    },
    IN_PARTS,
    ablations::MOVED,
    Config {
        name: "source left",
        changes: 3,
        ..ablations::SOURCE_RETURNS
    },
    Config {
        stores: 1,
        in_sync: 1,
        changes: 0,
        ..THREE_WRITERS
    },
    LOST_DISK,
    FORCED,
    Config {
        in_sync: 2,
        ..FORCED
    },
    Config {
        stores: 2,
        in_sync: 2,
        ..SCRUBBED
    },
    HOT_AND_COLD,
    Config {
        stores: 2,
        in_sync: 1,
        hot: 2,
        ..HOT_AND_COLD
    },
];

/// Searched with `SIMSHARD_LONG` too.
const LONG: &[Config] = &[
    Config {
        in_sync: 1,
        ..THREE_WRITERS
    },
    ablations::SOURCE_RETURNS,
    Config {
        stores: 3,
        ..ablations::MOVED
    },
    Config {
        deletes: true,
        ..IN_PARTS
    },
    Config {
        in_parts: true,
        ..ablations::SOURCE_RETURNS
    },
    // With three changes and two operations it had not ended at 30 million states.
    Config {
        stores: 3,
        changes: 2,
        ..IN_PARTS
    },
    Config {
        stores: 3,
        operations: &[INSERT],
        ..IN_PARTS
    },
    VERSIONS,
    Config {
        changes: 3,
        hot: 2,
        ..HOT_AND_COLD
    },
    Config {
        stores: 2,
        in_sync: 1,
        hot: 2,
        crashes: 1,
        at_once: false,
        ..HOT_AND_COLD
    },
    Config { changes: 3, ..GATE },
    Config {
        changes: 4,
        ..MEMBERSHIP
    },
    Config {
        in_sync: 1,
        ..VERSIONS
    },
    Config {
        changes: 3,
        ..LOST_DISK
    },
    Config {
        crashes: 1,
        changes: 2,
        at_once: false,
        ..FORCED
    },
];

/// Searched with `SIMSHARD_LONG` too, not to the end: they have more than [`MOST_STATES`] states.
const LARGE: &[Config] = &[
    THREE_WRITERS,
    SCRUBBED,
    Config {
        scrubs: 2,
        ..SCRUBBED
    },
    Config {
        in_sync: 2,
        changes: 3,
        ..SCRUBBED
    },
    Config {
        changes: 4,
        ..FORCED
    },
];

/// With floors.
const FLOORED: &[Config] = &[
    Config {
        changes: 3,
        before: ablations::REMOVED,
        ..FLOORS
    },
    ablations::JOINED,
    ablations::FORGOTTEN,
    ablations::ELSEWHERE,
    ablations::CARRIED,
];

/// With floors, searched with `SIMSHARD_LONG` too.
const FLOORED_LONG: &[Config] = &[
    Config {
        reads: false,
        ..FLOORS
    },
    Config {
        changes: 5,
        ..ablations::JOINED
    },
    Config {
        changes: 3,
        ..ablations::ELSEWHERE
    },
    ablations::SCATTERED,
];

/// Searches configurations on all cores, each in turn. Answers how many states were visited.
fn search_all(configs: &[(&Config, Extent)]) -> usize {
    let (next, states) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(&(config, extent)) =
                    configs.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let found = search_one(config, extent, MOST_WAITING / threads);
                    states.fetch_add(found, Ordering::Relaxed);
                }
            });
        }
    });
    states.into_inner()
}

/// How much of a configuration a search is to visit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    All,
    /// [`MOST_STATES`], or all.
    Limited,
}

fn search_one(config: &Config, extent: Extent, most_waiting: usize) -> usize {
    let started = Instant::now();
    let found = search(config, most_waiting);
    let Config {
        name,
        stores,
        in_sync,
        changes,
        ..
    } = config;
    let ended = if found.has_ended { "" } else { ", not all" };
    println!(
        "{name}, {in_sync} of {stores} stores in sync, {changes} changes: {} states{ended}, {:.1?}",
        found.states,
        started.elapsed()
    );
    if let Some((promise, trace)) = found.breach {
        panic!("{promise:?} breaks: {trace:#?}");
    }
    assert!(
        found.has_ended || extent == Extent::Limited,
        "{name}, {in_sync} of {stores} stores in sync, {changes} changes: more than {MOST_STATES} states, make it smaller"
    );
    found.states
}

/// RI1-RI6, RI8, RI10-RI12.
#[test]
fn no_order_of_steps_breaks_a_promise() {
    let is_long = std::env::var_os("SIMSHARD_LONG").is_some();
    let (long, large, at_least) = if is_long {
        (LONG, LARGE, 10_000_000)
    } else {
        (&[][..], &[][..], 1_000_000)
    };
    let whole = SHORT.iter().chain(long).map(|config| (config, Extent::All));
    let limited = large.iter().map(|config| (config, Extent::Limited));
    let configs: Vec<(&Config, Extent)> = whole.chain(limited).collect();
    let states = search_all(&configs);
    println!("{states} states");
    assert!(states >= at_least, "{states} states");
}

/// FL4, RI1-RI6, RI8, RI10-RI12.
#[test]
fn no_order_of_steps_breaks_a_promise_while_tombstones_are_dropped() {
    let long = std::env::var_os("SIMSHARD_LONG").map_or(&[][..], |_| FLOORED_LONG);
    let whole = FLOORED.iter().map(|config| (config, Extent::All));
    let long = long.iter().map(|config| (config, Extent::Limited));
    let configs: Vec<(&Config, Extent)> = whole.chain(long).collect();
    println!("{} states", search_all(&configs));
}
