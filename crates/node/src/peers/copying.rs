//! Copying shards that this node is a learner of, from stores in sync.

use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::shard_service_client::ShardServiceClient;
use simshard_simhash::{Fingerprint, Layout};
use simshard_storage::{CopyBase, CopyRange, CopyWriter, Element, ShardCopy};
use simshard_topology::replication::{Epoch, Pin, StoreId};
use simshard_topology::{CorpusUid, ShardId, Version};
use simshard_transport::Dialer;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use crate::behind::run_behind;
use crate::engine::Engine;
use crate::engine::pace::Pace;
use crate::error::NodeError;

/// Where a shard is copied from.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) store: StoreId,
    pub(super) address: String,
    pub(super) dialer: Dialer,
}

/// A source that has sent nothing for this long, though it was asked, is left. So is one that has waited as long for the
/// own disk: what it keeps for the copy, it lacks for others.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Requests and parts of a copy that wait for the other side, each.
pub(super) const WAITING_MESSAGES: usize = 4;

/// What came of a copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopyOutcome {
    /// Whether the shard has it: if not, the source has left.
    pub(super) is_taken: bool,
    /// Bytes of messages, both ways.
    pub(super) bytes: usize,
}

pub(super) type Parts = Streaming<pb::CopyShardResponse>;

/// A copy that a source has begun to send.
struct Begun {
    pin: Pin,
    corpora: Vec<CorpusUid>,
    parts: Parts,
    asking: mpsc::Sender<pb::CopyShardRequest>,
}

/// Copies a shard, for a store that an epoch added as a learner, on top of what it had before. Once it is not wanted any
/// more, it lets go of the source, and ends.
pub(super) async fn copy(
    engine: &Engine,
    source: &Source,
    base: CopyBase,
    shard: ShardId,
    added: Epoch,
    unwanted: &CancellationToken,
) -> Result<CopyOutcome, Status> {
    let request = pb::CopyShardRequest {
        store: source.store.0.to_vec(),
        shard: shard.0.into(),
        added_number: added.number,
        added_generation: added.generation,
        compared_version: base.until().0,
        ..pb::CopyShardRequest::default()
    };
    let begun = unwanted.run_until_cancelled(begin(engine, source, request));
    let not_wanted = || Err(Status::cancelled("the copy is not wanted any more"));
    let begun = begun.await.unwrap_or_else(not_wanted)?;
    let pin = begun.pin;
    let (copy, bytes) = write(engine, base, begun, shard, unwanted).await?;
    let is_taken = engine.end_copy(pin, copy.clone()).await;
    // After any other failure the log may name its segments.
    if matches!(is_taken, Ok(false) | Err(NodeError::Refused(_))) {
        engine.store().abandon_copy(&copy).map_err(failed)?;
    }
    let is_taken = is_taken?;
    Ok(CopyOutcome { is_taken, bytes })
}

/// Asks a source, and makes the corpora that it holds.
async fn begin(
    engine: &Engine,
    source: &Source,
    request: pb::CopyShardRequest,
) -> Result<Begun, Status> {
    let channel = source.dialer.channel_to(&source.address)?;
    let (asking, asked) = mpsc::channel(WAITING_MESSAGES);
    // There is room.
    let _ = asking.send(request).await;
    let (first, parts) = open(channel, asked).await?;
    let mut corpora = Vec::new();
    for corpus in &first.corpora {
        let uid: CorpusUid = corpus.corpus_uid.parse().map_err(|_| nonsense("a uid"))?;
        let layout = Layout::new(corpus.blocks, corpus.distance);
        let layout = layout.map_err(|_| nonsense("the layout of a corpus"))?;
        let made = async { Ok(engine.make_copied(uid, layout).await?) };
        in_time(made, "the own disk does not answer").await?;
        corpora.push(uid);
    }
    let pin = Pin {
        source: source.store,
        at: Epoch {
            generation: first.epoch_generation,
            number: first.epoch_number,
        },
    };
    Ok(Begun {
        pin,
        corpora,
        parts,
        asking,
    })
}

