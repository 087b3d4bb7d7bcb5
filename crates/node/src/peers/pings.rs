//! Asking the other stores for signs of life, on connections of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use simshard_cluster::ClusterLayout;
use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::shard_service_client::ShardServiceClient;
use simshard_proto::{Reason, epochs_into};
use simshard_topology::replication::{Epoch, StoreId};
use simshard_topology::{CorpusUid, ShardId, ShardSet};
use simshard_transport::Dialer;
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;
use tonic::transport::Channel;
use tonic::{Response, Status};

use super::Peers;
use super::asked::{asked, other_replicas};
use super::health::{INTERVAL, Sign};
use crate::engine::Engine;

/// An answer that takes longer is given up, and the connection with it.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_millis(800);

/// The other stores are asked anew after this time, while changes wait for what they report.
pub(crate) const SOON: Duration = Duration::from_millis(20);

/// So often in a row, about a second. What is not reported then takes longer, and is asked for at the usual times.
const MOST_SOON: u32 = 50;

/// The way to another store.
struct Link {
    address: String,
    channel: Channel,
    asking: Option<AbortOnDropHandle<bool>>,
}

/// Asks again and again, as long as it is polled.
pub(super) async fn run(
    peers: &Arc<Peers>,
    engine: &Engine,
    mut followed: watch::Receiver<Arc<ClusterLayout>>,
) {
    let mut links: BTreeMap<StoreId, Link> = BTreeMap::new();
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut soon = 0;
    loop {
        let may_hurry = soon < MOST_SOON;
        let is_urgent = until_due(&mut ticks, engine, &mut followed, may_hurry).await;
        soon = if is_urgent { soon.saturating_add(1) } else { 0 };
        let layout = Arc::clone(&followed.borrow());
        let roles = engine.roles().into_iter();
        let known: ShardSet = roles.map(|(shard, ..)| shard).collect();
        let known = known.union(&peers.targeted(&layout));
        let asked = asked(&layout, peers.own, known);
        peers.look(&asked.keys().copied().collect());
        links.retain(|store, link| {
            let node = asked.get(store);
            node.is_some_and(|node| node.address == link.address)
        });
        for (&store, node) in &asked {
            if !links.contains_key(&store)
                && let Some(link) = Link::to(&peers.dialer, &node.address)
            {
                links.insert(store, link);
            }
        }
        for (&store, link) in &mut links {
            link.ask(store, peers).await;
        }
    }
}

/// Waits until the others are to be asked again: earlier while this store needs a report to begin as a learner. Answers
/// whether it needs one.
async fn until_due(
    ticks: &mut Interval,
    engine: &Engine,
    followed: &mut watch::Receiver<Arc<ClusterLayout>>,
    may_hurry: bool,
) -> bool {
    loop {
        let is_urgent = {
            let layout = followed.borrow_and_update();
            let records = layout.records();
            records.is_some_and(|records| engine.store().awaits_reports(records))
        };
        tokio::select! {
            _ = ticks.tick() => return is_urgent,
            () = sleep(SOON), if is_urgent && may_hurry => return true,
            Ok(()) = followed.changed() => {}
        }
    }
}

impl Link {
    /// Connects when it is first asked. There is none to an address that cannot be parsed.
    fn to(dialer: &Dialer, address: &str) -> Option<Self> {
        Some(Self {
            address: address.to_owned(),
            channel: quick_channel_to(dialer, address)?,
            asking: None,
        })
    }

    /// Asks, unless an answer is on its way. After one that did not come it connects anew.
    async fn ask(&mut self, store: StoreId, peers: &Arc<Peers>) {
        match self.asking.take() {
            Some(asking) if !asking.is_finished() => {
                self.asking = Some(asking);
                return;
            }
            Some(asking) => {
                let has_answered = asking.await.unwrap_or(false);
                if !has_answered && let Some(link) = Self::to(&peers.dialer, &self.address) {
                    self.channel = link.channel;
                }
            }
            None => {}
        }
        let (channel, peers) = (self.channel.clone(), Arc::clone(peers));
        let asking = tokio::spawn(async move { ask(channel, store, &peers).await });
        self.asking = Some(AbortOnDropHandle::new(asking));
    }
}

/// Connects when it is first used, and fails soon: the next sign of life is asked for soon as well. There is none to an
/// address that cannot be parsed.
pub(super) fn quick_channel_to(dialer: &Dialer, address: &str) -> Option<Channel> {
    let endpoint = dialer.endpoint(address).ok()?;
    Some(dialer.connect(&endpoint.connect_timeout(ANSWER_TIMEOUT)))
}

