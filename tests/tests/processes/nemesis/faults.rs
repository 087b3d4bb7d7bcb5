//! What may happen to a cluster on hosts of its own, and how it is taken back.

use fastrand::Rng;
use simshard_testkit::{ClusterPart, HostCluster};

use super::oracle::Skew;

/// By how much clocks are wrong, in seconds.
const SHIFT: i64 = 300;

/// When a copy was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyOf {
    Now,
    Before,
}

/// Something that is done to a cluster.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    Kill(ClusterPart),
    Stop(ClusterPart),
    Freeze(ClusterPart),
    /// The data of a node are lost.
    Wipe(usize),
    /// They are as they were when they were last copied: when this began, or before.
    RollBack(usize, CopyOf),
    /// Packets from the first to the second are lost.
    Cut(Vec<(ClusterPart, ClusterPart)>),
    RestartEtcd,
    Compact,
    ShiftClock(ClusterPart, i64),
}

impl Fault {
    /// Any that may happen to a cluster with these numbers of nodes and routers.
    pub(super) fn any(random: &mut Rng, nodes: usize, routers: usize, has_network: bool) -> Self {
        let node = random.usize(..nodes);
        let part = match random.usize(..nodes + 1) {
            0 => ClusterPart::Router(random.usize(..routers)),
            _ => ClusterPart::Node(node),
        };
        match random.u8(..if has_network { 20 } else { 13 }) {
            0..3 => Self::Kill(part),
            3 => Self::Stop(part),
            4..6 => Self::Freeze(part),
            6 => Self::Freeze(ClusterPart::Etcd),
            7 => Self::Wipe(node),
            8 => Self::RollBack(
                node,
                if random.bool() {
                    CopyOf::Now
                } else {
                    CopyOf::Before
                },
            ),
            9 => Self::RestartEtcd,
            10 => Self::Compact,
            11..13 => Self::ShiftClock(part, if random.bool() { SHIFT } else { -SHIFT }),
            _ => Self::Cut(cuts(random, node, nodes, routers)),
        }
    }

    /// Whether the data of a node are lost.
    pub(super) const fn loses_data(&self) -> bool {
        matches!(self, Self::Wipe(_) | Self::RollBack(..))
    }

    /// Whether some router takes changes meanwhile: none does once the clock of a node is far behind.
    pub(super) const fn lets_change(&self) -> bool {
        !matches!(self, Self::ShiftClock(..))
    }

    /// Takes the data of a node that has ended.
    pub(super) fn lose_data(&self, cluster: &mut HostCluster) {
        if let Self::Wipe(node) = self {
            cluster.lose_data(*node);
        }
        if let Self::RollBack(node, _) = self {
            cluster.roll_back(*node);
        }
    }

    /// Whether two faults may happen at once: one is not done to a part that does not run.
    pub(super) fn goes_with(&self, other: &Self) -> bool {
        let is_apart = self
            .parts()
            .iter()
            .all(|part| !other.parts().contains(part));
        let keeps_replicas = |fault: &Self| matches!(fault, Self::ShiftClock(..) | Self::Compact);
        let rolls_back = matches!(other, Self::RollBack(..));
        is_apart && !self.loses_data() && (!rolls_back || keeps_replicas(self))
    }

    /// The parts that it stops or changes.
    fn parts(&self) -> Vec<ClusterPart> {
        match self {
            Self::Kill(part) | Self::Stop(part) | Self::Freeze(part) => vec![*part],
            // A clock is shifted of processes that do not run as well.
            Self::ShiftClock(part, _) => vec![*part],
            Self::Wipe(node) | Self::RollBack(node, _) => vec![ClusterPart::Node(*node)],
            Self::Cut(_) => vec![],
            Self::RestartEtcd | Self::Compact => vec![ClusterPart::Etcd],
        }
    }

    pub(super) fn begin(&self, cluster: &mut HostCluster, skew: &Skew) {
        match self {
            Self::Kill(part) => cluster.kill(*part),
            Self::Stop(part) => cluster.stop(*part),
            Self::Freeze(part) => cluster.freeze(*part),
            Self::Wipe(node) => cluster.kill(ClusterPart::Node(*node)),
            Self::RollBack(node, copy) => {
                if *copy == CopyOf::Now || !cluster.has_copy(*node) {
                    cluster.copy_data(*node);
                }
            }
            Self::Cut(links) => links.iter().for_each(|&(from, to)| cluster.cut(from, to)),
            Self::RestartEtcd => cluster.etcd().stop(),
            Self::Compact => cluster.etcd().compact(),
            Self::ShiftClock(part, seconds) => {
                skew.begin();
                cluster.shift_clock(*part, *seconds);
            }
        }
    }

    pub(super) fn end(&self, cluster: &mut HostCluster, skew: &Skew) {
        match self {
            Self::Kill(part) | Self::Stop(part) => cluster.start_part(*part),
            Self::Freeze(part) => cluster.thaw(*part),
            Self::Wipe(node) | Self::RollBack(node, _) => {
                cluster.start_part(ClusterPart::Node(*node));
            }
            Self::Cut(links) => links.iter().for_each(|&(from, to)| cluster.mend(from, to)),
            Self::RestartEtcd => cluster.etcd().restart(),
            Self::Compact => {}
            Self::ShiftClock(part, _) => {
                cluster.shift_clock(*part, 0);
                skew.end();
            }
        }
    }
}

/// The links that are cut: of a node to all others, to all but etcd, to etcd, or to one; both ways, or one.
fn cuts(
    random: &mut Rng,
    node: usize,
    nodes: usize,
    routers: usize,
) -> Vec<(ClusterPart, ClusterPart)> {
    let own = ClusterPart::Node(node);
    let other_nodes = (0..nodes)
        .filter(|other| *other != node)
        .map(ClusterPart::Node);
    let mut others: Vec<ClusterPart> = other_nodes
        .chain((0..routers).map(ClusterPart::Router))
        .collect();
    let kind = random.u8(..4);
    if kind > 0 {
        others.push(ClusterPart::Etcd);
    }
    let others = match kind {
        0 | 1 => others,
        2 => vec![ClusterPart::Etcd],
        _ => vec![others[random.usize(..others.len())]],
    };
    let both = others
        .into_iter()
        .flat_map(|other| [(own, other), (other, own)]);
    let direction = random.u8(..4);
    let is_cut = |&(from, _): &(ClusterPart, ClusterPart)| match direction {
        0 => from == own,
        1 => from != own,
        _ => true,
    };
    both.filter(is_cut).collect()
}