/// Waits until a source begins: it may have others to send to before.
pub(super) async fn open(
    channel: Channel,
    asked: mpsc::Receiver<pb::CopyShardRequest>,
) -> Result<(pb::CopySource, Parts), Status> {
    let mut client = ShardServiceClient::new(channel);
    let opening = async {
        let parts = client.copy_shard(ReceiverStream::new(asked)).await?;
        let mut parts = parts.into_inner();
        let first = parts.message().await?.and_then(|first| first.source);
        let first = first.ok_or_else(|| nonsense("it does not begin with its source"))?;
        Ok((first, parts))
    };
    in_time(opening, "the source does not begin").await
}

pub(super) async fn in_time<T>(
    waiting: impl Future<Output = Result<T, Status>>,
    late: &str,
) -> Result<T, Status> {
    let late = |_elapsed| Err(Status::deadline_exceeded(late));
    timeout(IDLE_TIMEOUT, waiting).await.unwrap_or_else(late)
}

/// Writes what comes, on a thread that may wait for it.
async fn write(
    engine: &Engine,
    base: CopyBase,
    begun: Begun,
    shard: ShardId,
    unwanted: &CancellationToken,
) -> Result<(ShardCopy, usize), Status> {
    let Begun {
        corpora,
        parts,
        asking,
        ..
    } = begun;
    let parts = paced(parts, &engine.copy_pace().received);
    let (sender, coming) = mpsc::channel(WAITING_MESSAGES);
    let store = Arc::clone(engine.store());
    let written = run_behind("copy", move || {
        let mut received = Received {
            parts: coming,
            bytes: 0,
        };
        let written = received.write(&base, corpora, &asking);
        let written = written.map_err(|error| {
            if !base.is_damaged() {
                return error;
            }
            store.forget_aside(shard);
            of_damaged_base(&error)
        });
        Ok((written?, received.bytes))
    });
    let forwarded = unwanted.run_until_cancelled(forward(parts, sender));
    // What is cut off by that is not taken for whole.
    let (_, written) = tokio::join!(forwarded, written);
    written.unwrap_or_else(|_| Err(Status::cancelled("the node stops")))
}

/// Lets the parts of a copy through at the rate that is allowed.
fn paced(
    parts: Parts,
    pace: &Pace,
) -> impl Stream<Item = Result<pb::CopyShardResponse, Status>> + Unpin {
    let paced = parts.then(async move |part| {
        if let Ok(part) = &part {
            pace.take(part.encoded_len()).await;
        }
        part
    });
    Box::pin(paced)
}

/// Hands on what comes, an error too: a stream that breaks has not come to its end.
pub(super) async fn forward(
    mut parts: impl Stream<Item = Result<pb::CopyShardResponse, Status>> + Unpin,
    sender: mpsc::Sender<Result<pb::CopyShardResponse, Status>>,
) {
    loop {
        let part = async { parts.next().await.transpose() };
        let part = in_time(part, "the source sends nothing").await;
        let Some(part) = part.transpose() else { return };
        let is_last = part.is_err();
        // What writes has failed, if it reads no more. Or it waits for the disk.
        let given = timeout(IDLE_TIMEOUT, sender.send(part)).await;
        if !matches!(given, Ok(Ok(()))) || is_last {
            return;
        }
    }
}

/// The parts of a copy, as they come.
struct Received {
    parts: mpsc::Receiver<Result<pb::CopyShardResponse, Status>>,
    /// Bytes of messages, both ways.
    bytes: usize,
}

