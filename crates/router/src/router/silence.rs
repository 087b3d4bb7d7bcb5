//! Noticing soon that a node does not answer at all, where another replica may: a process that is frozen, or cut off,
//! keeps its connections.
//!
//! # Invariants
//! - SL1: a search gives up a silent node only where each shard of its part has another replica that may answer.
//! - SL2: silence says nothing about a node while this process itself is late.

use std::collections::BTreeSet;
use std::future::ready;
use std::time::Duration;

use futures_util::future::join_all;
use simshard_proto::shard::v1 as pb;
use simshard_proto::shard::v1::work_item::Work;
use simshard_topology::{NodeId, ShardSet};
use simshard_transport::WorkKind;
use tokio::time::{Instant, sleep, timeout};

use crate::cluster::{ClusterView, WatchedCluster};
use crate::deadline::Deadline;
use crate::nodes::CallError;
use crate::readers::{Avoided, others};

/// How long a node has for its work before it is asked for a sign of life, again and again.
const SIGN_AFTER: Duration = Duration::from_millis(60);

/// How long it has for that.
const SIGN_WITHIN: Duration = Duration::from_millis(80);

/// What a search asks of a node, and who may answer instead.
pub(super) struct AskedNode<'a> {
    pub(super) watched: &'a WatchedCluster,
    pub(super) cluster: &'a ClusterView,
    pub(super) avoided: &'a Avoided,
    pub(super) node: &'a NodeId,
    pub(super) shards: ShardSet,
}

/// Waits for an answer of a node as long as a shard is still the node's. The node must also give signs of life, or no
/// other may answer (SL1).
pub(super) async fn unless_lost<A>(
    around: &AskedNode<'_>,
    answer: impl Future<Output = Result<A, CallError>>,
) -> Result<A, CallError> {
    let lost = async {
        sleep(SIGN_AFTER).await;
        tokio::select! {
            () = around.silence() => CallError::Silent,
            () = around.watched.left(around.node, around.shards) => CallError::WrongEpoch,
        }
    };
    tokio::select! {
        biased;
        answer = answer => answer,
        lost = lost => Err(lost),
    }
}

/// Waits for an answer of a node as long as the node gives signs of life.
pub(super) async fn unless_silent<A>(
    cluster: &ClusterView,
    node: &NodeId,
    answer: impl Future<Output = Result<A, CallError>>,
) -> Result<A, CallError> {
    let silence = async {
        sleep(SIGN_AFTER).await;
        while lives(cluster, node).await {
            sleep(SIGN_AFTER).await;
        }
    };
    tokio::select! {
        biased;
        answer = answer => answer,
        () = silence => Err(CallError::Silent),
    }
}

impl AskedNode<'_> {
    /// Waits until the node gives no sign of life, and others may answer.
    async fn silence(&self) {
        loop {
            let silent = self.silent_others().into_iter();
            let all = [self.node].into_iter().chain(silent);
            let signs = join_all(all.map(|node| lives(self.cluster, node))).await;
            if !signs[0] && self.have_others() {
                return;
            }
            sleep(SIGN_AFTER).await;
        }
    }

    /// The other replicas that may answer, and gave no sign of life a moment ago: if they give one now, they count.
    fn silent_others(&self) -> BTreeSet<&NodeId> {
        let layout = &self.cluster.layout;
        let shards = self.shards.iter();
        let others = shards.flat_map(|shard| others(layout, self.node, shard, self.avoided));
        others
            .filter(|other| self.cluster.nodes.is_silent(other))
            .collect()
    }

    /// Whether each shard has another replica that may answer, if it gives signs of life.
    fn have_others(&self) -> bool {
        let layout = &self.cluster.layout;
        let mut shards = self.shards.iter();
        shards.all(|shard| {
            let mut others = others(layout, self.node, shard, self.avoided);
            others.any(|other| !self.cluster.nodes.is_silent(other))
        })
    }
}

/// Asks a node for a sign of life: that it says that it confirms nothing. Takes note if there is none.
async fn lives(cluster: &ClusterView, node: &NodeId) -> bool {
    let nothing = pb::Confirm {
        store: vec![0; 16],
        ..pb::Confirm::default()
    };
    let asked = Instant::now();
    let work = || ready(Ok(Work::Confirm(nothing.clone())));
    let deadline = Deadline::within(SIGN_WITHIN);
    let sign = cluster
        .nodes
        .work(node, deadline, WorkKind::Confirm(0), work);
    let sign = timeout(SIGN_WITHIN, sign).await;
    let is_silent = is_silence(&sign, asked.elapsed());
    if is_silent {
        cluster.nodes.note_silent(node);
    }
    !is_silent
}