/// Asks once. Returns whether it got an answer.
async fn ask(channel: Channel, store: StoreId, peers: &Peers) -> bool {
    let (is_coming, reach_store, reach_address) = match peers.coming_at() {
        Some(address) => (true, peers.own.0.to_vec(), address),
        None => Default::default(),
    };
    let request = pb::PingRequest {
        known_installations: peers.installations(store),
        reach_store,
        reach_address,
        ..pb::PingRequest::default()
    };
    let mut client = ShardServiceClient::new(channel);
    match timeout(ANSWER_TIMEOUT, client.ping(request)).await {
        Ok(answer) => take(answer.map(Response::into_inner), store, peers, is_coming),
        Err(_elapsed) => false,
    }
}

/// Takes an answer. Returns whether it is one. `is_coming` says whether the store was to try to reach this one.
fn take(
    answer: Result<pb::PingResponse, Status>,
    store: StoreId,
    peers: &Peers,
    is_coming: bool,
) -> bool {
    match answer {
        Ok(answer) => {
            if let Ok(mut sign) = sign_of(&answer, store) {
                // One of an earlier version does not try.
                let is_silent = answer.reached() == pb::Reached::Unspecified;
                sign.reaches_own = sign
                    .reaches_own
                    .or((is_coming && is_silent).then_some(true));
                peers.note(store, sign);
            }
            true
        }
        Err(status) if is_busy(&status) => {
            peers.note_life(store);
            true
        }
        Err(_failed) => false,
    }
}

/// Whether a store answers at an address. One with too much to do to say more does.
pub async fn answers(dialer: &Dialer, address: &str, store: StoreId) -> bool {
    let Some(channel) = quick_channel_to(dialer, address) else {
        return false;
    };
    let mut client = ShardServiceClient::new(channel);
    let answer = client.ping(pb::PingRequest::default());
    match timeout(ANSWER_TIMEOUT, answer).await {
        Ok(Ok(answer)) => answer.into_inner().store == store.0,
        Ok(Err(status)) => is_busy(&status),
        Err(_elapsed) => false,
    }
}

/// Whether a node refuses to answer as it has too much to do: then it lives.
fn is_busy(status: &Status) -> bool {
    Reason::of(status) == Some(Reason::Overloaded)
}

/// What a node answers that is asked about its store.
#[derive(Clone, Debug)]
pub enum StoreAnswer {
    /// It lives, and has too much to do to tell more.
    Busy,
    /// It tells.
    News(StoreNews),
}

impl StoreAnswer {
    /// What it tells, unless it is too busy.
    #[must_use]
    pub const fn news(&self) -> Option<&StoreNews> {
        match self {
            Self::Busy => None,
            Self::News(news) => Some(news),
        }
    }
}

/// What a node says of its store.
#[derive(Clone, Debug)]
pub struct StoreNews {
    /// The epochs of the shards that it has on disk.
    pub epochs: BTreeMap<ShardId, Epoch>,
    /// Whether it refuses inserts, or will soon, as there is little room for more.
    pub lacks_room: bool,
    /// Whether it has room for copies of shards that it never held.
    pub has_room_for_copies: bool,
    /// How many bytes of copies it takes until it has no room for more. `None` if it did not say.
    pub bytes_for_copies: Option<u64>,
    /// The shards whose tables it has yet to make.
    pub unbuilt: ShardSet,
    /// The shards of which it found a file damaged.
    pub damaged: ShardSet,
    /// The documents stored in each shard that it searches, over all corpora. Shards without any are left out. `None` if
    /// it was not asked, is too busy to count, or of a version that does not count.
    pub document_counts: Option<BTreeMap<ShardId, u64>>,
    /// The bytes of each shard that it stores, on disk and waiting for it. Empty where it has not counted.
    pub stored_bytes: BTreeMap<ShardId, u64>,
    /// The corpora that it holds. Empty if it is of a version that does not say.
    pub corpora: BTreeSet<CorpusUid>,
}

/// Asks a node that has registered itself at `address` about its store. `None` if it does not answer within `patience`,
/// or another store does.
pub async fn ask_store(
    dialer: &Dialer,
    address: &str,
    store: StoreId,
    patience: Duration,
) -> Option<StoreAnswer> {
    ask_for_news(dialer, address, store, patience, false).await
}

/// The same, where the node also counts the documents of its shards.
pub async fn ask_store_to_count(
    dialer: &Dialer,
    address: &str,
    store: StoreId,
    patience: Duration,
) -> Option<StoreAnswer> {
    ask_for_news(dialer, address, store, patience, true).await
}