impl Received {
    fn write(
        &mut self,
        base: &CopyBase,
        corpora: Vec<CorpusUid>,
        asking: &mpsc::Sender<pb::CopyShardRequest>,
    ) -> Result<ShardCopy, Status> {
        let mut writer = base.begin(corpora).map_err(failed)?;
        while let Some(part) = self.next_before(|part| part.ranges_ended)? {
            push(&mut writer, &part)?;
        }
        let ranges = writer.end_ranges().map_err(failed)?;
        let differs = !ranges.is_empty();
        let request = pb::CopyShardRequest {
            ranges: ranges.iter().map(range).collect(),
            ..pb::CopyShardRequest::default()
        };
        self.bytes += request.encoded_len();
        if asking.blocking_send(request).is_err() {
            return Err(Status::cancelled("the source is gone"));
        }
        while let Some(part) = self.next_before(|part| part.ended)? {
            if !differs {
                return Err(nonsense("elements that nothing asked for"));
            }
            push(&mut writer, &part)?;
        }
        writer.finish().map_err(failed)
    }

    /// The next part; `None` if it is the end that is waited for. A stream that ends before was cut short.
    fn next_before(
        &mut self,
        is_end: impl Fn(&pb::CopyShardResponse) -> bool,
    ) -> Result<Option<pb::CopyShardResponse>, Status> {
        let part = self.parts.blocking_recv().transpose()?;
        let part = part.ok_or_else(|| Status::unavailable("the copy was cut short"))?;
        self.bytes += part.encoded_len();
        Ok((!is_end(&part)).then_some(part))
    }
}

pub(super) fn range(range: &CopyRange) -> pb::CopyRange {
    pb::CopyRange {
        corpus_uid: range.corpus.0.to_vec(),
        first_fingerprint: range.first.0,
        last_fingerprint: range.last.0,
    }
}

/// Adds the elements of a part, and ends its ranges.
fn push(writer: &mut CopyWriter<'_>, part: &pb::CopyShardResponse) -> Result<(), Status> {
    let uid = <[u8; 16]>::try_from(&*part.corpus_uid).map_err(|_| nonsense("a uid"))?;
    let uid = CorpusUid(uid);
    let count = part.fingerprints.len();
    let has_ids = !part.ids.is_empty();
    if part.versions.len() != count || (has_ids && part.ids.len() != count) {
        return Err(nonsense("the columns of elements"));
    }
    let (digests, rest) = part.range_digests.as_chunks();
    if digests.len() != part.range_ends.len() || !rest.is_empty() {
        return Err(nonsense("the columns of ranges"));
    }
    let mut ends = part.range_ends.iter().zip(digests).peekable();
    let mut removed = part.removed.iter().peekable();
    for (place, (&fingerprint, &version)) in
        part.fingerprints.iter().zip(&part.versions).enumerate()
    {
        while let Some((&last, digest)) = ends.next_if(|(last, _)| **last < fingerprint) {
            let ended = writer.end_range(uid, Fingerprint(last), *digest);
            ended.map_err(failed)?;
        }
        let is_removed = removed.next_if(|&&next| next as usize == place).is_some();
        let element = Element {
            fingerprint: Fingerprint(fingerprint),
            id: part.ids.get(place).map_or("", |id| id),
            version: Version(version),
            live: !is_removed,
        };
        writer.push(uid, element).map_err(failed)?;
    }
    for (&last, digest) in ends {
        let ended = writer.end_range(uid, Fingerprint(last), *digest);
        ended.map_err(failed)?;
    }
    match removed.next() {
        None => Ok(()),
        Some(_) => Err(nonsense("the places of tombstones")),
    }
}

fn nonsense(what: &str) -> Status {
    Status::internal(format!(
        "the source of a copy sends what makes no sense: {what}"
    ))
}

fn failed(error: impl std::error::Error) -> Status {
    Status::internal(error.to_string())
}

/// Why a copy failed whose base is damaged. The error asks an operator to restore the store, and the node does that.
fn of_damaged_base(error: &Status) -> Status {
    let cause = error.message();
    Status::data_loss(format!(
        "{cause}; this node does so: the shard is copied anew, without that file"
    ))
}

