//! Every way to get a request wrong, and the code, reason and field it gets.

use simshard_client::{MAX_BATCH, MAX_ID_BYTES, MAX_MESSAGE_BYTES, Reason, v1};
use simshard_simhash::TextRecipe;
use simshard_testkit::TestCluster;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_types::StatusExt;
use v1::corpus_service_client::CorpusServiceClient;

type Stub = CorpusServiceClient<Channel>;

/// Makes a good request wrong.
type Spoil = fn(&mut v1::InsertRequest);

async fn start() -> (TestCluster, Stub) {
    let cluster = TestCluster::start(2).await;
    cluster.create_corpus("c", 5, 3).await;
    let channel = Channel::from_shared(cluster.url()).unwrap().connect_lazy();
    let stub = Stub::new(channel);
    (cluster, stub)
}

/// Holds an error against the reason, and the field that it must name.
fn check(what: &str, status: &Status, reason: Reason, field: Option<&str>) {
    assert_eq!(Reason::of(status), Some(reason), "{what}: {status:?}");
    assert_eq!(status.code(), reason.code(), "{what}");
    let violations = status.get_details_bad_request();
    let fields: Vec<String> = violations
        .into_iter()
        .flat_map(|request| request.field_violations)
        .map(|violation| violation.field)
        .collect();
    match field {
        Some(field) => assert!(
            fields.iter().any(|name| name == field),
            "{what}: {fields:?}"
        ),
        None => assert!(fields.is_empty(), "{what}: {fields:?}"),
    }
}

fn insert() -> v1::InsertRequest {
    v1::InsertRequest {
        corpus: "c".to_owned(),
        fingerprints: vec![1, 2],
        ..v1::InsertRequest::default()
    }
}

#[tokio::test]
async fn corpora_that_cannot_be_are_refused_by_field() {
    let (cluster, mut stub) = start().await;
    let new = |name: &str, blocks, distance, recipe: &str| v1::CreateCorpusRequest {
        name: name.to_owned(),
        blocks: Some(blocks),
        distance: Some(distance),
        recipe: recipe.to_owned(),
    };
    for (request, field) in [
        (new("x", 3, 3, ""), "distance"),
        (new("x", 3, 4, ""), "distance"),
        (new("x", 0, 0, ""), "blocks"),
        (new("x", 65, 3, ""), "blocks"),
        (new("x", 64, 32, ""), "blocks"),
        (new("x", u32::MAX, u32::MAX, ""), "blocks"),
        (new("x", 5, 3, "words-v9"), "recipe"),
        (new("", 5, 3, ""), "name"),
        (new("Großes", 5, 3, ""), "name"),
        (new(&"x".repeat(129), 5, 3, ""), "name"),
    ] {
        let what = format!("{request:?}");
        let status = stub.create_corpus(request).await.unwrap_err();
        check(&what, &status, Reason::InvalidRequest, Some(field));
    }
    let status = stub.create_corpus(new("c", 5, 3, "")).await.unwrap_err();
    check("twice", &status, Reason::CorpusExists, None);
    assert_eq!(cluster.client.list_corpora().await.unwrap().len(), 1);
    let request = v1::ListCorporaRequest {
        page_token: "No Name".to_owned(),
        ..Default::default()
    };
    let status = stub.list_corpora(request).await.unwrap_err();
    check("page", &status, Reason::InvalidRequest, Some("page_token"));
    cluster.stop().await;
}

