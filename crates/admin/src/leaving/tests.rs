//! Where shards go of nodes that are to hold nothing, with nodes that are dead.

use std::collections::BTreeMap;
use std::sync::Arc;

use simshard_cluster::{MemoryKeyValues, NodeSettings, SettingsOfNodes, Targets};
use simshard_node::Dialer;
use simshard_node::StoreAnswer;
use simshard_topology::replication::{Epoch, ShardRecord, ShardRecords, StoreId};

use super::*;
use crate::asked::tests::news;
use crate::asked::{Cluster, Reports};
use crate::scene;

fn id(number: u8) -> StoreId {
    StoreId([number; 16])
}

fn node(number: u8) -> NodeId {
    NodeId::new(&format!("n{number}")).unwrap()
}

fn set(numbers: &[u8]) -> BTreeSet<NodeId> {
    numbers.iter().map(|number| node(*number)).collect()
}

/// A cluster of nodes by their numbers.
pub(crate) struct Scene {
    pub(crate) nodes: u8,
    pub(crate) dead: Vec<u8>,
    pub(crate) drained: Vec<u8>,
    pub(crate) want: u8,
}

/// How a shard is held, and where it is to be, if that was said.
pub(crate) type Held = (Vec<u8>, Option<Vec<u8>>);

impl Scene {
    fn cluster(&self) -> Cluster {
        let reports: Reports = ShardId::all().map(|shard| (shard, Epoch::FIRST)).collect();
        let alive = (1..=self.nodes).filter(|number| !self.dead.contains(number));
        let answers = alive.map(|number| {
            let answer = StoreAnswer::News(news(reports.clone()));
            (id(number), answer)
        });
        let drained = |number: &u8| {
            let settings = NodeSettings {
                is_drained: true,
                ..NodeSettings::default()
            };
            (node(*number), settings)
        };
        let settings: SettingsOfNodes = self.drained.iter().map(drained).collect();
        Cluster::of_test(
            (1..=self.nodes).map(scene::store).collect(),
            answers.collect(),
            settings,
        )
    }

    pub(crate) fn layout(&self, held: impl Fn(ShardId) -> Held) -> Layout {
        let (mut records, mut targets) = (ShardRecords::new(), Targets::new());
        for shard in ShardId::all() {
            let (in_sync, target) = held(shard);
            let in_sync: Vec<StoreId> = in_sync.into_iter().map(id).collect();
            let record = ShardRecord::first(0, &in_sync, 7).with_want(self.want);
            records.insert(shard, Arc::new(record));
            if let Some(target) = target {
                targets.insert(shard, set(&target));
            }
        }
        Layout::of(self.cluster(), records, &targets).unwrap()
    }
}

fn drain(layout: &Layout, leaving: &[u8]) -> Result<Leaving, String> {
    let keys = MemoryKeyValues::new();
    let admin = Admin::new(&keys, &Dialer::PLAIN, &|_| {});
    let drained = layout.drained(&admin, &set(leaving));
    drained.map_err(|error| error.to_string())
}

/// Those without a target are not, nor those that are where they are to be.
#[test]
fn shards_are_on_their_way_until_those_hold_them_that_are_to() {
    let scene = Scene {
        nodes: 3,
        dead: vec![],
        drained: vec![],
        want: 2,
    };
    let target = |shard: ShardId| match shard.0 {
        1 => Some(vec![1, 2]),
        2 => Some(vec![1, 3]),
        _ => None,
    };
    let layout = scene.layout(|shard| (vec![1, 2], target(shard)));
    assert_eq!(layout.on_their_way(), ShardSet::from_iter([ShardId(2)]));
}

/// Of three replicas, each shard lacks two of five nodes.
fn thirds(shard: ShardId) -> Vec<u8> {
    (0..3).map(|place| (shard.0 % 5 + place) % 5 + 1).collect()
}

#[test]
fn a_node_that_is_drained_gives_up_its_shards_and_others_keep_theirs() {
    let scene = Scene {
        nodes: 6,
        dead: vec![],
        drained: vec![],
        want: 3,
    };
    // n6 has joined, and holds nothing.
    let layout = scene.layout(|shard| (thirds(shard), None));
    let leaving = drain(&layout, &[2]).unwrap();
    for shard in ShardId::all() {
        let (before, after) = (
            nodes_of(&layout.map, shard),
            nodes_of(&leaving.after, shard),
        );
        assert_eq!(after.len(), 3);
        assert!(!after.contains(&node(2)));
        let left: BTreeSet<NodeId> = before.difference(&set(&[2])).cloned().collect();
        assert!(left.is_subset(&after), "{shard}: {before:?} {after:?}");
    }
    assert_eq!(leaving.shards, layout.map.shards_of(&node(2)));
    assert!(leaving.unmet.is_empty());
    let empty = drain(&layout, &[6]).unwrap();
    assert!(empty.shards.is_empty() && empty.after == layout.map);
}