/// Whether a node has given no sign of life, when this process came to look after so long (SL2).
fn is_silence<A, E>(sign: &Result<Result<A, CallError>, E>, took: Duration) -> bool {
    let is_there = match sign {
        Ok(Ok(_)) => true,
        Ok(Err(error)) => match error {
            CallError::Unreachable | CallError::Late | CallError::Silent => false,
            CallError::NotLoaded
            | CallError::WrongEpoch
            | CallError::Cold(_)
            | CallError::NoMemory
            | CallError::Refused(_) => true,
        },
        Err(_) => false,
    };
    !is_there && took < 2 * SIGN_WITHIN
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::net::TcpListener;
    use std::sync::Arc;

    use simshard_cluster::{ClusterLayout, Node};
    use simshard_topology::ShardId;
    use tokio::sync::watch;

    use super::*;
    use crate::nodes::Access;

    /// A cluster whose nodes keep connections and say nothing, with this many replicas of each shard.
    struct Frozen {
        _listeners: Vec<TcpListener>,
        layouts: watch::Sender<Arc<ClusterLayout>>,
        watched: WatchedCluster,
        cluster: Arc<ClusterView>,
    }

    fn frozen(nodes: usize, replicas: usize) -> Frozen {
        let listeners: Vec<_> = (0..nodes)
            .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
            .collect();
        let address = |listener: &TcpListener| format!("http://{}", listener.local_addr().unwrap());
        let nodes = listeners.iter().zip(1..).map(|(listener, number)| Node {
            id: node(number),
            address: address(listener),
        });
        let layout = ClusterLayout::planned(nodes.collect(), replicas).unwrap();
        let (layouts, followed) = watch::channel(Arc::new(layout));
        let watched = WatchedCluster::new(followed, Access::of_tests()).unwrap();
        Frozen {
            _listeners: listeners,
            layouts,
            cluster: watched.view(),
            watched,
        }
    }

    fn node(number: usize) -> NodeId {
        NodeId::new(&format!("n{number}")).unwrap()
    }

    impl Frozen {
        /// Waits for an answer of a node about all its shards, which does not come.
        async fn ask(&self, node: &NodeId, avoided: &Avoided) -> CallError {
            let around = AskedNode {
                watched: &self.watched,
                cluster: &self.cluster,
                avoided,
                node,
                shards: self.cluster.layout.map().shards_of(node),
            };
            let never = pending::<Result<(), CallError>>();
            unless_lost(&around, never).await.unwrap_err()
        }

        /// The same, for a while.
        async fn ask_shortly(&self, node: &NodeId, avoided: &Avoided) -> Option<CallError> {
            let asked = timeout(4 * (SIGN_AFTER + SIGN_WITHIN), self.ask(node, avoided)).await;
            asked.ok()
        }
    }

    fn down(nodes: &[usize]) -> Avoided {
        Avoided {
            down: nodes.iter().copied().map(node).collect(),
            ..Avoided::default()
        }
    }

    /// SL1.
    #[tokio::test]
    async fn a_silent_node_is_given_up_if_others_may_answer_and_else_waited_for() {
        let frozen = frozen(3, 3);
        let silent = frozen.ask(&node(1), &Avoided::default()).await;
        assert!(matches!(silent, CallError::Silent), "{silent:?}");
        assert!(frozen.cluster.nodes.is_silent(&node(1)));
        // Another one that may answer is left.
        let silent = frozen.ask(&node(2), &down(&[1])).await;
        assert!(matches!(silent, CallError::Silent), "{silent:?}");
        assert!(frozen.ask_shortly(&node(3), &down(&[1, 2])).await.is_none());
        let cold = Avoided {
            cold: [(node(2), ShardSet::ALL)].into(),
            ..down(&[1])
        };
        assert!(frozen.ask_shortly(&node(3), &cold).await.is_none());
        // The others are as silent.
        for other in [1, 2] {
            frozen.cluster.nodes.note_silent(&node(other));
        }
        assert!(
            frozen
                .ask_shortly(&node(3), &Avoided::default())
                .await
                .is_none()
        );
    }

    #[tokio::test]
    async fn a_silent_node_is_waited_for_until_its_shards_are_others() {
        let frozen = frozen(2, 2);
        let (first, others) = (node(1), down(&[2]));
        let asked = frozen.ask(&first, &others);
        let mut asked = std::pin::pin!(asked);
        assert!(
            timeout(2 * (SIGN_AFTER + SIGN_WITHIN), &mut asked)
                .await
                .is_err()
        );
        let left = frozen.cluster.layout.node(&node(2)).unwrap().clone();
        let layout = ClusterLayout::planned(vec![left], 1).unwrap();
        frozen.layouts.send_replace(Arc::new(layout));
        let left = timeout(SIGN_AFTER, asked).await.unwrap();
        assert!(matches!(left, CallError::WrongEpoch), "{left:?}");
    }

    /// SL2.
    #[test]
    fn silence_says_nothing_to_a_process_that_was_late_itself() {
        let (answered, nothing) = (Ok::<_, ()>(Ok(ShardId(1))), Err(()));
        assert!(!is_silence(&answered, SIGN_WITHIN));
        assert!(!is_silence(
            &Ok::<Result<(), _>, ()>(Err(CallError::NoMemory)),
            SIGN_WITHIN
        ));
        assert!(is_silence::<(), _>(&nothing, SIGN_WITHIN));
        assert!(!is_silence::<(), _>(&nothing, 2 * SIGN_WITHIN));
    }
}