#[tokio::test]
async fn an_unknown_corpus_is_not_found_by_any_request() {
    let (cluster, mut stub) = start().await;
    let name = || "other".to_owned();
    let statuses = [
        stub.get_corpus(v1::GetCorpusRequest { name: name() })
            .await
            .unwrap_err(),
        stub.delete_corpus(v1::DeleteCorpusRequest { name: name() })
            .await
            .unwrap_err(),
        stub.insert(v1::InsertRequest {
            corpus: name(),
            ..insert()
        })
        .await
        .unwrap_err(),
        stub.remove(v1::RemoveRequest {
            corpus: name(),
            ..Default::default()
        })
        .await
        .unwrap_err(),
        stub.find_first(v1::FindFirstRequest {
            corpus: name(),
            ..Default::default()
        })
        .await
        .unwrap_err(),
        stub.find_all(v1::FindAllRequest {
            corpus: name(),
            ..Default::default()
        })
        .await
        .unwrap_err(),
        stub.fingerprint(v1::FingerprintRequest {
            corpus: name(),
            ..Default::default()
        })
        .await
        .unwrap_err(),
    ];
    for status in statuses {
        check("unknown corpus", &status, Reason::CorpusNotFound, None);
    }
    cluster.stop().await;
}

#[tokio::test]
async fn wrong_columns_are_refused_and_nothing_is_stored() {
    let (cluster, mut stub) = start().await;
    let wrong: [(&str, Spoil); 6] = [
        ("ids", |request| request.ids = vec!["a".into()]),
        ("ids", |request| request.ids = vec!["a".into(); 3]),
        ("texts", |request| request.texts = vec!["t".into(); 2]),
        ("ids[1]", |request| {
            request.ids = vec!["a".into(), "b".repeat(MAX_ID_BYTES + 1)];
        }),
        ("fingerprints", |request| {
            request.fingerprints = vec![0; MAX_BATCH + 1];
        }),
        ("corpus", |request| request.corpus.clear()),
    ];
    for (field, change) in wrong {
        let mut request = insert();
        change(&mut request);
        let status = stub.insert(request).await.unwrap_err();
        check(field, &status, Reason::InvalidRequest, Some(field));
    }
    let shown = cluster.client.get_corpus("c").await.unwrap();
    assert_eq!(shown.document_count, Some(0));
    cluster.stop().await;
}

#[tokio::test]
async fn what_the_corpus_was_not_made_for_is_refused() {
    let (cluster, mut stub) = start().await;
    let request = v1::InsertRequest {
        recipe: "leonsim-3".into(),
        ..insert()
    };
    let status = stub.insert(request).await.unwrap_err();
    check("recipe", &status, Reason::RecipeMismatch, None);

    let request = v1::FindAllRequest {
        corpus: "c".into(),
        fingerprints: vec![1],
        max_distance: Some(4),
        ..Default::default()
    };
    let status = stub.find_all(request).await.unwrap_err();
    let field = Some("max_distance");
    check("distance", &status, Reason::InvalidRequest, field);
    cluster.stop().await;
}

/// A request is refused whole, and a stream ends at it; what came before stays.
#[tokio::test]
async fn a_text_without_fingerprint_is_refused_by_its_place() {
    let (cluster, mut stub) = start().await;
    let create = v1::CreateCorpusRequest {
        name: "words".into(),
        recipe: "words-v3".into(),
        ..Default::default()
    };
    cluster.client.create_corpus(create).await.unwrap();
    let batch = |texts: [&str; 3]| v1::InsertRequest {
        corpus: "words".into(),
        texts: texts.map(str::to_owned).to_vec(),
        ..Default::default()
    };
    let bad = || batch(["one", "two", "?!"]);
    let find_all = v1::FindAllRequest {
        corpus: "words".into(),
        texts: bad().texts,
        ..Default::default()
    };
    let fingerprint = v1::FingerprintRequest {
        corpus: "words".into(),
        texts: bad().texts,
        ..Default::default()
    };
    let good = batch(["a", "b", "c"]);
    let stream = [(1, good), (2, bad()), (3, batch(["d", "e", "f"]))];
    let stream = stream.map(|(sequence, batch)| v1::InsertStreamRequest {
        sequence,
        batch: Some(batch),
    });
    let answers = stub.insert_stream(tokio_stream::iter(stream)).await;
    let mut answers = answers.unwrap().into_inner();
    assert_eq!(answers.message().await.unwrap().unwrap().sequence, 1);
    for status in [
        stub.insert(bad()).await.unwrap_err(),
        stub.find_all(find_all).await.unwrap_err(),
        stub.fingerprint(fingerprint).await.unwrap_err(),
        answers.message().await.unwrap_err(),
    ] {
        check("text", &status, Reason::InvalidRequest, Some("texts[2]"));
        let said = "texts[2] has no fingerprint by recipe words-v3";
        assert!(status.message().contains(said), "{status:?}");
    }
    let scanned = stub.scan(v1::ScanRequest {
        corpus: "words".into(),
        ..Default::default()
    });
    let mut scanned = scanned.await.unwrap().into_inner();
    let mut documents = Vec::new();
    while let Some(page) = scanned.message().await.unwrap() {
        documents.extend(page.fingerprints);
    }
    let of = |text: &str| TextRecipe::default().fingerprint(text).unwrap().0;
    let is_stored = |text: &str| documents.contains(&of(text));
    assert!(["a", "b", "c"].into_iter().all(is_stored));
    assert!(!["one", "two"].into_iter().any(is_stored));
    cluster.stop().await;
}