async fn ask_for_news(
    dialer: &Dialer,
    address: &str,
    store: StoreId,
    patience: Duration,
    counts_documents: bool,
) -> Option<StoreAnswer> {
    let mut client = ShardServiceClient::new(quick_channel_to(dialer, address)?);
    let request = pb::PingRequest {
        counts_documents,
        tells_corpora: true,
        ..pb::PingRequest::default()
    };
    match timeout(patience, client.ping(request)).await.ok()? {
        Ok(answer) => news_of(&answer.into_inner(), store).map(StoreAnswer::News),
        Err(status) => is_busy(&status).then_some(StoreAnswer::Busy),
    }
}

/// The corpora whose uids follow each other.
fn corpora_of(bytes: &[u8]) -> BTreeSet<CorpusUid> {
    let (uids, _) = bytes.as_chunks();
    uids.iter().copied().map(CorpusUid).collect()
}

/// What an answer tells, if it is of this store.
fn news_of(answer: &pb::PingResponse, store: StoreId) -> Option<StoreNews> {
    let sign = sign_of(answer, store).ok()?;
    let reports = sign.reports.unwrap_or_default();
    Some(StoreNews {
        unbuilt: sign.unbuilt,
        damaged: sign.damaged,
        epochs: reports.into_iter().collect(),
        lacks_room: answer.lacks_room == Some(true),
        // One of an earlier version does not say: it stays away by itself.
        has_room_for_copies: answer.has_room_for_copies != Some(false),
        bytes_for_copies: answer.bytes_for_copies,
        document_counts: answer
            .has_counted
            .then(|| by_shard(&answer.counted_shards, &answer.document_counts)),
        stored_bytes: by_shard(&answer.stored_shards, &answer.stored_bytes),
        corpora: corpora_of(&answer.held_corpora),
    })
}

/// Shards that there cannot be are left out.
fn by_shard(shards: &[u32], numbers: &[u64]) -> BTreeMap<ShardId, u64> {
    let numbers = shards.iter().zip(numbers);
    let numbers =
        numbers.filter_map(|(&shard, &number)| Some((ShardId(u8::try_from(shard).ok()?), number)));
    numbers.collect()
}

/// The last record of its log that a store said to be on disk, as far as the other stores know that share shards with
/// it. 0 if none of them answers, or knows.
pub async fn heard_of(dialer: &Dialer, layout: &ClusterLayout, store: StoreId) -> u64 {
    let named = layout.records().into_iter().flatten();
    let named = named.filter(|(_, record)| record.names(store));
    let shards = named.map(|(shard, _)| *shard).collect();
    let other_replicas = other_replicas(layout, store, shards);
    let asked = other_replicas.iter().map(async |(&other, node)| {
        let request = pb::PingRequest {
            about_store: store.0.to_vec(),
            ..pb::PingRequest::default()
        };
        let mut client = ShardServiceClient::new(quick_channel_to(dialer, &node.address)?);
        let answer = timeout(ANSWER_TIMEOUT, client.ping(request))
            .await
            .ok()?
            .ok()?
            .into_inner();
        (answer.store == other.0).then_some(answer.heard_synced)
    });
    let heard = join_all(asked).await;
    heard.into_iter().flatten().max().unwrap_or(0)
}