/// Six nodes, of which two are dead. The others went on without these, which are to hold their shards still.
fn two_dead() -> Layout {
    let scene = Scene {
        nodes: 6,
        dead: vec![1, 2],
        drained: vec![],
        want: 3,
    };
    scene.layout(|shard| {
        let all = thirds(shard);
        let alive = all.iter().copied().filter(|number| *number > 2);
        (alive.collect(), Some(all))
    })
}

#[test]
fn a_dead_node_is_no_hindrance_gets_nothing_and_keeps_what_it_holds() {
    let layout = two_dead();
    let leaving = drain(&layout, &[1]).unwrap();
    for shard in ShardId::all() {
        let (before, after) = (
            nodes_of(&layout.map, shard),
            nodes_of(&leaving.after, shard),
        );
        assert!(after.len() == 3 && !after.contains(&node(1)));
        assert_eq!(
            before.contains(&node(2)),
            after.contains(&node(2)),
            "{shard}"
        );
    }
    assert_eq!(leaving.unmet.len(), 1, "{:?}", leaving.unmet);
    assert!(leaving.unmet[0].starts_with("n2 does not answer: it keeps shards"));
    // One that lives leaves some shards only once the dead one is back.
    let of_living = drain(&layout, &[3]).unwrap().unmet.join("\n");
    assert!(
        of_living.contains("and n3 holds them too until n1 answers, or is drained"),
        "{of_living}"
    );
    let both = drain(&layout, &[1, 2]).unwrap();
    assert!(both.unmet.is_empty());
    let held = |number| both.after.shards_of(&node(number)).len();
    assert_eq!((held(1), held(2)), (0, 0));
}

#[test]
fn a_drained_node_takes_no_part() {
    let scene = Scene {
        nodes: 5,
        dead: vec![],
        drained: vec![5],
        want: 1,
    };
    let layout = scene.layout(|shard| (vec![shard.0 % 2 + 1], None));
    let leaving = drain(&layout, &[1]).unwrap();
    assert!(leaving.after.shards_of(&node(5)).is_empty());
    assert!(leaving.balance.unwrap().after < 1.6);
}

#[test]
fn a_drain_for_which_there_are_too_few_nodes_names_each_way_out() {
    let mut scene = Scene {
        nodes: 3,
        dead: vec![3],
        drained: vec![],
        want: 3,
    };
    let held = |_| (vec![1, 2], Some(vec![1, 2, 3]));
    let refused = drain(&scene.layout(held), &[3]).err().unwrap();
    assert!(
        refused.ends_with(
            "3 are needed, and there would be 2 that may take shards. To go on, add 1 node, or ask for fewer replicas by \
             `simshard cluster set-replication --replicas 2`"
        ),
        "{refused}"
    );
    scene.nodes = 4;
    scene.drained = vec![4];
    let refused = drain(&scene.layout(held), &[2]).err().unwrap();
    assert!(
        refused.contains("To go on, start n3, or undrain n4, or add 2 nodes, or"),
        "{refused}"
    );
}

#[test]
fn shards_that_no_node_could_copy_are_named_with_the_way_out() {
    let scene = Scene {
        nodes: 3,
        dead: vec![1],
        drained: vec![],
        want: 1,
    };
    let layout = scene.layout(|shard| (vec![shard.0 / 0x80 + 1], None));
    let refused = drain(&layout, &[1]).err().unwrap();
    let problem = "no node that answers holds shards 00-7f in sync, so none can copy them: start n1; if the data is gone \
                   for good, begin these shards anew by `simshard cluster force --rebuild --from NODE --stopped n1`";
    assert_eq!(refused, problem);
    let replaced = layout.replaced(&node(1), &node(3)).err().unwrap();
    assert_eq!(replaced.to_string(), problem);
    assert!(layout.check_movable(ShardSet::ALL).is_err());
    // What the others hold moves.
    let of_n2 = drain(&layout, &[2]).unwrap();
    assert_eq!(of_n2.after.shards_of(&node(3)).len(), 128);
}

