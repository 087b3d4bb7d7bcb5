//! What a single process stored is adopted into a new cluster, in place, and gets more replicas there (R47).

use std::path::Path;

use simshard_client::{Client, Documents, Fingerprint, Queries, SearchSpec, v1};
use simshard_testkit::{Process, Waiting, binary, run, until};
use tokio::task::block_in_place;

const DOCUMENTS: u64 = 500;

fn all() -> Queries {
    let spread = |number: u64| Fingerprint(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    Queries::Fingerprints((0..DOCUMENTS).map(spread).collect())
}

/// A directory of `serve --data` that holds all documents, with ids, in a corpus of a recipe.
async fn fill(data: &str) {
    let server = Process::serve(
        binary(),
        ["serve", "--listen", "127.0.0.1:0", "--data", data],
    );
    let client = Client::new(server.url()).unwrap();
    let create = v1::CreateCorpusRequest {
        name: "pages".to_owned(),
        recipe: "words-v3".to_owned(),
        ..v1::CreateCorpusRequest::default()
    };
    client.create_corpus(create).await.unwrap();
    let documents = Documents {
        keys: all(),
        ids: (0..DOCUMENTS)
            .map(|number| format!("id {number}"))
            .collect(),
    };
    assert_eq!(client.insert("pages", documents).await.unwrap(), DOCUMENTS);
    assert_eq!(block_in_place(|| server.terminate()), Some(0));
}

/// Starts a node that registers itself, with a directory.
fn node(name: &str, data: &Path, metadata: &str) -> Waiting {
    let data = data.to_str().unwrap();
    let args = [
        "serve",
        "node",
        "--name",
        name,
        "--data",
        data,
        "--metadata",
        metadata,
    ];
    Waiting::start(binary(), [&args[..], &["--listen", "127.0.0.1:0"]].concat())
}

fn operate(args: &[&str], metadata: &str) -> Result<(), String> {
    let args = [&["cluster"], args, &["--metadata", metadata]].concat();
    let output = block_in_place(|| run(binary(), args, ""));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        Ok(())
    } else {
        Err(said)
    }
}

/// Whether all documents are found, with their ids.
async fn are_found(client: &Client) -> bool {
    let spec = SearchSpec {
        max_distance: Some(0),
        ..SearchSpec::default()
    };
    let Ok(found) = client.find_all("pages", all(), spec).await else {
        return false;
    };
    let ids = found.queries.iter().enumerate().map(|(number, query)| {
        let mut ids = query.matches.iter().flat_map(|found| &found.ids);
        ids.any(|id| *id == format!("id {number}"))
    });
    ids.filter(|is_there| *is_there).count() as u64 == DOCUMENTS
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_single_process_stored_goes_on_in_a_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (data, metadata) = (path("data"), format!("file:{}", path("keys")));
    fill(&data).await;
    let refused = operate(&["adopt", &path("nothing")], &metadata).unwrap_err();
    assert!(refused.contains("holds nothing that"), "{refused}");
    let first = node("n1", &Path::new(&data).join("local"), &metadata);
    operate(&["adopt", &data], &metadata).unwrap();
    let first = block_in_place(|| first.listening());
    let args = [
        "serve",
        "router",
        "--metadata",
        &metadata,
        "--listen",
        "127.0.0.1:0",
    ];
    let router = block_in_place(|| Process::serve(binary(), args));
    let client = Client::new(router.url()).unwrap();
    until("all documents are found", async || are_found(&client).await).await;
    let corpora = client.list_corpora().await.unwrap();
    assert_eq!(corpora[0].recipe, "words-v3");
    // Once more, or by the process of before: both are refused.
    let again = operate(&["adopt", &data], &metadata).unwrap_err();
    assert!(again.contains("there is a cluster already"), "{again}");
    // Another node takes a replica of all. The first one goes.
    let second = node("n2", &folder.path().join("second"), &metadata);
    let second = block_in_place(|| second.listening());
    operate(&["set-replication", "--replicas", "2"], &metadata).unwrap();
    block_in_place(|| first.kill());
    until("the other has all", async || are_found(&client).await).await;
    let serve = ["serve", "--data", &data, "--listen", "127.0.0.1:0"];
    let refused = block_in_place(|| run(binary(), serve, ""));
    assert_eq!(refused.status.code(), Some(2));
    drop(second);
}
