//! What scripts need of the commands: JSON for every table, quiet, progress without a terminal, completion.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use simshard_testkit::{End, Process, ProcessCluster, Shape, run};

use crate::{BINARY, embedded, log, simshard};

/// The objects that a command prints, one a line.
fn objects(text: &str) -> Vec<Value> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn corpora_are_printed_as_json_too() {
    let router = embedded();
    simshard(&router, &["insert", "--format", "tsv"], "a\t1\nb\t1\n");
    let listed = objects(&simshard(&router, &["corpus", "list", "--json"], ""));
    let table = simshard(&router, &["corpus", "list"], "");
    let rows: Vec<Vec<&str>> = table.lines().map(|row| row.split('\t').collect()).collect();
    assert_eq!(listed.len(), rows.len() - 1);
    for (object, row) in listed.iter().zip(&rows[1..]) {
        for (key, cell) in rows[0].iter().zip(row) {
            let value = &object[key];
            let shown = value.as_str().map_or(value.to_string(), str::to_owned);
            assert_eq!(shown, *cell, "{key}");
        }
    }

    let shown = objects(&simshard(
        &router,
        &["corpus", "show", "default", "--json"],
        "",
    ));
    let [shown] = &shown[..] else {
        panic!("{shown:?}");
    };
    assert_eq!(shown["document_count"], 2);
    assert_eq!(shown["fingerprint_count"], 1);
    assert_eq!(shown["nodes"][0]["state"], "serving");
    assert_eq!(shown["nodes"][0]["shards"].as_array().unwrap().len(), 256);

    let stored = objects(&simshard(&router, &["corpus", "recover", "--json"], ""));
    assert_eq!(stored[0]["name"], "default");
    assert_eq!(stored[0]["document_count"], 2);
}

/// By the worked example of `docs/design/mathematics.md`, and a layout whose first table is the only one.
#[test]
fn the_shards_of_a_fingerprint_are_those_of_its_tables_its_home_first() {
    let router = embedded();
    let create = |name, blocks, distance| {
        let layout = ["--blocks", blocks, "--distance", distance];
        simshard(
            &router,
            &[&["corpus", "create", name], &layout[..]].concat(),
            "",
        );
    };
    create("six", "6", "3");
    create("one", "1", "0");
    let shards = |corpus, more: &[&str]| {
        let args = [&["corpus", "shards", corpus, "5456993838078482869"], more].concat();
        simshard(&router, &args, "")
    };
    assert_eq!(
        shards("six", &["18446744073709551615"]),
        "fingerprint\tshards\n5456993838078482869\t4b,d9,be,bc\n18446744073709551615\tff\n"
    );
    assert_eq!(
        objects(&shards("six", &["--json"])),
        [json!({
            "fingerprint": "5456993838078482869",
            "home": "4b",
            "shards": ["4b", "d9", "be", "bc"],
        })]
    );
    assert_eq!(
        shards("one", &[]),
        "fingerprint\tshards\n5456993838078482869\t4b\n"
    );
}

fn share_of_a_node_that_holds_all() -> Value {
    json!({
        "node": "n1",
        "before": "00-ff",
        "after": "00-ff",
        "documents_before": 0,
        "documents_after": 0,
        "to_copy": 0,
        "documents_to_copy": 0,
        "bytes_to_copy": 0,
    })
}