/// As ever, so that nothing changes for old clients.
#[tokio::test]
async fn a_corpus_that_is_created_without_a_recipe_has_words_v1() {
    let (cluster, mut stub) = start().await;
    let request = v1::FingerprintRequest {
        corpus: "c".into(),
        texts: vec!["?!".into()],
        ..Default::default()
    };
    let answer = stub.fingerprint(request).await.unwrap().into_inner();
    assert_eq!(answer.recipe, "words-v1");
    assert_eq!(answer.fingerprints, [0]);
    cluster.stop().await;
}

#[tokio::test]
async fn batches_at_their_limits_pass() {
    let (cluster, mut stub) = start().await;
    let largest = v1::InsertRequest {
        fingerprints: (0..MAX_BATCH as u64).collect(),
        ids: vec!["id".into(); MAX_BATCH],
        ..insert()
    };
    let inserted = stub.insert(largest).await.unwrap().into_inner();
    assert_eq!(inserted.inserted_count, MAX_BATCH as u64);
    let longest = v1::InsertRequest {
        ids: vec!["x".repeat(MAX_ID_BYTES), String::new()],
        ..insert()
    };
    stub.insert(longest).await.unwrap();
    stub.insert(v1::InsertRequest {
        fingerprints: vec![],
        ..insert()
    })
    .await
    .unwrap();
    cluster.stop().await;
}

