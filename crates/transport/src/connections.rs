//! The open connections of a server by peer, and the choice of the one that gives way to a new one.
//!
//! # Invariants
//! - IN4: a peer gets a connection beyond its share only if an idle one is closed for it.
//! - IN5: only a connection without a request gives way: of the peer with most connections, the one that has been idle
//!   the longest. It belongs to the newcomer itself, or to a peer with more connections.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use tokio::sync::oneshot;

use super::shares::{Peer, Shares};

/// The name of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Id(u64);

/// Tells a connection to close.
pub(super) type Close = oneshot::Receiver<()>;

/// The connections that stay open.
#[derive(Debug)]
pub(super) struct Table {
    shares: Shares,
    open: HashMap<Id, Open>,
    /// Those without a request, by peer and by the time since when. Only peers that have one are listed.
    idle: HashMap<Peer, BTreeMap<u64, Id>>,
    /// A logical clock.
    now: u64,
}

#[derive(Debug)]
struct Open {
    peer: Peer,
    requests: usize,
    /// When the last one ended.
    idle_since: u64,
    close: oneshot::Sender<()>,
}

impl Table {
    /// For at most `limit` connections.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            shares: Shares::new(limit),
            open: HashMap::new(),
            idle: HashMap::new(),
            now: 0,
        }
    }

    /// Admits a connection of a peer. Beyond the share of that peer, an idle connection is closed for it. `None` if
    /// none may give way.
    pub(super) fn admit(&mut self, peer: Peer) -> Option<(Id, Close)> {
        if !self.shares.try_take(peer, 1) {
            let victim = self.idlest(Some(peer))?;
            let from = self.close(victim)?;
            self.shares.hand_over(from, peer, 1);
        }
        let (close, closed) = oneshot::channel();
        let now = self.tick();
        let id = Id(now);
        let open = Open {
            peer,
            requests: 0,
            idle_since: now,
            close,
        };
        self.open.insert(id, open);
        self.idle.entry(peer).or_default().insert(now, id);
        Some((id, closed))
    }

    /// Closes an idle connection for one of an unknown peer; returns whether there was one.
    pub(super) fn give_way(&mut self) -> bool {
        let closed = self.idlest(None).and_then(|victim| self.close(victim));
        if let Some(peer) = closed {
            self.shares.give_back(peer, 1);
        }
        closed.is_some()
    }

    /// Notes that a connection is closed.
    pub(super) fn remove(&mut self, id: Id) {
        if let Some(peer) = self.close(id) {
            self.shares.give_back(peer, 1);
        }
    }

    /// Notes a request on a connection.
    pub(super) fn begin(&mut self, id: Id) {
        let Some(open) = self.open.get_mut(&id) else {
            return;
        };
        open.requests += 1;
        if open.requests == 1 {
            let (peer, since) = (open.peer, open.idle_since);
            self.not_idle(peer, since);
        }
    }

    /// Notes the end of a request on a connection.
    pub(super) fn end(&mut self, id: Id) {
        let now = self.tick();
        let Some(open) = self.open.get_mut(&id) else {
            return;
        };
        open.requests -= 1;
        if open.requests == 0 {
            open.idle_since = now;
            let peer = open.peer;
            self.idle.entry(peer).or_default().insert(now, id);
        }
    }

    /// The connection that gives way to one of `newcomer`, or of an unknown peer.
    fn idlest(&self, newcomer: Option<Peer>) -> Option<Id> {
        let (peer, idle) = self.idle.iter().max_by_key(|(peer, idle)| {
            let since = idle.first_key_value().map(|(since, _)| *since);
            let is_own = newcomer == Some(**peer);
            (self.shares.held(**peer), is_own, Reverse(since))
        })?;
        let may_give_way = newcomer.is_none_or(|newcomer| {
            newcomer == *peer || self.shares.held(*peer) > self.shares.held(newcomer)
        });
        let (_, longest) = idle.first_key_value()?;
        may_give_way.then_some(*longest)
    }

    /// Tells a connection to close, and forgets it; returns its peer, whose share still counts it.
    fn close(&mut self, id: Id) -> Option<Peer> {
        let open = self.open.remove(&id)?;
        if open.requests == 0 {
            self.not_idle(open.peer, open.idle_since);
        }
        // Its receiver is gone if the connection is closed already.
        let _ = open.close.send(());
        Some(open.peer)
    }

    fn not_idle(&mut self, peer: Peer, since: u64) {
        if let Some(idle) = self.idle.get_mut(&peer) {
            idle.remove(&since);
            if idle.is_empty() {
                self.idle.remove(&peer);
            }
        }
    }

    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: u8) -> Peer {
        Peer::of([10, 0, 0, number].into())
    }

    /// Opens as many connections of a peer as have room without another one giving way.
    fn fill(table: &mut Table, peer: Peer, count: usize) -> Vec<(Id, Close)> {
        let admitted: Vec<_> = (0..count).map(|_| table.admit(peer).unwrap()).collect();
        assert_eq!(table.shares.held(peer), count);
        admitted
    }

    fn is_closed((_, close): &mut (Id, Close)) -> bool {
        close.try_recv().is_ok()
    }

    /// IN4, IN5.
    #[test]
    fn beyond_its_share_a_peer_closes_its_own_longest_idle_connection() {
        let mut table = Table::new(8);
        let mut first = fill(&mut table, peer(1), 4);
        table.begin(first[0].0);
        table.begin(first[1].0);
        table.end(first[1].0);
        let _fifth = table.admit(peer(1)).unwrap();
        let closed: Vec<bool> = first.iter_mut().map(is_closed).collect();
        assert_eq!(closed, [false, false, true, false]);
        assert_eq!(table.shares.held(peer(1)), 4);
        assert_eq!(table.shares.free(), 4);
    }

    /// IN5.
    #[test]
    fn a_connection_in_use_never_gives_way() {
        let mut table = Table::new(4);
        let mut used = fill(&mut table, peer(1), 2);
        for (id, _) in &used {
            table.begin(*id);
        }
        assert!(table.admit(peer(1)).is_none());
        assert!(!table.give_way());
        assert!(table.admit(peer(2)).is_some(), "there is room for others");
        assert!(!used.iter_mut().any(is_closed));
    }

    /// IN5.
    #[test]
    fn the_peer_with_most_gives_way_and_never_one_with_fewer() {
        let mut table = Table::new(12);
        let mut many = fill(&mut table, peer(1), 6);
        let mut few = fill(&mut table, peer(2), 3);
        let fourth = table.admit(peer(2)).unwrap();
        assert!(is_closed(&mut many[0]), "6 give way to 3");
        table.begin(fourth.0);
        let _fifth = table.admit(peer(2)).unwrap();
        assert!(is_closed(&mut many[1]), "5 give way to 4");
        let _sixth = table.admit(peer(2)).unwrap();
        assert!(!is_closed(&mut many[2]), "4 do not give way to 5");
        assert!(is_closed(&mut few[0]), "their own do");
        assert_eq!(table.shares.held(peer(1)), 4);
        assert_eq!(table.shares.held(peer(2)), 5);
    }

    #[test]
    fn what_is_closed_is_forgotten() {
        let mut table = Table::new(8);
        let mut open = fill(&mut table, peer(1), 3);
        table.begin(open[1].0);
        assert!(table.give_way());
        assert!(is_closed(&mut open[0]));
        for (id, _) in &open {
            table.remove(*id);
            table.end(*id);
        }
        assert!(table.open.is_empty() && table.idle.is_empty());
        assert_eq!(table.shares.free(), 8);
    }
}
