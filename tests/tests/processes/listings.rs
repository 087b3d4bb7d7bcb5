//! What `cluster shards` lists: of one node, and anew while shards move.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use simshard_testkit::{ProcessCluster, Shape, binary, run};
use tokio::task::block_in_place;

use crate::moves::operate;

/// More lines than a list has while anything moves.
const MANY: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_are_listed_of_one_node_and_anew_while_they_move() {
    let cluster = ProcessCluster::start(Shape::of(2));
    let of_second = operate(&cluster, &["shards", "--node", "n2"]);
    let (head, held) = of_second.split_once('\n').unwrap();
    assert_eq!(held, "80-ff\t0.1\tn2\tn2\t\t\n");

    let metadata = format!("file:{}", cluster.metadata_file().display());
    let unknown = ["cluster", "shards", "--node", "n9", "--metadata", &metadata];
    let unknown = block_in_place(|| run(binary(), unknown, ""));
    let told = String::from_utf8(unknown.stderr).unwrap();
    assert!(told.contains("no node n9 has registered"), "{told}");
    assert_eq!(unknown.status.code(), Some(2));

    let mut watch = Command::new(binary());
    watch.args(["cluster", "shards", "--watch", "1", "--node", "n2"]);
    watch.args(["--metadata", &metadata]).stdout(Stdio::piped());
    let mut watching = watch.spawn().unwrap();
    let output = BufReader::new(watching.stdout.take().unwrap());
    let mut lines = output.lines().take(MANY).map(Result::unwrap);
    block_in_place(|| {
        assert_eq!(lines.next().as_deref(), Some(head));
        assert_eq!(lines.next().as_deref(), Some("80-ff\t0.1\tn2\tn2\t\t"));
    });
    operate(&cluster, &["move", "--shards", "00-7f", "--to", "n2"]);
    block_in_place(|| {
        let holds_all =
            |line: String| line.starts_with("00-7f\t") && line.ends_with("\tn2\tn2\t\tn2");
        assert!(lines.any(holds_all), "the list never showed the move");
        watching.kill().unwrap();
        watching.wait().unwrap();
    });
}
