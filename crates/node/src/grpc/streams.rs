//! The streams about whole corpora. An answer is asked for when the one before is on its way.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::future::ready;
use futures_util::{Stream, StreamExt, stream};
use prost::Message;
use simshard_proto::shard::v1 as pb;
use simshard_proto::{Violations, check_batch, shards_into};
use simshard_simhash::PairsWanted;
use simshard_storage::Documents;
use tokio::sync::oneshot;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Response, Status, Streaming};

use super::decode::{copy_ranges, copy_request, fingerprints, target};
use crate::engine::{CopyItem, Engine, PairQuery};
use crate::error::NodeError;

pub(super) type AnswerStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

pub(super) async fn scan(
    engine: &Arc<Engine>,
    request: pb::ScanRequest,
) -> Result<Response<AnswerStream<pb::ScanResponse>>, Status> {
    let target = target(request.target, &request.shards)?;
    let pages = engine.scan(target, shards_into(&request.shards)?).await?;
    Ok(answers(pages, |page| {
        let (fingerprints, ids) = columns(page);
        pb::ScanResponse { fingerprints, ids }
    }))
}

pub(super) async fn find_pairs(
    engine: &Arc<Engine>,
    request: pb::FindPairsRequest,
) -> Result<Response<AnswerStream<pb::FindPairsResponse>>, Status> {
    let query = PairQuery {
        target: target(request.target, &request.shards)?,
        shards: shards_into(&request.shards)?,
        max_distance: request.max_distance,
        wanted: if request.links_only {
            PairsWanted::Links
        } else {
            PairsWanted::All
        },
    };
    Ok(answers(engine.pairs(query).await?, |pairs| {
        pb::FindPairsResponse {
            smaller: pairs.iter().map(|pair| pair.a.0).collect(),
            larger: pairs.iter().map(|pair| pair.b.0).collect(),
        }
    }))
}

pub(super) async fn look_up(
    engine: &Arc<Engine>,
    request: pb::LookUpRequest,
) -> Result<Response<AnswerStream<pb::LookUpResponse>>, Status> {
    let target = target(request.target, &request.shards)?;
    let shards = shards_into(&request.shards)?;
    let mut violations = Violations::default();
    check_batch("fingerprints", request.fingerprints.len(), &mut violations);
    violations.check()?;
    let pages = engine
        .look_up(target, shards, fingerprints(request.fingerprints))
        .await?;
    Ok(answers(pages, |page| {
        let (fingerprints, ids) = columns(page);
        pb::LookUpResponse { fingerprints, ids }
    }))
}

pub(super) async fn copy_shard(
    engine: &Arc<Engine>,
    mut requests: Streaming<pb::CopyShardRequest>,
) -> Result<Response<AnswerStream<pb::CopyShardResponse>>, Status> {
    let request = requests.message().await?.unwrap_or_default();
    let (asked, ranges) = oneshot::channel();
    let source = engine.copy_source(copy_request(&request)?, ranges).await?;
    // Where the learner goes, the source hears of it.
    tokio::spawn(async move {
        if let Ok(Some(request)) = requests.message().await
            && let Ok(ranges) = copy_ranges(&request)
        {
            let _ = asked.send(ranges);
        }
    });
    let corpora = source.corpora.iter().map(|corpus| pb::HeldCorpus {
        corpus_uid: corpus.uid.to_string(),
        blocks: corpus.layout.blocks(),
        distance: corpus.layout.distance(),
        home_document_count: 0,
    });
    let first = pb::CopyShardResponse {
        source: Some(pb::CopySource {
            epoch_number: source.pin.at.number,
            epoch_generation: source.pin.at.generation,
            corpora: corpora.collect(),
            compares: request.compares,
            is_of_lowest_shard: request.lowest_shard.is_some(),
        }),
        ..pb::CopyShardResponse::default()
    };
    let pace = (!request.compares).then(|| Arc::clone(&engine.copy_pace().sent));
    let parts = ReceiverStream::new(source.parts).then(move |part| {
        let part = part.map(pb::CopyShardResponse::from);
        let pace = pace.clone();
        async move {
            if let (Some(pace), Ok(part)) = (pace, &part) {
                pace.take(part.encoded_len()).await;
            }
            part.map_err(Status::from)
        }
    });
    let first = stream::once(ready(Ok(first)));
    Ok(Response::new(Box::pin(first.chain(parts))))
}

impl From<CopyItem> for pb::CopyShardResponse {
    fn from(item: CopyItem) -> Self {
        let part = match item {
            CopyItem::Part(part) => part,
            CopyItem::RangesEnded => {
                return Self {
                    ranges_ended: true,
                    ..Self::default()
                };
            }
            CopyItem::Ended => {
                return Self {
                    ended: true,
                    ..Self::default()
                };
            }
        };
        let bare = part.ids.iter().all(String::is_empty);
        let fingerprints = part.fingerprints.iter().map(|value| value.0);
        let versions = part.versions.iter().map(|version| version.0);
        Self {
            corpus_uid: part.corpus.0.to_vec(),
            fingerprints: fingerprints.collect(),
            versions: versions.collect(),
            removed: part.removed,
            ids: if bare { Vec::new() } else { part.ids },
            range_ends: part.range_ends.iter().map(|last| last.0).collect(),
            range_digests: part.digests,
            ..Self::default()
        }
    }
}

fn answers<T, A>(
    items: impl Stream<Item = Result<T, NodeError>> + Send + 'static,
    convert: fn(T) -> A,
) -> Response<AnswerStream<A>>
where
    T: 'static,
    A: 'static,
{
    let answers = items.map(move |item| item.map(convert).map_err(Status::from));
    Response::new(Box::pin(answers))
}

fn columns(page: Documents) -> (Vec<u64>, Vec<String>) {
    let bare = page.ids.iter().all(String::is_empty);
    let fingerprints = page.fingerprints.iter().map(|value| value.0);
    (
        fingerprints.collect(),
        if bare { Vec::new() } else { page.ids },
    )
}
