//! How much room this store has for more. Asking the system may take long, so it is asked away from the async threads.

use std::sync::Arc;

use simshard_storage::Room;
use tokio::time::{MissedTickBehavior, interval};

use super::Peers;
use super::health::INTERVAL;
use crate::engine::Engine;

/// After this number of looks in a row, about five seconds, a store lacks room: by then it knows whether others do.
const PATIENT_LOOKS: u32 = 25;

/// Asks again and again, as long as it is polled.
pub(super) async fn run(peers: &Peers, engine: &Arc<Engine>) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let engine = Arc::clone(engine);
        let look = move || (engine.room(), engine.bytes_for_copies());
        if let Ok((room, bytes)) = tokio::task::spawn_blocking(look).await {
            peers.room.send_replace(room);
            peers.bytes_for_copies.send_replace(bytes);
        }
    }
}

/// What was seen of the room over time.
#[derive(Debug, Default)]
pub(super) struct OwnRoom {
    /// The number of looks in a row that saw little.
    looks: u32,
    /// Whether the store has left shards for it, and has had no ample room since.
    has_left: bool,
}

impl OwnRoom {
    /// Looks once more.
    pub(super) fn look(&mut self, room: Room) {
        self.looks = if room <= Room::Little {
            self.looks.saturating_add(1)
        } else {
            0
        };
        self.has_left &= room != Room::Ample;
    }

    /// Whether the store has had little room for some time.
    pub(super) const fn is_lacking(&self) -> bool {
        self.looks >= PATIENT_LOOKS
    }

    /// Takes note that the store has left shards as it lacks room.
    pub(super) const fn note_leaving(&mut self) {
        self.has_left = true;
    }

    /// Whether the store stays away from shards as it lacked room.
    pub(super) const fn stays_away(&self) -> bool {
        self.has_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(own: &mut OwnRoom, room: Room, looks: u32) {
        for _ in 0..looks {
            own.look(room);
        }
    }

    /// PE15: others say so meanwhile, if they lack room too.
    #[test]
    fn a_store_lacks_room_only_once_it_has_had_little_for_some_time() {
        let mut own = OwnRoom::default();
        look(&mut own, Room::Little, PATIENT_LOOKS - 1);
        assert!(!own.is_lacking());
        own.look(Room::None);
        assert!(own.is_lacking());
        own.look(Room::Enough);
        assert!(!own.is_lacking());
        look(&mut own, Room::Little, PATIENT_LOOKS - 1);
        assert!(!own.is_lacking());
    }

    /// PE15: else it would come and leave again and again.
    #[test]
    fn a_store_that_left_stays_away_until_it_has_ample_room() {
        let mut own = OwnRoom::default();
        own.look(Room::Enough);
        assert!(!own.stays_away());
        own.note_leaving();
        look(&mut own, Room::Enough, PATIENT_LOOKS * 2);
        assert!(own.stays_away());
        own.look(Room::Ample);
        assert!(!own.stays_away());
    }
}