#[test]
fn shards_whose_records_cannot_change_are_named_with_the_way_out() {
    let scene = Scene {
        nodes: 6,
        dead: vec![1, 2],
        drained: vec![],
        want: 3,
    };
    let mut layout = scene.layout(|_| (vec![1, 2, 3], None));
    for record in layout.records.values_mut() {
        let previous = [1, 2, 3].map(id);
        Arc::make_mut(record).previous = previous.to_vec();
    }
    let refused = drain(&layout, &[1]).err().unwrap();
    assert!(
        refused.starts_with("shards 00-ff cannot move while they wait for n1,n2: start one of"),
        "{refused}"
    );
}

/// The command was cut off, and is run again: all is on its way already.
#[test]
fn what_is_on_its_way_stays_on_it() {
    let scene = Scene {
        nodes: 3,
        dead: vec![],
        drained: vec![1],
        want: 1,
    };
    let layout = scene.layout(|_| (vec![1], Some(vec![3])));
    let again = drain(&layout, &[1]).unwrap();
    assert_eq!(again.shards, ShardSet::ALL);
    assert_eq!(again.after.shards_of(&node(3)), ShardSet::ALL);
    let replaced = layout.replaced(&node(1), &node(3)).unwrap();
    assert_eq!(replaced.after.shards_of(&node(3)), ShardSet::ALL);
}

#[test]
fn a_node_takes_the_place_of_a_dead_one_though_another_one_is_dead() {
    let layout = two_dead();
    let replaced = layout.replaced(&node(1), &node(6)).unwrap();
    assert_eq!(
        replaced.after.shards_of(&node(6)),
        layout.map.shards_of(&node(1))
    );
    // Other shards of the other dead node are no part of it.
    assert_eq!(replaced.shards, layout.map.shards_of(&node(1)));
    let told = replaced.unmet.join("\n");
    assert!(
        told.starts_with("n2 does not answer: it keeps shards"),
        "{told}"
    );
}

/// Else the disk would fill up on the way, and the plan would never end.
#[test]
fn what_a_node_has_no_room_for_is_refused_with_figures() {
    let scene = Scene {
        nodes: 3,
        dead: vec![],
        drained: vec![],
        want: 1,
    };
    let mut layout = scene.layout(|shard| (vec![shard.0 / 0x80 + 1], None));
    let stored = ShardId::all().map(|shard| (shard, 1_000_000_000));
    let stored: BTreeMap<ShardId, u64> = stored.collect();
    for number in [1, 2] {
        layout.cluster.told_of(id(number)).stored_bytes = stored.clone();
    }
    // None but the third one tells how much it takes.
    let all = "00-7f".parse().unwrap();
    let to_n3 = |layout: &Layout| layout.moved(all, &set(&[3])).map(drop);
    to_n3(&layout).unwrap();
    layout.cluster.told_of(id(3)).bytes_for_copies = Some(128_000_000_000);
    to_n3(&layout).unwrap();
    layout.cluster.told_of(id(3)).bytes_for_copies = Some(127_000_000_000);
    let refused = to_n3(&layout).unwrap_err().to_string();
    assert_eq!(
        refused,
        "n3 has too little room on its disk for copies of shards 00-7f: they take 128 GB, and it takes 127 GB until its \
         disk is too full for copies; make room there, let it take fewer shards, or drain it"
    );
    let replaced = layout.replaced(&node(1), &node(3)).err().unwrap();
    assert_eq!(replaced.to_string(), refused);
    layout.cluster.told_of(id(3)).bytes_for_copies = Some(1_000_000_000);
    let drained = drain(&layout, &[1]).err().unwrap();
    assert!(drained.starts_with("n3 has too little room"), "{drained}");
    // What it holds already is no copy.
    assert!(layout.moved(all, &set(&[1])).is_ok());
}

/// Estimates say how long the node takes that sends the most.
#[test]
fn copies_come_from_nodes_that_answer_and_share_the_shards() {
    let scene = Scene {
        nodes: 4,
        dead: vec![3],
        drained: vec![],
        want: 3,
    };
    // All are hot.
    let layout = scene.layout(|_| (vec![1, 2, 3], None));
    for shard in ShardId::all() {
        let source = node(shard.0 % 2 + 1);
        assert_eq!(layout.copy_source(shard), Some(&source), "{shard}");
    }
    let lost = scene.layout(|_| (vec![3], None));
    assert_eq!(lost.copy_source(ShardId(0)), None);
}
