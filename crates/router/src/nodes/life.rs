//! What a router knows of the life of a node: whether it can be reached, and gives signs of life.
//!
//! # Invariants
//! - LF1: the log says once that a node is lost or silent, and once that it answers again, whatever number of requests
//!   meets it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use simshard_topology::{NodeId, ShardSet};
use tokio::time::Instant;
use tracing::{info, warn};

/// A node that was unreachable within this time is tried once only: else every request would take the time of all
/// retries.
const UNREACHABLE_FOR: Duration = Duration::from_secs(1);

/// How long requests go around a node that gave no sign of life, unless it gives one.
const SILENT_FOR: Duration = Duration::from_secs(1);

/// The life of one node.
#[derive(Debug)]
pub(super) struct Life {
    node: NodeId,
    trouble: Mutex<Trouble>,
}

/// What is wrong with it.
#[derive(Debug, Default)]
struct Trouble {
    /// When it was last found unreachable, and not reached since.
    lost: Option<Instant>,
    /// When it last gave no sign of life, and has given none since.
    silent: Option<Instant>,
    /// The shards that it said it cannot read.
    damaged: ShardSet,
}

impl Trouble {
    const fn is_well(&self) -> bool {
        self.lost.is_none() && self.silent.is_none()
    }
}

/// The lives of all nodes that a router has known. A node that left the layout and comes back has its life still, so the
/// log says that it answers again.
#[derive(Debug, Default)]
pub(super) struct Lives(Mutex<HashMap<NodeId, Arc<Life>>>);

impl Lives {
    /// The life of a node that connections are made to. What it said of damage was of another time.
    pub(super) fn of(&self, node: &NodeId) -> Arc<Life> {
        let mut lives = self.0.lock();
        let life = lives.entry(node.clone());
        let life = life.or_insert_with(|| Arc::new(Life::new(node.clone())));
        life.trouble.lock().damaged = ShardSet::EMPTY;
        Arc::clone(life)
    }
}

impl Life {
    pub(super) fn new(node: NodeId) -> Self {
        let trouble = Mutex::default();
        Self { node, trouble }
    }

    /// Takes note that it cannot be reached. Returns whether that is news.
    pub(super) fn note_lost(&self) -> bool {
        self.note_trouble("a node cannot be reached", |trouble, now| {
            trouble.lost = Some(now);
        })
    }

    /// Takes note that it gives no sign of life. Returns whether that is news.
    pub(super) fn note_silent(&self) -> bool {
        self.note_trouble("a node gives no sign of life", |trouble, now| {
            trouble.silent = Some(now);
        })
    }

    fn note_trouble(&self, says: &str, change: impl FnOnce(&mut Trouble, Instant)) -> bool {
        let mut trouble = self.trouble.lock();
        let is_news = trouble.is_well();
        change(&mut trouble, Instant::now());
        if is_news {
            warn!(node = %self.node, "{says}");
        }
        is_news
    }

    /// Takes note of a sign of life: a message, whatever it says. Returns whether it is well again.
    pub(super) fn note_sign(&self) -> bool {
        self.note_well(|trouble| trouble.silent = None)
    }

    /// Takes note that it has answered. Returns whether it is well again.
    pub(super) fn note_answer(&self) -> bool {
        self.note_well(|trouble| (trouble.lost, trouble.silent) = (None, None))
    }

    fn note_well(&self, change: impl FnOnce(&mut Trouble)) -> bool {
        let mut trouble = self.trouble.lock();
        if trouble.is_well() {
            return false;
        }
        change(&mut trouble);
        let is_news = trouble.is_well();
        if is_news {
            info!(node = %self.node, "a node answers again");
        }
        is_news
    }

    /// Takes note that it cannot read shards, as it says. Returns whether that is news.
    pub(super) fn note_damage(&self, shards: ShardSet, says: &str) -> bool {
        let mut trouble = self.trouble.lock();
        let is_news = !shards.difference(&trouble.damaged).is_empty();
        trouble.damaged = trouble.damaged.union(&shards);
        if is_news {
            warn!(node = %self.node, %shards, says, "a node cannot read shards, others answer for it");
        }
        is_news
    }

    /// Whether it was unreachable a moment ago.
    pub(super) fn was_lost_lately(&self) -> bool {
        let lost = self.trouble.lock().lost;
        lost.is_some_and(|lost| lost.elapsed() < UNREACHABLE_FOR)
    }

    /// Whether it gave no sign of life a moment ago.
    pub(super) fn is_silent(&self) -> bool {
        let silent = self.trouble.lock().silent;
        silent.is_some_and(|silent| silent.elapsed() < SILENT_FOR)
    }
}

#[cfg(test)]
mod tests {
    use simshard_topology::ShardId;
    use tokio::time::advance;

    use super::*;

    fn life() -> Life {
        Life::new(NodeId::new("n1").unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_remembered_for_a_moment_unless_there_is_a_sign_of_life() {
        let life = life();
        assert!(!life.is_silent());
        life.note_silent();
        assert!(life.is_silent());
        advance(SILENT_FOR).await;
        assert!(!life.is_silent());
        life.note_silent();
        life.note_sign();
        assert!(!life.is_silent());
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_node_was_lost_lately_until_it_answers() {
        let life = life();
        life.note_lost();
        life.note_sign();
        assert!(life.was_lost_lately());
        life.note_answer();
        assert!(!life.was_lost_lately());
        life.note_lost();
        advance(UNREACHABLE_FOR).await;
        assert!(!life.was_lost_lately());
    }

    /// LF1: it was taken out of the layout meanwhile.
    #[test]
    fn a_node_that_comes_back_to_the_layout_answers_again() {
        let (lives, node) = (Lives::default(), NodeId::new("n1").unwrap());
        assert!(lives.of(&node).note_lost());
        assert!(lives.of(&node).note_answer());
        assert!(!lives.of(&node).note_answer());
    }

    /// LF1.
    #[tokio::test(start_paused = true)]
    async fn what_becomes_of_a_node_is_news_once() {
        let life = life();
        assert!(!life.note_answer());
        assert!(life.note_silent());
        for _ in 0..3 {
            assert!(!life.note_silent());
            assert!(!life.note_lost());
            advance(2 * SILENT_FOR).await;
        }
        // It says something, but not yet what it is asked.
        assert!(!life.note_sign());
        assert!(life.note_answer());
        assert!(!life.note_answer());
        assert!(life.note_lost());
        let shards = |shards: &[u8]| shards.iter().copied().map(ShardId).collect();
        assert!(life.note_damage(shards(&[1, 2]), "damaged"));
        assert!(!life.note_damage(shards(&[2]), "damaged"));
        assert!(life.note_damage(shards(&[2, 3]), "damaged"));
    }
}
