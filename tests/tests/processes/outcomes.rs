//! What commands that change a cluster tell programs: an object for each.

use serde_json::{Value, json};
use simshard_testkit::{End, ProcessCluster, Shape};
use tokio::task::block_in_place;

use crate::moves::operate;

/// What a command prints, with `--json`.
fn outcome(cluster: &ProcessCluster, command: &str) -> Value {
    let command: Vec<&str> = command.split(' ').chain(["--json"]).collect();
    serde_json::from_str(&operate(cluster, &command)).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_command_changed_is_told_to_programs() {
    let mut cluster = ProcessCluster::start(Shape::of(2));
    let paused = |is, was| json!({ "paused": is, "was_paused": was });
    let expected = [
        (
            "set-zone n1 rack-a",
            json!({ "node": "n1", "zone": "rack-a" }),
        ),
        ("set-zone n1 --none", json!({ "node": "n1", "zone": null })),
        ("set-capacity n1 2", json!({ "node": "n1", "capacity": 2 })),
        (
            "set-limits n2 --copy-rate 50",
            json!({ "node": "n2", "copy_rate": 50 }),
        ),
        (
            "set-limits n2 --none",
            json!({ "node": "n2", "copy_rate": null }),
        ),
        ("rebalance pause", paused(true, false)),
        ("rebalance pause", paused(true, true)),
        ("rebalance resume", paused(false, true)),
        ("rebalance resume", paused(false, false)),
        (
            "rebalance abort",
            json!({ "aborted": false, "arrived": null }),
        ),
        (
            "move --free --shards 00-0f",
            json!({ "shards": "00-0f", "freed": true }),
        ),
        (
            "undrain n2",
            json!({ "node": "n2", "drained": false, "was_drained": false }),
        ),
        ("force --from n1", json!({ "node": "n1", "shards": "none" })),
    ];
    for (command, expected) in expected {
        assert_eq!(outcome(&cluster, command), expected, "{command}");
    }
    let finalized = outcome(&cluster, "upgrade finalize");
    assert_eq!(finalized["raised"], false);
    operate(&cluster, &["drain", "n2"]);
    let undrained = json!({ "node": "n2", "drained": false, "was_drained": true });
    assert_eq!(outcome(&cluster, "undrain n2"), undrained);
    operate(&cluster, &["rebalance", "plan"]);
    let aborted = json!({ "aborted": true, "arrived": 0 });
    assert_eq!(outcome(&cluster, "rebalance abort"), aborted);
    block_in_place(|| cluster.end_node(1, End::Stopped));
    let removed = json!({ "node": "n2", "removed": true });
    assert_eq!(outcome(&cluster, "remove n2"), removed);
}