/// What an answer says, if it is of this store.
fn sign_of(answer: &pb::PingResponse, store: StoreId) -> Result<Sign, Status> {
    if answer.store != store.0 {
        return Err(Status::not_found("another store answers"));
    }
    let (numbers, generations) = (&answer.epoch_numbers, &answer.epoch_generations);
    let stores = |bytes: &[u8]| -> BTreeSet<StoreId> {
        let (ids, _) = bytes.as_chunks();
        ids.iter().copied().map(StoreId).collect()
    };
    let shards = |shards: &[u32]| -> ShardSet {
        let shards = shards.iter();
        let shards = shards.filter_map(|&shard| u8::try_from(shard).ok());
        shards.map(ShardId).collect()
    };
    Ok(Sign {
        incarnation: answer.incarnation,
        installations: answer.installations,
        reports: epochs_into(&answer.shards, numbers, generations)?,
        synced: answer.synced,
        silent_stores: stores(&answer.silent_stores),
        unheard_stores: stores(&answer.unheard_stores),
        damaged: shards(&answer.damaged_shards),
        unbuilt: shards(&answer.unbuilt_shards),
        lacks_room: answer.lacks_room,
        reaches_own: match answer.reached() {
            pb::Reached::Unspecified | pb::Reached::Unknown => None,
            pb::Reached::Yes => Some(true),
            pb::Reached::No => Some(false),
        },
        log_delay: (answer.log_delay_millis > 0)
            .then(|| Duration::from_millis(answer.log_delay_millis.into())),
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::{Ready, ready};
    use std::net::SocketAddr;
    use std::task::{Context, Poll};

    use simshard_proto::shard::v1::shard_service_server::SERVICE_NAME;
    use tokio::net::TcpListener;
    use tokio_stream::wrappers::TcpListenerStream;
    use tonic::body::Body;
    use tonic::codegen::{Service, http};
    use tonic::server::NamedService;
    use tonic::transport::Server;

    use super::*;

    /// A node that refuses whatever it is asked, for one reason.
    #[derive(Clone)]
    struct Refusing(Reason);

    impl NamedService for Refusing {
        const NAME: &'static str = SERVICE_NAME;
    }

    impl Service<http::Request<Body>> for Refusing {
        type Response = http::Response<Body>;
        type Error = Infallible;
        type Future = Ready<Result<http::Response<Body>, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: http::Request<Body>) -> Self::Future {
            ready(Ok(self.0.status("not now", []).into_http()))
        }
    }

    /// Serves until what it returns is dropped.
    async fn serve(node: Refusing) -> (SocketAddr, AbortOnDropHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let incoming = TcpListenerStream::new(listener);
        let serving = Server::builder().add_service(node);
        let serving = async { serving.serve_with_incoming(incoming).await.unwrap() };
        (address, AbortOnDropHandle::new(tokio::spawn(serving)))
    }

    /// Operators act on nodes that they take for dead.
    #[tokio::test]
    async fn a_node_that_is_too_busy_to_tell_of_its_store_lives_and_one_that_cannot_is_silent() {
        let store = StoreId([1; 16]);
        let patience = Duration::from_secs(30);
        for (reason, lives) in [(Reason::Overloaded, true), (Reason::Stopping, false)] {
            let (address, _serving) = serve(Refusing(reason)).await;
            let address = format!("http://{address}");
            let told = ask_store(&Dialer::PLAIN, &address, store, patience).await;
            assert_eq!(told.is_some(), lives, "{reason:?}");
            assert!(told.is_none_or(|answer| answer.news().is_none()));
            let counted = ask_store_to_count(&Dialer::PLAIN, &address, store, patience).await;
            assert_eq!(counted.is_some(), lives, "{reason:?}");
            assert_eq!(
                answers(&Dialer::PLAIN, &address, store).await,
                lives,
                "{reason:?}"
            );
        }
    }

    /// A node of an earlier version cannot say whether it reaches this one: that must not keep it away.
    #[test]
    fn a_node_that_does_not_say_counts_as_one_that_reaches_this_one() {
        let [own, other] = [StoreId([1; 16]), StoreId([2; 16])];
        for (reached, is_coming, expected) in [
            (pb::Reached::Unspecified, true, Some(true)),
            (pb::Reached::Unspecified, false, None),
            (pb::Reached::Unknown, true, None),
            (pb::Reached::No, true, Some(false)),
            (pb::Reached::Yes, true, Some(true)),
        ] {
            let peers = Peers::new(own, 1, crate::Takeover::default(), Dialer::PLAIN);
            peers.look(&BTreeSet::from([other]));
            let answer = pb::PingResponse {
                store: other.0.to_vec(),
                reached: reached.into(),
                ..pb::PingResponse::default()
            };
            assert!(take(Ok(answer), other, &peers, is_coming));
            let reach = peers
                .others
                .lock()
                .reach(tokio::time::Instant::now(), |_| true);
            assert_eq!(reach, expected, "{reached:?}, {is_coming}");
        }
    }

    #[test]
    fn a_node_with_too_much_to_do_to_answer_lives() {
        let [own, other] = [StoreId([1; 16]), StoreId([2; 16])];
        let peers = Peers::new(own, 1, crate::Takeover::default(), Dialer::PLAIN);
        peers.look(&BTreeSet::from([other]));
        let is_unheard = || peers.unheard().contains(&other);
        assert!(!take(
            Err(Status::unavailable("gone")),
            other,
            &peers,
            false
        ));
        assert!(is_unheard());
        let overloaded = Reason::Overloaded.status("retry a little later", []);
        assert!(take(Err(overloaded), other, &peers, false));
        assert!(!is_unheard());
    }
}
