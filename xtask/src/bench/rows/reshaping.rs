//! The promised figures of a cluster that its operator reshapes.

use super::{Case, Promise, Target, Unit, row};

pub(super) fn cases() -> Vec<Case> {
    vec![drained(), rolling_restart(), moved(), compared(), rebuilt()]
}

/// The fields of a case in which nodes stop to hold shards, or restart.
const OF_WORK: [&str; 3] = ["reads_longest_ms", "writes_longest_ms", "retried"];

/// The rows of such a case: their names, and what is done.
fn of_work(names: [&'static str; 3], what: &'static str) -> [Promise; 3] {
    let [reads, writes, failed] = names;
    [
        row(reads, what, Target::AtMost(100.0), Unit::Milliseconds),
        row(
            writes,
            "the same, without an insert",
            Target::AtMost(100.0),
            Unit::Milliseconds,
        ),
        row(
            failed,
            "the same, requests that failed at first",
            Target::AtMost(0.0),
            Unit::Count,
        ),
    ]
}

fn drained() -> Case {
    let names = [
        "reshape-drained-reads",
        "reshape-drained-writes",
        "reshape-drained-failed",
    ];
    let what = "3 nodes, 2 hot replicas, records in etcd, 64 requests in flight, all shards of a node move to the others and \
                back, 10 times: the longest time without a search";
    Case::heavy(&of_work(names, what), |programs| {
        programs.fields_in_etcd("node_drained", &OF_WORK)
    })
}

fn rolling_restart() -> Case {
    let names = [
        "reshape-restarted-reads",
        "reshape-restarted-writes",
        "reshape-restarted-failed",
    ];
    let what = "3 nodes, 3 replicas of which 2 are hot, records in etcd, 64 requests in flight, nodes restart in turn, 10 \
                times: the longest time without a search";
    Case::heavy(&of_work(names, what), |programs| {
        programs.fields_in_etcd("rolling_restart", &OF_WORK)
    })
}

fn moved() -> Case {
    Case::heavy(
        &[
            row(
                "reshape-moved",
                "2 nodes, 10M bare documents, (5, 3), half of all shards move to a new node: entries a second, tables \
                 included",
                Target::AtLeast(1_500_000.0),
                Unit::PerSecond,
            ),
            row(
                "reshape-moved-reads-p99",
                "they move on with 64 requests in flight, without a limit: 99 of 100 searches within, against before",
                Target::AtMost(3.0),
                Unit::Times,
            ),
            row(
                "reshape-moved-writes-p99",
                "the same, inserts",
                Target::AtMost(3.0),
                Unit::Times,
            ),
            row(
                "reshape-eased-reads-p99",
                "and on again, at the rate that nodes have beside requests: 99 of 100 searches within",
                Target::AtMost(1.5),
                Unit::Times,
            ),
            row(
                "reshape-eased-writes-p99",
                "the same, inserts",
                Target::AtMost(1.5),
                Unit::Times,
            ),
        ],
        |programs| {
            let fields = [
                "entries_per_second",
                "reads_p99_times",
                "writes_p99_times",
                "eased_reads_p99_times",
                "eased_writes_p99_times",
            ];
            programs.fields_in_etcd("shards_moved", &fields)
        },
    )
}

fn compared() -> Case {
    Case::heavy(
        &[
            row(
                "reshape-compared",
                "3 nodes, 3 replicas of which 2 are hot, 10M bare documents, (5, 3): `cluster scrub` of all replicas, nothing \
                 different",
                Target::AtMost(15.0),
                Unit::Seconds,
            ),
            row(
                "reshape-compared-sent",
                "the same, bytes that are sent, against 16 bytes for each element",
                Target::AtMost(0.001),
                Unit::Times,
            ),
            row(
                "reshape-compared-shards",
                "the same, of all shards with each other",
                Target::AtMost(30.0),
                Unit::Seconds,
            ),
        ],
        |programs| {
            let figures = programs.cluster(&["replicas_compared"])?;
            let figure = figures.of("replicas_compared")?;
            let of = |field| figure.number(field);
            Ok(vec![of("seconds")?, of("sent")?, of("seconds_of_shards")?])
        },
    )
}

fn rebuilt() -> Case {
    Case::heavy(
        &[row(
            "reshape-rebuilt",
            "3 nodes, 1 replica, 10M bare documents, (5, 3): `cluster force --rebuild` of one lost shard, until it is searched",
            Target::AtMost(20.0),
            Unit::Seconds,
        )],
        |programs| {
            let figures = programs.cluster(&["shard_rebuilt"])?;
            Ok(vec![figures.of("shard_rebuilt")?.number("seconds")?])
        },
    )
}
