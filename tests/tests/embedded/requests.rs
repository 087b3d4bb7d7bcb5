//! What the requests of the public interface do when all is well.

use std::num::NonZeroU32;

use simshard_client::{Documents, Fingerprint, Queries, SearchSpec, v1};
use simshard_proto::matches_into;
use simshard_simhash::Recipe;
use simshard_simhash::synthetic::{self, Data};
use simshard_testkit::{Oracle, TestCluster};
use tonic::transport::Channel;
use v1::corpus_service_client::CorpusServiceClient;

type Stub = CorpusServiceClient<Channel>;

async fn start() -> (TestCluster, Stub) {
    let cluster = TestCluster::start(3).await;
    cluster.create_corpus("c", 5, 3).await;
    let channel = Channel::from_shared(cluster.url()).unwrap().connect_lazy();
    (cluster, Stub::new(channel))
}

fn texts(texts: &[&str]) -> Queries {
    Queries::Texts(texts.iter().map(|&text| text.to_owned()).collect())
}

#[tokio::test]
async fn texts_become_fingerprints_by_the_recipe_of_the_corpus() {
    let (cluster, mut stub) = start().await;
    let listed = Recipe::LISTED.into_iter();
    for recipe in listed.filter_map(|recipe| recipe.for_texts().ok()) {
        let name = recipe.to_string();
        let request = v1::CreateCorpusRequest {
            name: name.clone(),
            recipe: name.clone(),
            ..Default::default()
        };
        cluster.client.create_corpus(request).await.unwrap();
        let text = "The quick brown fox jumps over the lazy dog";
        let expected = recipe.fingerprint(text).unwrap();

        let request = v1::FingerprintRequest {
            corpus: name.clone(),
            recipe: name.clone(),
            texts: vec![text.to_owned()],
        };
        let answer = stub.fingerprint(request).await.unwrap().into_inner();
        assert_eq!(answer.fingerprints, [expected.0]);
        assert_eq!(answer.recipe, name);

        let documents = Documents {
            keys: texts(&[text]),
            ids: vec!["fox".to_owned()],
        };
        cluster.client.insert(&name, documents).await.unwrap();
        let options = SearchSpec::default();
        let found = cluster.client.find_all(&name, texts(&[text]), options);
        let found = found.await.unwrap().queries.remove(0);
        assert_eq!(
            (found.query, &found.matches[0].ids[..]),
            (expected, &["fox".to_owned()][..])
        );
    }
    cluster.stop().await;
}

#[tokio::test]
async fn inserting_and_removing_twice_changes_nothing() {
    let (cluster, _) = start().await;
    let documents = || Documents {
        keys: Queries::Fingerprints(vec![Fingerprint(1), Fingerprint(1), Fingerprint(1)]),
        ids: vec!["a".to_owned(), "b".to_owned(), "a".to_owned()],
    };
    assert_eq!(cluster.client.insert("c", documents()).await.unwrap(), 2);
    assert_eq!(cluster.client.insert("c", documents()).await.unwrap(), 0);
    assert_eq!(cluster.client.remove("c", documents()).await.unwrap(), 2);
    assert_eq!(cluster.client.remove("c", documents()).await.unwrap(), 0);
    cluster.stop().await;
}

/// A page that many sites serve: its ids are read part by part.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fingerprint_of_many_documents_lists_them_all() {
    let (cluster, _) = start().await;
    let mut ids: Vec<String> = (0..20_000).map(|id| format!("{id:05}")).collect();
    let documents = Documents {
        keys: Queries::Fingerprints(vec![Fingerprint(1); ids.len()]),
        ids: ids.clone(),
    };
    cluster.client.insert("c", documents).await.unwrap();
    for most in [0, 4095, 4096, 4097, 16_385, 20_000, 20_001] {
        let options = SearchSpec {
            max_ids: NonZeroU32::new(most),
            ..SearchSpec::default()
        };
        let query = Queries::Fingerprints(vec![Fingerprint(0)]);
        let found = cluster.client.find_all("c", query, options).await.unwrap();
        let [found] = &found.queries[0].matches[..] else {
            panic!("{found:?}");
        };
        assert_eq!(found.document_count, 20_000);
        ids.sort_unstable();
        let listed = if most == 0 { usize::MAX } else { most as usize };
        let listed = listed.min(ids.len());
        assert!(found.ids == ids[..listed], "max_ids {most}");
    }
    cluster.stop().await;
}

