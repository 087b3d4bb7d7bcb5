//! A cluster of real processes answers as the embedded one does.

use simshard_client::Client;
use simshard_cluster::{ClusterLayout, FileStore, MetadataStore, Node};
use simshard_testkit::{ForgetfulCluster, Process, binary, run};
use simshard_topology::NodeId;

/// Three nodes and a router that share a layout file, started as `docs/operating.md` says.
fn cluster() -> ForgetfulCluster {
    ForgetfulCluster::start(3)
}

#[test]
fn a_search_stores_nothing() {
    let router = Process::serve(binary(), ["serve", "--listen", "127.0.0.1:0"]);
    let find = ["find", "--text", "a text", "--router", router.url()];
    for _ in 0..2 {
        let found = String::from_utf8(run(binary(), find, "").stdout).unwrap();
        assert!(found.ends_with("\"matches\":[]}\n"), "{found}");
    }
}

fn embedded() -> Process {
    Process::serve(binary(), ["serve", "--listen", "127.0.0.1:0"])
}

/// Whatever became of the corpus that `serve` makes, the server starts, so that it can be made or deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_starts_beside_a_corpus_whose_deletion_was_cut_short() {
    let data = tempfile::tempdir().unwrap();
    let serve = || {
        let folder = data.path().to_str().unwrap();
        let args = ["serve", "--listen", "127.0.0.1:0", "--data", folder];
        tokio::task::block_in_place(|| Process::serve(binary(), args))
    };
    drop(serve());
    let node = Node {
        id: NodeId::new("n1").unwrap(),
        address: "http://127.0.0.1:1".to_owned(),
    };
    let layout = ClusterLayout::planned(vec![node], 1).unwrap();
    let store = FileStore::of_layout(layout, &data.path().join("cluster.toml"));
    let corpora = store.corpora().await.unwrap();
    let made = corpora.records().next().unwrap();
    store.begin_deletion(&made.name, &made.uid).await.unwrap();

    let server = serve();
    let client = Client::new(server.url()).unwrap();
    client.delete_corpus("default").await.unwrap();
    drop(server);
    let server = serve();
    let client = Client::new(server.url()).unwrap();
    assert_eq!(client.list_corpora().await.unwrap()[0].name, "default");
}

/// Runs a client command against a router; its standard output.
fn simshard(router: &str, args: &[&str], input: &str) -> String {
    let output = run(binary(), [args, &["--router", router]].concat(), input);
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {log}");
    String::from_utf8(output.stdout).unwrap()
}

const TEXTS: &str = "\
the quick brown fox jumps over the lazy dog and runs away
The quick brown fox jumps over the lazy dog, and runs away!

a text about something else entirely with other words
the quick brown fox jumps over the lazy cat and runs away
short
";

const NUMBERS: &str = "\
id\thash
zero\t0
ones\t18446744073709551615
stored\t5456993838078482869
copy\t5456993838078482869
near\t5456993838078482868
";

/// The same commands against any router: everything they print.
fn session(router: &str) -> Vec<String> {
    vec![
        simshard(router, &["insert"], TEXTS),
        simshard(router, &["insert", "--format", "tsv"], NUMBERS),
        simshard(router, &["find"], TEXTS),
        simshard(router, &["find", "--format", "tsv"], NUMBERS),
        simshard(router, &["find-first", "--format", "tsv"], NUMBERS),
        simshard(
            router,
            &["find", "--fingerprint", "5457064206285785525"],
            "",
        ),
        simshard(
            router,
            &["find", "--fingerprint", "1", "--max-distance", "0"],
            "",
        ),
        simshard(router, &["find", "--text", "short"], ""),
        simshard(
            router,
            &["remove", "--format", "tsv"],
            "copy\t5456993838078482869\n",
        ),
        simshard(
            router,
            &["find", "--limit", "1", "--format", "tsv"],
            NUMBERS,
        ),
    ]
}