#[tokio::test]
async fn a_message_over_the_limit_is_an_invalid_argument() {
    let (cluster, mut stub) = start().await;
    let huge = || v1::InsertRequest {
        fingerprints: vec![],
        texts: vec!["x".repeat(MAX_MESSAGE_BYTES)],
        ..insert()
    };
    let status = stub.insert(huge()).await.unwrap_err();
    check("unary", &status, Reason::MessageTooLarge, None);

    let request = v1::InsertStreamRequest {
        sequence: 1,
        batch: Some(huge()),
    };
    let answers = stub.insert_stream(tokio_stream::iter([request])).await;
    let status = match answers {
        Ok(answers) => answers.into_inner().message().await.unwrap_err(),
        Err(status) => status,
    };
    check("stream", &status, Reason::MessageTooLarge, None);
    assert_eq!(status.code(), Code::InvalidArgument);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_over_the_limit_says_how_to_ask_less() {
    let (cluster, mut stub) = start().await;
    for part in 0..20_u32 {
        let ids = (0..1000)
            .map(|id| format!("{part}-{id}-{}", "x".repeat(900)))
            .collect();
        let request = v1::InsertRequest {
            fingerprints: vec![7; 1000],
            ids,
            ..insert()
        };
        stub.insert(request).await.unwrap();
    }
    let find = |max_ids| v1::FindAllRequest {
        corpus: "c".into(),
        fingerprints: vec![7],
        max_ids,
        ..Default::default()
    };
    let status = stub.find_all(find(0)).await.unwrap_err();
    check("too large", &status, Reason::AnswerTooLarge, None);
    let found = stub
        .find_all(find(5))
        .await
        .unwrap()
        .into_inner()
        .matches
        .unwrap();
    assert_eq!(found.document_counts, [20_000]);
    assert_eq!(found.id_counts, [5]);
    cluster.stop().await;
}

#[tokio::test]
async fn an_error_ends_a_stream_after_the_answers_before_it() {
    let (cluster, mut stub) = start().await;
    let wrong = v1::InsertRequest {
        ids: vec!["a".into()],
        ..insert()
    };
    let other = v1::InsertRequest {
        fingerprints: vec![3, 4],
        ..insert()
    };
    let batches = [insert(), wrong, other].into_iter().zip(5..);
    let requests = batches.map(|(batch, sequence)| v1::InsertStreamRequest {
        sequence,
        batch: Some(batch),
    });
    let requests: Vec<_> = requests.collect();
    let mut answers = stub
        .insert_stream(tokio_stream::iter(requests))
        .await
        .unwrap()
        .into_inner();
    let first = answers.message().await.unwrap().unwrap();
    assert_eq!(first.sequence, 5);
    assert_eq!(first.result.unwrap().inserted_count, 2);
    let status = answers.message().await.unwrap_err();
    check("in a stream", &status, Reason::InvalidRequest, Some("ids"));
    cluster.stop().await;
}

/// Texts of a byte each become fingerprints of eight.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_largest_message_of_short_texts_passes() {
    let (cluster, mut stub) = start().await;
    let request = v1::InsertRequest {
        fingerprints: vec![],
        texts: vec![String::new(); MAX_BATCH],
        ids: (0..MAX_BATCH).map(|id| format!("{id:0250}")).collect(),
        ..insert()
    };
    let inserted = stub.insert(request).await.unwrap().into_inner();
    assert_eq!(inserted.inserted_count, MAX_BATCH as u64);
    cluster.stop().await;
}

/// Only fingerprints can be stored in, or searched for in, a corpus of pre-computed features.
#[tokio::test]
async fn texts_are_refused_where_the_recipe_takes_none() {
    let (cluster, mut stub) = start().await;
    let request = v1::CreateCorpusRequest {
        name: "hashed".to_owned(),
        recipe: "features".to_owned(),
        ..v1::CreateCorpusRequest::default()
    };
    cluster.client.create_corpus(request).await.unwrap();
    let corpus = || "hashed".to_owned();
    let texts = || vec!["one two".to_owned()];

    let insert = |fingerprints, texts| v1::InsertRequest {
        corpus: corpus(),
        recipe: "features".to_owned(),
        fingerprints,
        texts,
        ..v1::InsertRequest::default()
    };
    let find = v1::FindAllRequest {
        corpus: corpus(),
        texts: texts(),
        ..v1::FindAllRequest::default()
    };
    let fingerprint = v1::FingerprintRequest {
        corpus: corpus(),
        texts: texts(),
        ..v1::FingerprintRequest::default()
    };
    for (what, status) in [
        (
            "insert",
            stub.insert(insert(Vec::new(), texts())).await.err(),
        ),
        ("find", stub.find_all(find).await.err()),
        ("fingerprint", stub.fingerprint(fingerprint).await.err()),
    ] {
        check(
            what,
            &status.unwrap(),
            Reason::InvalidRequest,
            Some("texts"),
        );
    }
    let answer = stub.insert(insert(vec![1, 2], Vec::new())).await.unwrap();
    assert_eq!(answer.into_inner().inserted_count, 2);
    cluster.stop().await;
}