#[tokio::test]
async fn corpora_are_listed_by_name_page_after_page() {
    let (cluster, mut stub) = start().await;
    for name in ["b", "a", "e", "d"] {
        cluster.create_corpus(name, 4, 3).await;
    }
    let mut names = Vec::new();
    let mut request = v1::ListCorporaRequest {
        page_size: 2,
        page_token: String::new(),
    };
    loop {
        let page = stub
            .list_corpora(request.clone())
            .await
            .unwrap()
            .into_inner();
        assert!(page.corpora.len() <= 2);
        names.push(
            page.corpora
                .into_iter()
                .map(|corpus| corpus.name)
                .collect::<Vec<_>>(),
        );
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    assert_eq!(names, [vec!["a", "b"], vec!["c", "d"], vec!["e"]]);

    let shown = cluster.client.get_corpus("a").await.unwrap();
    let corpus = shown.corpus.unwrap();
    assert_eq!((corpus.blocks, corpus.distance), (4, 3));
    assert_eq!(corpus.recipe, "words-v1");
    assert!(corpus.create_time.unwrap().seconds > 1_700_000_000);
    cluster.stop().await;
}

#[tokio::test]
async fn a_corpus_made_again_is_empty() {
    let (cluster, _) = start().await;
    let documents = || Documents {
        keys: Queries::Fingerprints(vec![Fingerprint(9)]),
        ids: vec![],
    };
    cluster.client.insert("c", documents()).await.unwrap();
    cluster.client.delete_corpus("c").await.unwrap();
    cluster.create_corpus("c", 6, 2).await;
    let found = cluster
        .client
        .find_all("c", documents().keys, SearchSpec::default());
    assert!(found.await.unwrap().queries[0].matches.is_empty());
    assert_eq!(cluster.client.insert("c", documents()).await.unwrap(), 1);
    cluster.stop().await;
}

/// Batches of a set, and the queries of each.
fn batches() -> Vec<(u64, Vec<u64>)> {
    let set = Data::Clustered.fingerprints(3_000, 21);
    let queries = synthetic::queries(&set, 3_000, 3, 22);
    let values = [set, queries].concat();
    let chunks = values.chunks(300).zip(100..);
    let batch = |(chunk, sequence): (&[Fingerprint], u64)| {
        (sequence, chunk.iter().map(|value| value.0).collect())
    };
    chunks.map(batch).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streamed_changes_count_as_unary_ones_do() {
    let (cluster, mut stub) = start().await;
    let requests = batches().into_iter().map(|(sequence, fingerprints)| {
        let batch = Some(v1::InsertRequest {
            corpus: "c".to_owned(),
            fingerprints,
            ..Default::default()
        });
        v1::InsertStreamRequest { sequence, batch }
    });
    let requests: Vec<_> = requests.collect();
    let answers = stub.insert_stream(tokio_stream::iter(requests)).await;
    let mut answers = answers.unwrap().into_inner();
    let (mut inserted, mut sequences) = (0, Vec::new());
    while let Some(answer) = answers.message().await.unwrap() {
        inserted += answer.result.unwrap().inserted_count;
        sequences.push(answer.sequence);
    }
    assert_eq!(sequences, (100..120).collect::<Vec<_>>());
    let shown = cluster.client.get_corpus("c").await.unwrap();
    assert_eq!(shown.document_count, Some(inserted));

    let requests = batches().into_iter().map(|(sequence, fingerprints)| {
        let batch = Some(v1::RemoveRequest {
            corpus: "c".to_owned(),
            fingerprints,
            ..Default::default()
        });
        v1::RemoveStreamRequest { sequence, batch }
    });
    let requests: Vec<_> = requests.collect();
    let answers = stub.remove_stream(tokio_stream::iter(requests)).await;
    let mut answers = answers.unwrap().into_inner();
    let mut removed = 0;
    while let Some(answer) = answers.message().await.unwrap() {
        removed += answer.result.unwrap().removed_count;
    }
    assert_eq!(removed, inserted);
    let shown = cluster.client.get_corpus("c").await.unwrap();
    assert_eq!(shown.document_count, Some(0));
    cluster.stop().await;
}

/// Rows say what the columns say, match by match.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn matches_come_as_rows_where_they_are_asked_for() {
    let (cluster, mut stub) = start().await;
    let stored: Vec<Fingerprint> = Data::Clustered.fingerprints(3_000, 22);
    let ids = (0..stored.len()).map(|place| format!("id {}", place % 700));
    let documents = Documents {
        ids: ids.collect(),
        keys: Queries::Fingerprints(stored.clone()),
    };
    cluster.client.insert("c", documents).await.unwrap();
    let all = v1::FindAllRequest {
        corpus: "c".to_owned(),
        fingerprints: stored.iter().take(200).map(|one| one.0 ^ 1).collect(),
        limit: 2,
        max_ids: 2,
        ..Default::default()
    };
    let columns = stub.find_all(all.clone()).await.unwrap().into_inner();
    let matches = columns.matches.unwrap();
    let rows = v1::FindAllRequest {
        result_form: v1::ResultForm::Rows.into(),
        ..all.clone()
    };
    let rows = stub.find_all(rows).await.unwrap().into_inner();
    let places = (0..).zip(&matches.truncated);
    let truncated = places.filter(|(_, truncated)| **truncated);
    let truncated: Vec<u32> = truncated.map(|(place, _)| place).collect();
    assert!(!truncated.is_empty() && truncated.len() < 200);
    assert_eq!(rows.truncated_queries, truncated);
    assert_eq!((rows.queries, rows.matches), (columns.queries, None));
    let expected = matches_into(matches, 200).unwrap().into_iter();
    let expected: Vec<v1::Match> = expected.map(v1::Match::from).collect();
    assert!(expected.len() >= 200);
    assert_eq!(rows.rows, expected);

    let first = v1::FindFirstRequest {
        corpus: "c".to_owned(),
        fingerprints: all.fingerprints,
        max_ids: 2,
        result_form: v1::ResultForm::Rows.into(),
        ..Default::default()
    };
    let first = stub.find_first(first).await.unwrap().into_inner();
    assert_eq!(first.matches, None);
    let mut nearest = expected;
    nearest.dedup_by_key(|one| one.query);
    assert_eq!(first.rows, nearest);

    let unknown = v1::FindFirstRequest {
        corpus: "c".to_owned(),
        result_form: 7,
        ..Default::default()
    };
    let status = stub.find_first(unknown).await.unwrap_err();
    let said = "result_form is 7: 1 means columns, and 2 rows";
    assert_eq!(status.message(), said);
}

/// They are what brute force finds, batch by batch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_come_in_streams_too() {
    let (cluster, mut stub) = start().await;
    let stored: Vec<Fingerprint> = Data::Clustered.fingerprints(2_000, 23);
    let ids: Vec<String> = (0..stored.len())
        .map(|place| format!("{place:04}"))
        .collect();
    let mut oracle = Oracle::default();
    for (fingerprint, id) in stored.iter().zip(&ids) {
        oracle.insert(*fingerprint, id);
    }
    let keys = Queries::Fingerprints(stored.clone());
    let documents = Documents { keys, ids };
    cluster.client.insert("c", documents).await.unwrap();
    let queries = synthetic::queries(&stored, 400, 3, 24);
    let batches: Vec<&[Fingerprint]> = queries.chunks(70).collect();
    let requests = (0..).zip(&batches).map(|(sequence, batch)| {
        let batch = Some(v1::FindAllRequest {
            corpus: "c".to_owned(),
            fingerprints: batch.iter().map(|query| query.0).collect(),
            result_form: v1::ResultForm::Rows.into(),
            ..Default::default()
        });
        v1::FindAllStreamRequest { sequence, batch }
    });
    let requests: Vec<_> = requests.collect();
    let answers = stub.find_all_stream(tokio_stream::iter(requests)).await;
    let mut answers = answers.unwrap().into_inner();
    for batch in batches {
        let answer = answers.message().await.unwrap().unwrap().result.unwrap();
        let right = (0..).zip(oracle.find_each(batch, 3));
        let right = right.flat_map(|(query, found)| {
            let matches = found.matches.into_iter();
            matches.map(move |one| v1::Match {
                query,
                fingerprint: one.fingerprint.0,
                distance: one.distance,
                document_count: one.document_count,
                ids: one.ids,
            })
        });
        assert_eq!(answer.rows, right.collect::<Vec<_>>());
        assert_eq!(answer.matches, None);
    }
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streamed_searches_answer_as_unary_ones_do() {
    let (cluster, mut stub) = start().await;
    let stored: Vec<Fingerprint> = Data::Clustered.fingerprints(3_000, 21);
    let keys = Queries::Fingerprints(stored);
    let documents = Documents { keys, ids: vec![] };
    cluster.client.insert("c", documents).await.unwrap();

    let all = |fingerprints| v1::FindAllRequest {
        corpus: "c".to_owned(),
        fingerprints,
        ..Default::default()
    };
    let requests = batches().into_iter().map(|(sequence, fingerprints)| {
        let batch = Some(all(fingerprints));
        v1::FindAllStreamRequest { sequence, batch }
    });
    let requests: Vec<_> = requests.collect();
    let answers = stub.find_all_stream(tokio_stream::iter(requests)).await;
    let mut answers = answers.unwrap().into_inner();
    for (sequence, fingerprints) in batches() {
        let streamed = answers.message().await.unwrap().unwrap();
        let unary = stub.find_all(all(fingerprints)).await.unwrap().into_inner();
        assert_eq!(
            (streamed.sequence, streamed.result),
            (sequence, Some(unary))
        );
    }

    let first = |fingerprints| v1::FindFirstRequest {
        corpus: "c".to_owned(),
        fingerprints,
        ..Default::default()
    };
    let requests = batches().into_iter().map(|(sequence, fingerprints)| {
        let batch = Some(first(fingerprints));
        v1::FindFirstStreamRequest { sequence, batch }
    });
    let requests: Vec<_> = requests.collect();
    let answers = stub.find_first_stream(tokio_stream::iter(requests)).await;
    let mut answers = answers.unwrap().into_inner();
    for (sequence, fingerprints) in batches() {
        let streamed = answers.message().await.unwrap().unwrap();
        let unary = stub
            .find_first(first(fingerprints))
            .await
            .unwrap()
            .into_inner();
        assert_eq!(
            (streamed.sequence, streamed.result),
            (sequence, Some(unary))
        );
    }
    cluster.stop().await;
}

/// The client asks in halves, and again in halves, until the answers fit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_too_large_for_one_message_come_in_parts() {
    let (cluster, _) = start().await;
    for part in 0..6_u32 {
        let ids = (0..1000).map(|id| format!("{part}-{id}-{}", "x".repeat(900)));
        let documents = Documents {
            keys: Queries::Fingerprints(vec![Fingerprint(7); 1000]),
            ids: ids.collect(),
        };
        cluster.client.insert("c", documents).await.unwrap();
    }
    let queries = || Queries::Fingerprints(vec![Fingerprint(7); 9]);
    let options = SearchSpec::default();
    let all = cluster
        .client
        .find_all("c", queries(), options)
        .await
        .unwrap();
    let first = cluster
        .client
        .find_first("c", queries(), options)
        .await
        .unwrap();
    assert_eq!(all, first);
    assert_eq!(all.queries.len(), 9);
    assert!(
        all.queries
            .iter()
            .all(|query| query.matches[0].ids.len() == 6_000)
    );
    cluster.stop().await;
}