#[test]
fn processes_answer_as_the_embedded_cluster_does() {
    let cluster = cluster();
    let router = cluster.router.url();
    simshard(router, &["corpus", "create", "default"], "");
    let embedded = embedded();
    let from_processes = session(router);
    assert_eq!(from_processes, session(embedded.url()));

    let found: Vec<&str> = from_processes[2].lines().collect();
    assert_eq!(found.len(), 5, "a line for each text");
    assert!(found[0].contains(r#""ids":["1","2"]"#), "{}", found[0]);
    let numbers: Vec<&str> = from_processes[3].lines().collect();
    assert!(
        numbers[2].contains(r#""ids":["copy","stored"]"#),
        "{}",
        numbers[2]
    );
    assert!(numbers[1].contains(r#""fingerprint":"18446744073709551615""#));
}

#[test]
fn every_role_stops_cleanly_when_asked() {
    let cluster = cluster();
    assert_eq!(cluster.router.terminate(), Some(0));
    for node in cluster.nodes {
        assert_eq!(node.terminate(), Some(0));
    }
    assert_eq!(embedded().terminate(), Some(0));
}

#[test]
fn corpora_outlive_their_router() {
    let mut cluster = cluster();
    let url = cluster.router.url();
    simshard(url, &["corpus", "create", "kept", "--blocks", "6"], "");
    simshard(url, &["insert", "--corpus", "kept"], TEXTS);
    let expected = simshard(url, &["find", "--corpus", "kept"], TEXTS);
    cluster.restart_router();
    let router = &cluster.router;
    let listed = simshard(router.url(), &["corpus", "list"], "");
    assert_eq!(
        listed,
        "name\tblocks\tdistance\trecipe\tstate\nkept\t6\t3\twords-v3\tlive\n"
    );
    assert_eq!(
        simshard(router.url(), &["find", "--corpus", "kept"], TEXTS),
        expected
    );
}

#[test]
fn two_routers_see_each_others_corpora_come_and_go() {
    let cluster = cluster();
    let (one, two) = (&cluster.router, cluster.start_router());
    for round in 0..3 {
        simshard(one.url(), &["corpus", "create", "c"], "");
        let text = format!("round {round} of a text");
        simshard(two.url(), &["insert", "--corpus", "c"], &text);
        let found = simshard(one.url(), &["find", "--corpus", "c"], &text);
        assert!(found.contains(r#""ids":["1"]"#), "{found}");
        simshard(two.url(), &["corpus", "delete", "c"], "");
        let gone = run(
            binary(),
            [
                "find",
                "--corpus",
                "c",
                "--text",
                "x",
                "--router",
                one.url(),
            ],
            "",
        );
        assert_eq!(gone.status.code(), Some(2));
        let log = String::from_utf8_lossy(&gone.stderr);
        assert!(log.contains("there is no corpus c"), "{log}");
    }
}

/// The other router searches as far as the corpus that there is now asks for.
#[test]
fn a_corpus_made_again_with_another_distance_is_searched_in_full() {
    let cluster = cluster();
    let (one, two) = (&cluster.router, cluster.start_router());
    let find = ["find", "--corpus", "c", "--fingerprint", "0"];
    for (blocks, distance, matches) in [("5", "3", 3), ("8", "5", 5), ("4", "2", 2)] {
        let create = [
            "corpus",
            "create",
            "c",
            "--blocks",
            blocks,
            "--distance",
            distance,
        ];
        simshard(two.url(), &create, "");
        let near: String = (1..=8)
            .map(|bits| format!("{bits}\t{}\n", (1_u64 << bits) - 1))
            .collect();
        simshard(
            two.url(),
            &["insert", "--corpus", "c", "--format", "tsv"],
            &near,
        );
        let found = simshard(
            one.url(),
            &[&find[..], &["--max-distance", distance]].concat(),
            "",
        );
        assert_eq!(found.matches("distance").count(), matches, "{found}");
        let found = simshard(one.url(), &find, "");
        assert_eq!(found.matches("distance").count(), matches, "{found}");
        simshard(two.url(), &["corpus", "delete", "c"], "");
    }
}

/// A node that lost its memory says so, rather than finding nothing.
#[test]
fn a_restarted_node_is_noticed() {
    let mut cluster = cluster();
    let router = &cluster.router;
    simshard(router.url(), &["corpus", "create", "default"], "");
    simshard(router.url(), &["insert"], TEXTS);
    cluster.nodes.remove(1).kill();

    let find_with = |more: &[&str]| {
        let args = [&["find", "--router", router.url()], more].concat();
        run(binary(), args, TEXTS)
    };
    let find = || find_with(&[]);
    let lost = find();
    assert_eq!(lost.status.code(), Some(1));
    let log = String::from_utf8_lossy(&lost.stderr);
    assert!(log.contains("node n2 (shards "), "{log}");
    assert!(log.contains(" of 00-ff)"), "{log}");
    assert!(log.contains("or give --allow-partial"), "{log}");
    let partial = find_with(&["--allow-partial"]);
    let log = String::from_utf8_lossy(&partial.stderr);
    assert_eq!(log, "partial answers: node n2 was unreachable or late\n");

    let _empty = cluster.start_node("n2");
    let empty = find();
    assert_eq!(empty.status.code(), Some(1));
    let log = String::from_utf8_lossy(&empty.stderr);
    assert!(log.contains("does not hold corpus"), "{log}");
    assert!(log.contains("or give --allow-partial"), "{log}");
    let partial = find_with(&["--allow-partial"]);
    let log = String::from_utf8_lossy(&partial.stderr);
    assert_eq!(log, "partial answers: node n2 does not hold the corpus\n");

    simshard(router.url(), &["corpus", "delete", "default"], "");
    simshard(router.url(), &["corpus", "create", "default"], "");
    simshard(router.url(), &["insert"], TEXTS);
    assert!(find().status.success());
}

#[test]
fn who_asks_a_node_is_told_that_it_is_no_router() {
    let cluster = cluster();
    let find = ["find", "--text", "a text"];
    let asked = [&find[..], &["--router", cluster.nodes[0].url()]].concat();
    let output = run(binary(), asked, "");
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{log}");
    assert!(log.contains("is no router"), "{log}");
}

#[test]
fn an_insert_that_waits_says_once_for_what() {
    let mut cluster = cluster();
    let router = &cluster.router;
    simshard(router.url(), &["corpus", "create", "default"], "");
    cluster.nodes.remove(1).kill();
    let insert = [
        "insert",
        "--patience-seconds",
        "4",
        "--router",
        router.url(),
    ];
    let output = run(binary(), insert, TEXTS);
    assert_eq!(output.status.code(), Some(1));
    let log = String::from_utf8_lossy(&output.stderr);
    let [waiting, error] = log.lines().collect::<Vec<_>>()[..] else {
        panic!("{log}");
    };
    assert!(waiting.starts_with("waiting, for up to "), "{log}");
    assert!(
        waiting.ends_with(" s more: node n2 is unreachable"),
        "{log}"
    );
    assert!(error.starts_with("error: node n2 (shards "), "{log}");
}

/// A node that hangs costs the time that the client allows, and no more.
#[test]
fn a_frozen_node_is_late_and_its_part_can_be_done_without() {
    let ForgetfulCluster { router, nodes, .. } = &cluster();
    simshard(router.url(), &["corpus", "create", "default"], "");
    simshard(router.url(), &["insert"], TEXTS);
    let whole = simshard(router.url(), &["find"], TEXTS);
    nodes[1].freeze();

    let find = ["find", "--timeout-seconds", "2", "--router", router.url()];
    let late = run(binary(), find, TEXTS);
    assert_eq!(late.status.code(), Some(1));
    let log = String::from_utf8_lossy(&late.stderr);
    assert!(
        log.contains("node n2 (shards") && log.contains("in time"),
        "{log}"
    );

    let partial = run(binary(), [&find[..], &["--allow-partial"]].concat(), TEXTS);
    assert!(partial.status.success());
    let log = String::from_utf8_lossy(&partial.stderr);
    assert_eq!(log, "partial answers: node n2 was unreachable or late\n");
    let partial = String::from_utf8_lossy(&partial.stdout);
    assert_eq!(partial.lines().count(), whole.lines().count());
    assert!(partial.contains("guaranteed_distance"), "{partial}");
    nodes[1].thaw();
    assert_eq!(simshard(router.url(), &["find"], TEXTS), whole);
}

/// A smaller distance needs fewer lead groups: any one of the four for distance
/// 0, and the last one is asked first.
#[test]
fn a_frozen_node_is_gone_around_where_the_others_suffice() {
    let ForgetfulCluster { router, nodes, .. } = &cluster();
    simshard(router.url(), &["corpus", "create", "default"], "");
    // Where the leading bytes of the blocks A to D are, of which n2 has 56 to aa.
    let byte = |start: u32| 0x80_u64 << (start - 8);
    let [a, b, c, d] = [64, 51, 38, 25].map(byte);
    let documents = [
        ("the last group is elsewhere", a | b | c, true),
        ("the last group alone is on n2", d, true),
        ("the first group alone is elsewhere", b | c | d, true),
        ("all groups are on n2", a | b | c | d, false),
    ];
    let tsv: String = documents
        .iter()
        .map(|(id, fingerprint, _)| format!("{id}\t{fingerprint}\n"))
        .collect();
    simshard(router.url(), &["insert", "--format", "tsv"], &tsv);
    nodes[1].freeze();

    for (id, fingerprint, can_be_found) in documents {
        let fingerprint = fingerprint.to_string();
        let args = ["find", "--max-distance", "0", "--fingerprint", &fingerprint];
        let bounds = ["--timeout-seconds", "4", "--router", router.url()];
        let output = run(binary(), [&args[..], &bounds].concat(), "");
        let log = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), can_be_found, "{id}: {log}");
        if can_be_found {
            let expected = format!(
                "{{\"query\":\"{fingerprint}\",\"matches\":[{{\"fingerprint\":\"{fingerprint}\",\
                 \"distance\":0,\"similarity\":1.0,\"ids\":[\"{id}\"]}}]}}\n"
            );
            assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
            assert_eq!(log, "", "{id}");
        } else {
            assert!(log.contains("node n2 (shards"), "{log}");
            assert!(!log.contains("n1") && !log.contains("n3"), "{log}");
        }
    }
    nodes[1].thaw();
}
