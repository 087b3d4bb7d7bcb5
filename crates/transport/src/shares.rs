//! Fair shares of something scarce. Peers are told apart by their IP address.
//!
//! # Invariants
//! - FR1: the peers together never hold more than the limit.
//! - FR2: a peer gets more only if it will then hold no more than was free before. So one peer alone gets half of the
//!   limit, two get a third each, and a newcomer finds something free.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IPv4 address, or a /64 of IPv6: a single machine often has all addresses of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer(IpAddr);

impl Peer {
    /// All those without a known address, as in tests.
    pub const UNKNOWN: Self = Self(IpAddr::V4(Ipv4Addr::UNSPECIFIED));

    /// The peer that an address belongs to.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        let prefix = |address: Ipv6Addr| Ipv6Addr::from_bits(address.to_bits() >> 64 << 64);
        Self(match address.to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => IpAddr::V6(prefix(address)),
        })
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The shares of all peers in a limited amount.
#[derive(Debug)]
pub(super) struct Shares {
    free: usize,
    by_peer: HashMap<Peer, usize>,
}

impl Shares {
    /// This amount, all of it free.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            free: limit,
            by_peer: HashMap::new(),
        }
    }

    pub(super) const fn free(&self) -> usize {
        self.free
    }

    /// The share of a peer.
    pub(super) fn held(&self, peer: Peer) -> usize {
        self.by_peer.get(&peer).copied().unwrap_or_default()
    }

    /// Gives a peer more if its share allows it; returns whether it does.
    pub(super) fn try_take(&mut self, peer: Peer, amount: usize) -> bool {
        let is_fair = self.held(peer).saturating_add(amount) <= self.free;
        if is_fair {
            self.free -= amount;
            *self.by_peer.entry(peer).or_default() += amount;
        }
        is_fair
    }

    /// Takes back what a peer held.
    pub(super) fn give_back(&mut self, peer: Peer, amount: usize) {
        let left = self.held(peer) - amount;
        self.free += amount;
        match left {
            0 => self.by_peer.remove(&peer),
            _ => self.by_peer.insert(peer, left),
        };
    }

    /// Moves some of what one peer holds to another, whatever their shares are.
    pub(super) fn hand_over(&mut self, from: Peer, to: Peer, amount: usize) {
        self.give_back(from, amount);
        self.free -= amount;
        *self.by_peer.entry(to).or_default() += amount;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Peer {
        Peer::of(address.parse().unwrap())
    }

    #[test]
    fn an_ipv4_address_is_a_peer_and_so_is_a_64_of_ipv6() {
        assert_ne!(peer("127.0.0.1"), peer("127.0.0.2"));
        assert_eq!(peer("127.0.0.1"), peer("::ffff:127.0.0.1"));
        assert_eq!(peer("2001:db8:0:1::1"), peer("2001:db8:0:1:ffff::2"));
        assert_ne!(peer("2001:db8:0:1::1"), peer("2001:db8:0:2::1"));
    }

    /// FR2.
    #[test]
    fn each_of_n_greedy_peers_gets_one_part_of_n_plus_1() {
        for peers in [1, 2, 3, 7] {
            let mut shares = Shares::new(1200);
            let names: Vec<Peer> = (1..=peers)
                .map(|number| peer(&format!("10.0.0.{number}")))
                .collect();
            loop {
                let taken = names.iter().filter(|name| shares.try_take(**name, 1));
                if taken.count() == 0 {
                    break;
                }
            }
            let fair = 1200 / (peers + 1);
            assert!(names.iter().all(|name| shares.held(*name) == fair));
            assert!(shares.try_take(peer("10.1.0.0"), fair), "{peers} peers");
        }
    }

    /// FR1.
    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let (one, two) = (peer("10.0.0.1"), peer("10.0.0.2"));
        let mut shares = Shares::new(8);
        assert!(!shares.try_take(one, 9));
        assert!(shares.try_take(one, 4));
        assert!(!shares.try_take(one, 1));
        assert!(shares.try_take(two, 2));
        shares.hand_over(one, two, 3);
        assert_eq!((shares.held(one), shares.held(two)), (1, 5));
        assert_eq!(shares.free(), 2);
        shares.give_back(two, 5);
        shares.give_back(one, 1);
        assert_eq!(shares.free(), 8);
        assert!(shares.by_peer.is_empty());
    }
}
