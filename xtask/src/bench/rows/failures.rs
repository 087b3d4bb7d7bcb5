//! The promised figures of a cluster with replicas in which something fails.

use super::{Case, Promise, Target, Unit, row};

pub(super) fn cases() -> Vec<Case> {
    vec![
        killed(),
        stopped(),
        incoming_lost(),
        outgoing_lost(),
        etcd_away(),
        full_copy(),
        cold_to_hot(),
    ]
}

/// The fields of a case in which nodes fail, as its rows have them.
const OF_NODES: [&str; 4] = ["reads_p99_ms", "writes_p99_ms", "failed", "evicted_p99_ms"];

/// The rows of such a case: their names, and how the node fails.
fn of_node(names: [&'static str; 4], how: &'static str) -> [Promise; 4] {
    let [reads, writes, failed, evicted] = names;
    [
        row(reads, how, Target::AtMost(200.0), Unit::Milliseconds),
        row(
            writes,
            "the same, without an insert",
            Target::AtMost(2_000.0),
            Unit::Milliseconds,
        ),
        row(
            failed,
            "the same, requests that failed twice, or not within 5 s",
            Target::AtMost(0.0),
            Unit::Count,
        ),
        row(
            evicted,
            "the same, until the records of all 256 shards are without it",
            Target::AtMost(2_000.0),
            Unit::Milliseconds,
        ),
    ]
}

fn killed() -> Case {
    let names = [
        "failover-killed-reads",
        "failover-killed-writes",
        "failover-killed-failed",
        "failover-killed-evicted",
    ];
    let how = "3 nodes, 3 replicas of which 2 are hot, records in etcd, 64 requests in flight, a node is killed: \
               the longest time without a search, the longest of 10 kills";
    Case::heavy(&of_node(names, how), |programs| {
        programs.fields_in_etcd("node_killed", &OF_NODES)
    })
}

fn stopped() -> Case {
    let names = [
        "failover-stopped-reads",
        "failover-stopped-writes",
        "failover-stopped-failed",
        "failover-stopped-evicted",
    ];
    let how = "as `failover-killed-reads`, where a node freezes (SIGSTOP)";
    Case::heavy(&of_node(names, how), |programs| {
        programs.fields_in_etcd("node_stopped", &OF_NODES)
    })
}

fn incoming_lost() -> Case {
    let names = [
        "failover-incoming-lost-reads",
        "failover-incoming-lost-writes",
        "failover-incoming-lost-failed",
        "failover-incoming-lost-evicted",
    ];
    let how = "as `failover-killed-reads`, where all packets to a node are lost (needs root)";
    Case::heavy(&of_node(names, how), |programs| {
        programs.fields_in_etcd("node_incoming_lost", &OF_NODES)
    })
}

fn outgoing_lost() -> Case {
    let names = [
        "failover-outgoing-lost-reads",
        "failover-outgoing-lost-writes",
        "failover-outgoing-lost-failed",
        "failover-outgoing-lost-evicted",
    ];
    let how = "as `failover-killed-reads`, where all packets from a node are lost (needs root)";
    Case::heavy(&of_node(names, how), |programs| {
        programs.fields_in_etcd("node_outgoing_lost", &OF_NODES)
    })
}

fn etcd_away() -> Case {
    Case::heavy(
        &[
            row(
                "failover-etcd-away",
                "the same cluster, etcd is away for a minute: requests a second, against the minute before",
                Target::AtLeast(0.95),
                Unit::Times,
            ),
            row(
                "failover-etcd-away-errors",
                "the same, requests that failed",
                Target::AtMost(0.0),
                Unit::Count,
            ),
        ],
        |programs| programs.fields_in_etcd("etcd_away", &["times", "retried"]),
    )
}

fn full_copy() -> Case {
    Case::heavy(
        &[row(
            "replicas-full-copy",
            "2 nodes, 2 hot replicas, 10M bare documents, (5, 3): from the start of one with an empty directory \
             until it holds all in sync, with tables",
            Target::AtMost(15.0),
            Unit::Seconds,
        )],
        |programs| programs.fields_in_etcd("full_copy", &["seconds"]),
    )
}

fn cold_to_hot() -> Case {
    Case::heavy(
        &[row(
            "replicas-cold-to-hot",
            "a node with 10M bare documents, (5, 3), all cold, becomes hot as the other one is killed: from the records \
             to its first answer, against a restart of it",
            Target::AtMost(2.2),
            Unit::Times,
        )],
        |programs| programs.fields_in_etcd("cold_to_hot", &["times"]),
    )
}