#[test]
fn a_cluster_is_printed_as_json_too() {
    let mut cluster = ProcessCluster::start(Shape::of(1));
    let metadata = format!("file:{}", cluster.folder().join("metadata").display());
    let print = |verb: &str, more: &[&str]| {
        let verb: Vec<&str> = verb.split(' ').collect();
        let args = [&["cluster"], &verb[..], &["--metadata", &metadata], more];
        let output = run(BINARY, args.concat(), "");
        assert!(output.status.success(), "{}", log(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let nodes = || {
        let nodes = objects(&print("nodes", &["--json"]));
        let table = print("nodes", &[]);
        let row: Vec<&str> = table.lines().nth(1).unwrap().split('\t').collect();
        let answers = row[3] == "yes";
        assert!(answers || row[3] == "no", "{row:?}");
        let expected = json!({
            "node": row[0],
            "address": row[1],
            "store": row[2],
            "answers": answers,
            "waits": false,
            "drained": row[4] == "yes",
            "zone": null,
            "capacity": 1,
            "copy_rate": null,
        });
        assert_eq!(nodes, [expected]);
        answers
    };
    assert!(nodes());
    let shards = objects(&print("shards", &["--json"]));
    let table = print("shards", &[]);
    let row: Vec<&str> = table.lines().nth(1).unwrap().split('\t').collect();
    let expected = json!({
        "shards": row[0],
        "epoch": row[1],
        "in_sync": [row[2]],
        "hot": [row[3]],
        "learners": [],
        "target": [],
        "floor": null,
        "frozen": false,
        "settled": null,
    });
    assert_eq!(shards, [expected]);
    let plan = objects(&print("rebalance plan", &["--json"]));
    assert_eq!(plan, [share_of_a_node_that_holds_all()]);
    cluster.end_node(0, End::Killed);
    assert!(!nodes());
}

#[test]
fn a_cluster_status_tells_which_parts_are_well() {
    let mut cluster = ProcessCluster::start(Shape::of(1));
    let keys = cluster.folder().join("metadata");
    let metadata = format!("file:{}", keys.display());
    let status = |more: &[&str]| {
        let args = ["cluster", "status", "--metadata", &metadata];
        run(BINARY, [&args[..], more].concat(), "")
    };
    let parts = || {
        let output = status(&["--json"]);
        assert!(output.status.success(), "{}", log(&output));
        let parts = objects(&String::from_utf8(output.stdout).unwrap());
        let table = String::from_utf8(status(&[]).stdout).unwrap();
        let mut rows = table.lines().map(|line| line.split('\t'));
        assert!(rows.next().unwrap().eq(["part", "well", "details"]));
        for part in &parts {
            let mut row = rows.next().unwrap();
            assert_eq!(row.next(), part["part"].as_str());
            assert_eq!(row.next() == Some("yes"), part["well"] == true);
        }
        parts
    };
    let not_well = |parts: &[Value]| -> Vec<String> {
        let parts = parts.iter().filter(|part| part["well"] == false);
        parts
            .map(|part| part["part"].as_str().unwrap().to_owned())
            .collect()
    };
    let all = parts();
    assert_eq!(all.len(), 11);
    assert!(not_well(&all).is_empty(), "{all:?}");
    cluster.end_node(0, End::Killed);
    let all = parts();
    assert_eq!(not_well(&all), ["nodes", "searches", "changes"]);
    assert_eq!(all[1]["silent"], json!(["n1"]));
    assert_eq!(all[2]["unanswered"], "00-ff");
    assert_eq!(all[3]["stuck"], "00-ff");
    fs::remove_file(keys).unwrap();
    let output = status(&[]);
    assert_eq!(output.status.code(), Some(2), "{}", log(&output));
}

#[test]
fn a_data_directory_is_printed_as_json_too() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--data", data];
    let router = Process::serve(BINARY, serve);
    simshard(&router, &["insert", "--format", "tsv"], "a\t1\nb\t2\n");
    assert_eq!(router.terminate(), Some(0));
    let output = run(BINARY, ["storage", "inspect", data, "--json"], "");
    let printed = objects(&String::from_utf8(output.stdout).unwrap());
    let [inspected] = &printed[..] else {
        panic!("{printed:?}");
    };
    assert_eq!(inspected["shards"], "00-ff");
    assert!(inspected["corpora"].is_array(), "{inspected}");
    let segments = inspected["segments"].as_array().unwrap();
    let elements: u64 = segments
        .iter()
        .map(|one| one["elements"].as_u64().unwrap())
        .sum();
    assert!(
        elements > 0 || inspected["log_records"].as_u64() > Some(0),
        "{inspected}"
    );
}

#[test]
fn quiet_leaves_out_notes_and_keeps_warnings_and_errors() {
    let router = embedded();
    let url = router.url();
    let loud = run(BINARY, ["insert", "--router", url], "some text\n");
    assert!(log(&loud).contains("inserted 1 document"), "{}", log(&loud));
    for (args, input) in [
        (
            &["insert", "--quiet", "--router", url][..],
            "another text\n",
        ),
        (&["-q", "corpus", "create", "other", "--router", url], ""),
        (
            &["corpus", "delete", "other", "--router", url, "--quiet"],
            "",
        ),
        (&["hash", "--quiet", "--format", "lines"], "some text\n"),
    ] {
        let output = run(BINARY, args, input);
        assert!(output.status.success());
        assert_eq!(log(&output), "", "{args:?}");
    }
    let left_out = [
        "find-pairs",
        "--quiet",
        "--format",
        "tsv",
        "--skip-bad-lines",
    ];
    let output = run(BINARY, left_out, "a\t1\nb\n");
    let said = "skipped 1 bad line\n  <stdin>:2: \"b\": expected two columns, id<TAB>fingerprint, found 1\n";
    assert_eq!(log(&output), said);
    let output = run(
        BINARY,
        ["corpus", "show", "none", "--quiet", "--router", url],
        "",
    );
    assert!(log(&output).starts_with("error: there is no corpus none"));
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_line_says_now_and_then_how_far_a_command_is() {
    let mut command = Command::new(BINARY);
    command
        .args(["find-clusters"])
        .env("SIMSHARD_PROGRESS_SECONDS", "1");
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = pipes.stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"1\n").unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    assert!(line.starts_with("reading: "), "{line}");
    assert!(line.ends_with("/s, 1 s so far"), "{line}");
    drop(input);
    assert!(child.wait().unwrap().success());
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert!(
        rest.iter().all(|line| line.starts_with("reading: ")),
        "{rest:?}"
    );
}

/// A word as bash cuts it before it completes: before and behind each colon and each equals sign.
fn cut(word: &str) -> Vec<&str> {
    let is_sign = |c| c == ':' || c == '=';
    let parts = word.split_inclusive(is_sign).flat_map(|part| {
        let (text, sign) = part.split_at(part.len() - usize::from(part.ends_with(is_sign)));
        [text, sign]
    });
    parts.filter(|part| !part.is_empty()).collect()
}

/// What bash completes behind these words.
fn completed(router: &str, words: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    symlink(BINARY, folder.path().join("simshard")).unwrap();
    let path = format!(
        "{}:{}",
        folder.path().display(),
        std::env::var("PATH").unwrap()
    );
    let script = "source <(simshard completions bash)\n\
        COMP_WORDS=(simshard \"$@\"); COMP_CWORD=$#\n\
        _clap_complete_simshard simshard \"${COMP_WORDS[COMP_CWORD]}\"\n\
        printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut bash = Command::new("bash");
    bash.args(["-c", script, "bash"]).args(words);
    bash.env("PATH", path).env("SIMSHARD_ROUTER", router);
    let output = bash.output().unwrap();
    assert_eq!(log(&output), "");
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_shell_completes_the_corpora_of_the_running_router() {
    let router = embedded();
    simshard(&router, &["corpus", "create", "articles"], "");
    let both = ["articles", "default"];
    for words in [
        &["corpus", "show", ""][..],
        &["corpus", "delete", ""],
        &["corpus", "scan", ""],
        &["find", "--corpus", ""],
    ] {
        let mut found = completed(router.url(), words);
        found.retain(|one| !one.starts_with('-'));
        found.sort();
        assert_eq!(found, both, "{words:?}");
    }
    let nowhere = "http://127.0.0.1:1";
    assert_eq!(
        completed(router.url(), &["insert", "--corpus", "art"]),
        ["articles"]
    );
    let by_option = ["insert", "--router", router.url(), "--corpus", "art"];
    assert_eq!(completed(nowhere, &by_option), ["articles"]);
    for option in ["--router ", "--router="] {
        let line = format!("insert {option}{} --corpus art", router.url());
        let words: Vec<_> = line.split(' ').flat_map(cut).collect();
        assert_eq!(completed(nowhere, &words), ["articles"], "{words:?}");
    }
    assert_eq!(completed(nowhere, &["insert", "--corpus", "art"]), [""; 0]);
    assert!(completed(nowhere, &["find-f"]).contains(&"find-first".to_owned()));
}

#[test]
fn a_shell_completes_the_nodes_that_have_registered() {
    let cluster = ProcessCluster::start(Shape::of(2));
    let metadata = format!("file:{}", cluster.folder().join("metadata").display());
    let words = ["cluster", "force", "--metadata", &metadata, "--from", ""];
    assert_eq!(completed("http://127.0.0.1:1", &words), ["n1", "n2"]);
}

/// The table of the page on sizes is what the command says, and stays near it when the figures are measured anew.
#[test]
fn the_page_on_sizes_says_what_the_command_says() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operating.md");
    let page = fs::read_to_string(page).unwrap();
    let head = "| documents | ids, bytes | distance | replicas, hot | nodes of 16 GiB | memory | disk | restart of a node | in one process without `--data` |";
    let table = page.split_once(head).expect("a table of sizes").1;
    let rows = table.lines().skip(2).take_while(|row| row.starts_with('|'));
    let mut count = 0;
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let (replicas, hot) = cells[3].split_once(", ").unwrap();
        let args = [
            "size",
            "--json",
            "--documents",
            cells[0],
            "--id-bytes",
            cells[1],
            "--distance",
            cells[2],
            "--replicas",
            replicas,
            "--hot",
            hot,
        ];
        let output = run(BINARY, args, "");
        let found = &objects(&String::from_utf8(output.stdout).unwrap())[0];
        let near = |cell: &str, unit: &str, key: &str, scale: f64| {
            let said: f64 = cell.strip_suffix(unit).unwrap().parse().unwrap();
            let is = found[key].as_f64().unwrap() / scale;
            assert!((said / is - 1.0).abs() < 0.1, "{row}: {key} is {is}");
        };
        for key in ["documents", "memory_bytes", "disk_bytes_per_node"] {
            assert!(found[key].is_u64(), "{key}: {}", found[key]);
        }
        near(cells[4], "", "nodes", 1.0);
        near(cells[5], " GB", "memory_bytes", 1e9);
        near(cells[6], " GB", "disk_bytes", 1e9);
        near(cells[7], " s", "restart_seconds", 1.0);
        near(cells[8], " GB", "memory_bytes_without_data", 1e9);
        count += 1;
    }
    assert!(count >= 4);
}

#[test]
fn a_distance_that_nothing_has_is_named() {
    for args in [
        &["size", "--documents", "1e6", "--distance", "64"][..],
        &["find-pairs", "-d", "64"],
        &["dedup", "-d", "64", "-o", "out.jsonl"],
        &["find-clusters", "-d", "64", "-b", "5"],
    ] {
        let output = run(BINARY, args, "");
        let expected = "error: distance must be 0 to 63, not 64\n";
        assert_eq!(log(&output), expected, "{args:?}");
    }
}

#[test]
fn a_size_that_no_cluster_has_is_bad_input() {
    for args in [
        &["size", "--documents", "1e15"][..],
        &["size", "--documents", "1e6", "--hot", "4"],
        &["size", "--documents", "1e6", "--blocks", "3"],
    ] {
        let output = run(BINARY, args, "");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(log(&output).starts_with("error: "), "{}", log(&output));
    }
}