#[cfg(test)]
mod tests {
    use std::iter::repeat_with;
    use std::net::TcpListener;

    use tokio::task::spawn_blocking;
    use tonic::transport::Endpoint;

    use super::*;

    /// Whether there are parts up to the end of a copy, for these messages of a stream.
    async fn parts(
        messages: Vec<Result<pb::CopyShardResponse, Status>>,
    ) -> Vec<Result<bool, String>> {
        let (sender, coming) = mpsc::channel(WAITING_MESSAGES);
        let count = messages.len() + 1;
        let received = spawn_blocking(move || {
            let mut received = Received {
                parts: coming,
                bytes: 0,
            };
            let mut next = || match received.next_before(|part| part.ended) {
                Ok(part) => Ok(part.is_some()),
                Err(status) => Err(status.message().to_owned()),
            };
            (0..count).map(|_| next()).collect()
        });
        forward(tokio_stream::iter(messages), sender).await;
        received.await.unwrap()
    }

    /// What is written before would be taken for all of it.
    #[tokio::test]
    async fn a_stream_that_is_cut_short_is_not_at_its_end() {
        let part = || Ok(pb::CopyShardResponse::default());
        let end = Ok(pb::CopyShardResponse {
            ended: true,
            ..pb::CopyShardResponse::default()
        });
        let cut = || Err("the copy was cut short".to_owned());
        assert_eq!(parts(vec![part(), end]).await, [Ok(true), Ok(false), cut()]);
        assert_eq!(parts(vec![part()]).await, [Ok(true), cut()]);
        let broken = Err(Status::unavailable("the link is cut"));
        let told = Err("the link is cut".to_owned());
        assert_eq!(parts(vec![part(), broken]).await, [Ok(true), told, cut()]);
    }

    /// The error asks an operator for what the node does.
    #[test]
    fn a_damaged_base_is_told_with_what_the_node_does_about_it() {
        let damaged =
            Status::internal("07-3 is damaged at byte 5: restore the store from a replica");
        let told = of_damaged_base(&damaged);
        let expected = "07-3 is damaged at byte 5: restore the store from a replica; this node does so: \
                        the shard is copied anew, without that file";
        assert_eq!(told.message(), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_that_sends_nothing_is_left() {
        let (sender, mut coming) = mpsc::channel(WAITING_MESSAGES);
        let forwarded = tokio::spawn(forward(tokio_stream::pending(), sender));
        let status = coming.recv().await.unwrap().unwrap_err();
        assert_eq!(status.message(), "the source sends nothing");
        drop(coming);
        forwarded.await.unwrap();
    }

    /// As if it had others to send to.
    #[tokio::test(start_paused = true)]
    async fn a_source_that_does_not_begin_is_left() {
        // It takes connections, and nothing answers.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let channel = Endpoint::from_shared(address).unwrap().connect_lazy();
        let (_asking, asked) = mpsc::channel(1);
        let opened = timeout(2 * IDLE_TIMEOUT, open(channel, asked)).await;
        let status = opened.unwrap().map(drop).unwrap_err();
        assert_eq!(status.message(), "the source does not begin");
    }

    /// Its disk does not answer, say.
    #[tokio::test(start_paused = true)]
    async fn a_writer_that_reads_nothing_keeps_no_source_waiting() {
        let (sender, mut coming) = mpsc::channel(WAITING_MESSAGES);
        let parts = repeat_with(|| Ok(pb::CopyShardResponse::default()));
        let forwarded = forward(tokio_stream::iter(parts), sender);
        timeout(2 * IDLE_TIMEOUT, forwarded).await.unwrap();
        for _ in 0..WAITING_MESSAGES {
            coming.recv().await.unwrap().unwrap();
        }
        // It is cut short.
        assert!(coming.recv().await.is_none());
    }
}
