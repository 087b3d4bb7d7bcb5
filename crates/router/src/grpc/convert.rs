//! From domain types to responses.

use std::collections::BTreeMap;

use prost_types::Timestamp;
use simshard_cluster::{Corpora, CorpusName, CorpusRecord, CorpusState, Node};
use simshard_proto::v1::ResultForm;
use simshard_proto::{MAX_MESSAGE_BYTES, rows_of, shards_from, v1 as pb};
use simshard_topology::{NodeId, ShardId, ShardSet};
use tonic::Status;

use crate::decode::Page;
use crate::error::RouterError;
use crate::offload::offload;
use crate::router::{CorpusContents, FindOutcome, StoredCorpus};

pub(super) fn corpus(record: &CorpusRecord) -> pb::Corpus {
    pb::Corpus {
        name: record.name.to_string(),
        blocks: record.blocks,
        distance: record.distance,
        recipe: record.recipe.clone(),
        create_time: Some(Timestamp::from(record.create_time)),
        state: state(record.state).into(),
    }
}

const fn state(state: CorpusState) -> pb::CorpusState {
    match state {
        CorpusState::Creating => pb::CorpusState::Creating,
        CorpusState::Live => pb::CorpusState::Live,
        CorpusState::Deleting => pb::CorpusState::Deleting,
    }
}

pub(super) fn get_corpus_response(
    record: &CorpusRecord,
    contents: CorpusContents,
    shards: impl Fn(&Node) -> ShardSet,
    cold: impl Fn(&Node) -> ShardSet,
) -> pb::GetCorpusResponse {
    // Each shard once, whichever replica tells of it. All shards must be told of.
    let total = |counts: fn(&simshard_proto::shard::v1::DescribeCorpusResponse) -> &[u64]| {
        let answers = contents
            .iter()
            .filter_map(|(_, answer)| answer.as_ref().ok());
        let by_shard: BTreeMap<u32, u64> = answers
            .flat_map(|answer| {
                answer
                    .shards
                    .iter()
                    .copied()
                    .zip(counts(answer).iter().copied())
            })
            .collect();
        (by_shard.len() == ShardId::COUNT).then(|| by_shard.values().sum())
    };
    let document_count = total(|answer| &answer.home_document_counts);
    let fingerprint_count = total(|answer| &answer.home_fingerprint_counts);
    let nodes = contents.into_iter().map(|(node, answer)| {
        let cold = cold(&node);
        let (state, shards, document_counts) = match answer {
            Ok(answer) => (
                pb::NodeState::Serving,
                answer.shards,
                answer.document_counts,
            ),
            Err(state) => {
                let shards = shards(&node).difference(&cold);
                (state, shards_from(shards), Vec::new())
            }
        };
        // A node may have made tables since the layout was read.
        let mut cold_shards = shards_from(cold);
        cold_shards.retain(|shard| !shards.contains(shard));
        pb::NodeShards {
            node: node.id.to_string(),
            address: node.address,
            state: state.into(),
            shards,
            document_counts,
            cold_shards,
        }
    });
    pb::GetCorpusResponse {
        corpus: Some(corpus(record)),
        document_count,
        fingerprint_count,
        nodes: nodes.collect(),
    }
}

pub(super) fn stored_corpus(stored: StoredCorpus) -> pb::StoredCorpus {
    pb::StoredCorpus {
        uid: stored.uid.to_string(),
        name: stored.name.map(|name| name.to_string()).unwrap_or_default(),
        blocks: stored.blocks,
        distance: stored.distance,
        document_count: stored.documents,
        nodes: stored.nodes.iter().map(NodeId::to_string).collect(),
    }
}

pub(super) fn list_corpora_response(
    corpora: &Corpora,
    page: &Page,
    may_know: impl Fn(&CorpusName) -> bool,
) -> pb::ListCorporaResponse {
    let after = |record: &&CorpusRecord| Some(&record.name) > page.after.as_ref();
    let known = corpora.records().filter(|record| may_know(&record.name));
    let mut rest = known.filter(after);
    let corpora: Vec<pb::Corpus> = rest.by_ref().take(page.size).map(corpus).collect();
    let last = corpora.last().map(|corpus| corpus.name.clone());
    pb::ListCorporaResponse {
        next_page_token: rest.next().and(last).unwrap_or_default(),
        corpora,
    }
}

pub(super) async fn find_all_response(
    queries: Vec<u64>,
    found: FindOutcome,
    form: ResultForm,
) -> Result<pb::FindAllResponse, Status> {
    let mut response = pb::FindAllResponse {
        completeness: found.completeness,
        ..pb::FindAllResponse::default()
    };
    if form == ResultForm::Rows {
        let truncated = (0..).zip(&found.matches.truncated);
        let truncated = truncated.filter(|(_, truncated)| **truncated);
        response.truncated_queries = truncated.map(|(place, _)| place).collect();
        response.rows = rows(found.matches, queries.len()).await?;
    } else {
        response.matches = Some(found.matches);
    }
    response.queries = queries;
    fits(response)
}

pub(super) async fn find_first_response(
    queries: Vec<u64>,
    found: FindOutcome,
    form: ResultForm,
) -> Result<pb::FindFirstResponse, Status> {
    let mut matches = found.matches;
    let mut response = pb::FindFirstResponse {
        completeness: found.completeness,
        ..pb::FindFirstResponse::default()
    };
    if form == ResultForm::Rows {
        response.rows = rows(matches, queries.len()).await?;
    } else {
        // That there are others, farther away, cuts nothing from the nearest.
        matches.truncated.fill(false);
        response.matches = Some(matches);
    }
    response.queries = queries;
    fits(response)
}

/// The bytes that a match takes as a message, at least: its tag, its length, the fingerprint and the number of documents.
const LEAST_ROW_BYTES: usize = 13;

/// A message a match. Refuses those that are no answer before they are made: each takes more memory than on the wire.
async fn rows(matches: pb::Matches, queries: usize) -> Result<Vec<pb::Match>, RouterError> {
    let count = matches.fingerprints.len();
    let ids: usize = matches.ids.iter().map(String::len).sum();
    if count * LEAST_ROW_BYTES + ids > MAX_MESSAGE_BYTES {
        return Err(RouterError::AnswerTooLarge);
    }
    let rows = offload(count, move || rows_of(matches, queries)).await?;
    rows.map_err(|_| RouterError::Fault)
}

/// Refuses a response over the largest message.
fn fits<M: prost::Message>(response: M) -> Result<M, Status> {
    // A streamed response wraps this one in a few bytes more.
    const WRAPPER: usize = 64;
    if response.encoded_len() + WRAPPER <= MAX_MESSAGE_BYTES {
        Ok(response)
    } else {
        Err(RouterError::AnswerTooLarge.into())
    }
}
