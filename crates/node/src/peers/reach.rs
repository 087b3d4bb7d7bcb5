//! Whether this node reaches stores that ask for it: they would come back, and be taken for dead if it does not. Pings
//! are answered at once, so it tries beside them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use simshard_proto::shard::v1 as pb;
use simshard_topology::replication::StoreId;
use simshard_transport::Dialer;
use tokio::time::Instant;

use super::pings::answers;

/// A try is good for this time.
const FRESH_FOR: Duration = Duration::from_secs(1);

/// What is known is forgotten after this time.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(10);

/// Stores that are tried at once. More are told that nothing is known.
const MOST_STORES: usize = 64;

/// The last try of each store that has asked lately.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    dialer: Dialer,
    tries: Arc<Mutex<BTreeMap<StoreId, Try>>>,
}

#[derive(Debug)]
struct Try {
    address: String,
    begun: Instant,
    /// Whether the store answered at this address, the last time that it is known.
    outcome: Option<bool>,
}

impl Reach {
    pub(crate) fn new(dialer: Dialer) -> Self {
        Self {
            dialer,
            tries: Arc::default(),
        }
    }

    /// Whether a store answers at an address, as far as it is known. Tries it, unless any address of the store was tried just
    /// now: so what a peer asks for costs one try a second.
    pub(crate) fn of(&self, store: StoreId, address: &str) -> pb::Reached {
        let now = Instant::now();
        let mut tries = self.tries.lock();
        tries.retain(|_, one| now.saturating_duration_since(one.begun) < FORGOTTEN_AFTER);
        let last = tries.get(&store);
        let same = last.filter(|last| last.address == address);
        let outcome = same.and_then(|last| last.outcome);
        let may_try = last.map_or(tries.len() < MOST_STORES, |last| {
            now.saturating_duration_since(last.begun) >= FRESH_FOR
        });
        if may_try {
            let one = Try {
                address: address.to_owned(),
                begun: now,
                outcome,
            };
            tries.insert(store, one);
            tokio::spawn(self.clone().attempt(store, address.to_owned()));
        }
        match outcome {
            None => pb::Reached::Unknown,
            Some(true) => pb::Reached::Yes,
            Some(false) => pb::Reached::No,
        }
    }

    async fn attempt(self, store: StoreId, address: String) {
        let is_reached = answers(&self.dialer, &address, store).await;
        if let Some(one) = self.tries.lock().get_mut(&store)
            && one.address == address
        {
            one.outcome = Some(is_reached);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: StoreId = StoreId([1; 16]);

    #[tokio::test]
    async fn a_store_that_does_not_answer_is_not_reached_once_that_was_tried() {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", closed.local_addr().unwrap());
        drop(closed);
        let reach = Reach::new(Dialer::PLAIN);
        assert_eq!(reach.of(STORE, &address), pb::Reached::Unknown);
        while reach.of(STORE, &address) == pb::Reached::Unknown {
            tokio::task::yield_now().await;
        }
        assert_eq!(reach.of(STORE, &address), pb::Reached::No);
        // Of another address nothing is known, and it is not tried at once.
        assert_eq!(reach.of(STORE, "http://127.0.0.1:1"), pb::Reached::Unknown);
        assert_eq!(reach.of(STORE, &address), pb::Reached::No);
    }

    #[tokio::test]
    async fn no_more_stores_are_tried_than_the_bound() {
        let reach = Reach::new(Dialer::PLAIN);
        for number in 0..=u8::MAX {
            let known = reach.of(StoreId([number; 16]), "no address");
            assert_eq!(known, pb::Reached::Unknown);
        }
        assert_eq!(reach.tries.lock().len(), MOST_STORES);
    }
}
