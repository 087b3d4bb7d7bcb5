//! What each part says of clusters that are well, and of others.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use simshard_cluster::{KeyValueStore, MemoryKeyValues, Outcome, Transaction};
use simshard_node::Dialer;
use simshard_node::{StoreAnswer, StoreNews};
use simshard_topology::NodeId;
use simshard_topology::replication::{Epoch, Learner};

use super::*;
use crate::asked::Reports;
use crate::asked::tests::news;
use crate::leaving::tests::Scene;
use crate::scene;

/// As `simshard cluster status` prints them.
impl Finding {
    fn columns(&self) -> String {
        let is_well = if self.is_well { "yes" } else { "no" };
        format!("{}\t{is_well}\t{}", self.part, self.details)
    }

    fn json(&self) -> Value {
        let mut all = self.facts.as_object().cloned().unwrap_or_default();
        all.insert("part".to_owned(), self.part.into());
        all.insert("well".to_owned(), self.is_well.into());
        Value::Object(all)
    }
}

fn id(number: u8) -> StoreId {
    StoreId([number; 16])
}

/// Three nodes. Those that answer have the first record of each shard.
fn asked(answering: &[u8]) -> Vec<(RegisteredStore, Option<StoreAnswer>)> {
    let reports: Reports = ShardId::all().map(|shard| (shard, Epoch::FIRST)).collect();
    let answer = |number| {
        let told = || StoreAnswer::News(news(reports.clone()));
        answering.contains(&number).then(told)
    };
    let stores = (1..=3).map(|number| (scene::store(number), answer(number)));
    stores.collect()
}

fn news_of(asked: &mut (RegisteredStore, Option<StoreAnswer>)) -> &mut StoreNews {
    match asked.1.as_mut().unwrap() {
        StoreAnswer::News(news) => news,
        StoreAnswer::Busy => panic!("it tells nothing"),
    }
}

/// Three replicas of each shard, two of them hot; of shard 80, other than that.
fn records(of_80: impl Fn(&mut ShardRecord)) -> ShardRecords {
    let mut record = ShardRecord::first(0, &[id(1), id(2), id(3)], 7);
    record.hot = 2;
    record.in_sync[2].hot = false;
    let mut other = record.clone();
    of_80(&mut other);
    let (record, other) = (Arc::new(record), Arc::new(other));
    ShardId::all()
        .map(|shard| {
            let record = if shard.0 == 0x80 { &other } else { &record };
            (shard, Arc::clone(record))
        })
        .collect()
}

#[test]
fn shards_that_are_short_are_named() {
    let whole = records(|_| {});
    let all = asked(&[1, 2, 3]);
    let replicas = |records: &_, asked: &_| super::replicas(records, asked, &[]);
    assert!(replicas(&whole, &all).is_well && super::hot(&whole).is_well);
    let without_cold = records(|record| record.in_sync.truncate(2));
    assert_eq!(
        replicas(&without_cold, &all).columns(),
        "replicas\tno\tshort: 80: nodes copy them by themselves, and others do in the place of one that stays away: see \
         `learners`"
    );
    let too_few = replicas(&without_cold, &asked(&[1, 2]));
    assert_eq!(
        too_few.columns(),
        "replicas\tno\tshort: 80: start the nodes that do not answer, undrain some, or add others"
    );
    let drained = scene::store(3).node;
    let too_few = super::replicas(&without_cold, &all, &[drained]);
    assert!(too_few.details.contains("undrain some"), "{too_few:?}");
    let stuck = replicas(&without_cold, &asked(&[]));
    assert_eq!(stuck.details, "short: 80: see `changes`");
    assert!(super::hot(&without_cold).is_well);
    let without_hot = records(|record| record.in_sync[1].hot = false);
    assert!(replicas(&without_hot, &all).is_well);
    assert_eq!(
        super::hot(&without_hot).json(),
        json!({"part": "hot", "well": false, "short": "80"})
    );
}

#[test]
fn shards_that_no_hot_replica_answers_for_are_named() {
    let one_hot = records(|record| record.in_sync[1].hot = false);
    assert!(searches(&one_hot, &asked(&[1])).is_well);
    let cold_only = searches(&one_hot, &asked(&[2, 3]));
    assert_eq!(
        cold_only.columns(),
        "searches\tno\tno hot replica answers: 80"
    );
    let rebuilt = records(|record| {
        *record = record.rebuilt(id(4), 8, |store| store == id(4)).unwrap();
    });
    assert_eq!(
        searches(&rebuilt, &asked(&[1, 2, 3])).details,
        "no hot replica answers: 80; being rebuilt, by `simshard cluster force --rebuild`: 80; run it again if it has ended"
    );
}

/// Searches of them fail.
#[test]
fn shards_whose_last_hot_replica_is_damaged_are_named() {
    let mut asked = asked(&[1, 2, 3]);
    news_of(&mut asked[0]).damaged = "80".parse().unwrap();
    let both_hot = records(|_| {});
    assert!(searches(&both_hot, &asked).is_well);
    let one_hot = records(|record| record.in_sync[1].hot = false);
    let one = searches(&one_hot, &asked);
    assert_eq!(
        one.columns(),
        "searches\tno\ta file is damaged, and no other hot replica answers: 80"
    );
    assert_eq!(one.facts["unanswered"], "80");
    assert_eq!(one.facts["damaged"], "80");
}

/// They are refused until then.
#[test]
fn shards_whose_tables_are_being_made_are_named() {
    let mut asked = asked(&[1, 2, 3]);
    news_of(&mut asked[0]).unbuilt = "00-55,80".parse().unwrap();
    // The other hot replica answers for shards 00-55.
    let one_hot = records(|record| record.in_sync[1].hot = false);
    let one = searches(&one_hot, &asked);
    assert_eq!(one.columns(), "searches\tno\ttables are being made: 80");
    assert_eq!(
        one.facts,
        json!({"unanswered": "80", "damaged": "none", "unbuilt": "80", "rebuilt": "none"})
    );
    news_of(&mut asked[1]).unbuilt = "00-55".parse().unwrap();
    let both = searches(&one_hot, &asked);
    assert_eq!(both.details, "tables are being made: 00-55,80");
    asked[0].1 = None;
    assert_eq!(
        searches(&one_hot, &asked).details,
        "no hot replica answers: 80; tables are being made: 00-55"
    );
}

#[test]
fn each_silent_node_is_named_with_what_to_do() {
    let whole = records(|_| {});
    let none = Wishes::default();
    let all = nodes(&whole, &none, &asked(&[1, 2, 3]));
    assert_eq!(all.columns(), "nodes\tyes\t3 of 3 answer");
    let holding = nodes(&whole, &none, &asked(&[1, 2]));
    assert_eq!(
        holding.columns(),
        "nodes\tno\t2 of 3 answer; silent: n3: start each; if one is gone for good, `simshard cluster drain` or `replace` moves its shards to others"
    );
    let without_n3 = drained(&whole, 3);
    let empty = nodes(&without_n3, &none, &asked(&[1, 2]));
    assert_eq!(
        empty.columns(),
        "nodes\tno\t2 of 3 answer; silent, without shards: n3: start each; `simshard cluster remove` is for one that is gone for good"
    );
    // n1 alone was taken out of no record, so no node may take its shards.
    let alone = records(|record| record.in_sync.truncate(1));
    let stuck = nodes(&alone, &none, &asked(&[2, 3]));
    assert!(
        stuck
            .details
            .ends_with("silent: n1: start each, or see `changes`"),
        "{}",
        stuck.details
    );
    let both = nodes(&without_n3, &none, &asked(&[1]));
    assert_eq!(
        both.json(),
        json!({
            "part": "nodes",
            "well": false,
            "nodes": 3,
            "silent": ["n2", "n3"],
            "silent_without_shards": ["n3"],
            "drained": [],
        })
    );
}

#[test]
fn changes_that_wait_are_named_with_what_ends_the_wait() {
    let well = changes(&records(|_| {}), &asked(&[1, 2, 3]));
    assert_eq!(
        well.columns(),
        "changes\tyes\tall nodes of each shard answer"
    );
    let passing = changes(&records(|_| {}), &asked(&[1, 2]));
    assert_eq!(
        passing.columns(),
        "changes\tno\t00-ff wait a moment, until the others go on without n3"
    );
    assert_eq!(
        passing.facts,
        json!({"waiting": "00-ff", "stuck": "none", "full": {}})
    );
    // Of two replicas, one may leave the other out.
    let two_of_80 = records(|record| *record = ShardRecord::first(0, &[id(1), id(2)], 7));
    let stuck = changes(&two_of_80, &asked(&[2]));
    assert_eq!(
        stuck.columns(),
        "changes\tno\t80 wait a moment, until the others go on without n1; 00-7f,81-ff wait for n1,n3: start one of \
         them, or else let n2 go on alone by `simshard cluster force`"
    );
    assert_eq!(
        stuck.facts,
        json!({"waiting": "00-ff", "stuck": "00-7f,81-ff", "full": {}})
    );
    let last = records(|record| record.in_sync.truncate(1));
    let lost = changes(&last, &asked(&[2, 3]));
    assert_eq!(
        lost.details,
        "00-7f,81-ff wait a moment, until the others go on without n1; 80 wait for n1, and none that \
         answers is in sync: start each, or else see `simshard cluster force --rebuild`"
    );
    // A learner takes each change, too.
    let learning = records(|record| {
        record.in_sync.truncate(2);
        record.learners.push(Learner {
            store: id(3),
            added: Epoch::FIRST,
        });
    });
    assert_eq!(
        changes(&learning, &asked(&[1, 2])).facts["waiting"],
        "00-ff"
    );
}

#[test]
fn changes_wait_for_no_node_that_is_only_too_busy_to_tell_of_its_shards() {
    let mut asked = asked(&[2]);
    for busy in [0, 2] {
        asked[busy].1 = Some(StoreAnswer::Busy);
    }
    assert!(changes(&records(|_| {}), &asked).is_well);
    let all = nodes(&records(|_| {}), &Wishes::default(), &asked);
    assert_eq!(all.columns(), "nodes\tyes\t3 of 3 answer");
}

/// An operator who lets a node go on alone would leave out a store that may run.
#[test]
fn a_store_without_a_record_is_to_register_before_a_shard_is_forced() {
    let mut asked = asked(&[1, 2, 3]);
    asked.pop();
    let one = changes(&records(|_| {}), &asked);
    assert!(!one.is_well);
    assert_eq!(
        one.details,
        format!(
            "00-ff are held by {} too, of which the metadata has no record: restart the node with that store, so that it \
             registers again",
            id(3)
        )
    );
    assert_eq!(
        one.facts,
        json!({"waiting": "00-ff", "stuck": "none", "full": {}})
    );
    asked.pop();
    let both = changes(&records(|_| {}), &asked);
    assert_eq!(
        both.facts,
        json!({"waiting": "00-ff", "stuck": "00-ff", "full": {}})
    );
    assert!(
        both.details.contains("restart the node"),
        "{}",
        both.details
    );
    assert!(!both.details.contains("force"), "{}", both.details);
}

/// Where an operator let a node go on alone, it waits for those that answered then.
#[test]
fn a_forced_shard_that_waits_is_named() {
    let forced = |record: &mut ShardRecord| {
        *record = record.forced(id(1), 9, |store| store != id(3)).unwrap();
    };
    let records = records(forced);
    let mut asked = asked(&[1]);
    let found = changes(&records, &asked);
    assert!(
        found
            .details
            .contains("80 wait for n2: start one of them, or else let n1 go on alone by"),
        "{}",
        found.details
    );
    asked.remove(1);
    let found = changes(&records, &asked);
    let of_removed =
        "80 wait for data that no node has now: start one of them, or else let n1 go on";
    assert!(found.details.contains(of_removed), "{}", found.details);
    let epoch = records[&ShardId(0x80)].epoch;
    news_of(&mut asked[0]).epochs.insert(ShardId(0x80), epoch);
    assert_eq!(changes(&records, &asked).facts["stuck"], "00-7f,81-ff");
}

/// Nodes go on with what they knew before: only this tells an operator.
#[test]
fn stores_with_one_address_are_named() {
    let mut asked = asked(&[1, 2, 3]);
    assert!(Wishes::default().metadata(&asked).is_well);
    asked[1].0.address = asked[0].0.address.clone();
    let found = Wishes::default().metadata(&asked);
    let key = format!("stores/{}", asked[1].0.id);
    assert!(
        !found.is_well && found.details.contains(&key),
        "{}",
        found.details
    );
}

/// Inserts fail there, though all nodes answer.
#[test]
fn a_node_whose_disk_is_full_is_named_with_its_shards() {
    let records = drained(&records(|_| {}), 3);
    let mut asked = asked(&[1, 2, 3]);
    // It holds nothing.
    news_of(&mut asked[2]).lacks_room = true;
    assert!(changes(&records, &asked).is_well);
    news_of(&mut asked[1]).lacks_room = true;
    let found = changes(&records, &asked);
    let expected = "the disk of n2 is full, or nearly: inserts of 00-ff fail until you make room";
    assert!(
        !found.is_well && found.details.contains(expected),
        "{}",
        found.details
    );
    assert_eq!(found.facts["full"], json!({"n2": "00-ff"}));
}

/// The records without one of the nodes.
fn drained(records: &ShardRecords, node: u8) -> ShardRecords {
    let without = |(shard, record): (&ShardId, &Arc<ShardRecord>)| {
        let mut record = ShardRecord::clone(record);
        record.in_sync.retain(|entry| entry.store != id(node));
        record.previous.retain(|store| *store != id(node));
        (*shard, Arc::new(record))
    };
    records.iter().map(without).collect()
}

#[test]
fn shards_that_are_to_move_are_named_by_their_nodes() {
    let records = drained(&records(|_| {}), 3);
    let target = |name: &str| {
        let nodes = BTreeSet::from([NodeId::new("n1").unwrap(), NodeId::new(name).unwrap()]);
        Targets::from([(ShardId(0x80), nodes)])
    };
    let to = |name: &str| Wishes {
        targets: target(name),
        ..Wishes::default()
    };
    for (name, answering, expected) in [
        ("n2", &[1, 2][..], "moves\tyes\tno shard is to move"),
        ("n3", &[1, 2, 3], "moves\tyes\tn3 is to hold 80"),
        ("n3", &[1, 2], "moves\tno\tn3 is to hold 80"),
        ("n9", &[1, 2], "moves\tno\tn9 is to hold 80"),
    ] {
        let found = moves(&records, &to(name), &asked(answering));
        assert_eq!(found.columns(), expected);
    }
    let paused = Wishes {
        are_paused: true,
        ..to("n3")
    };
    let paused = moves(&records, &paused, &asked(&[1, 2, 3]));
    assert_eq!(
        paused.columns(),
        "moves\tyes\tn3 is to hold 80; paused, until `simshard cluster rebalance resume`"
    );
}

/// Such a move never ends by itself.
#[test]
fn a_node_that_lacks_room_for_the_shards_that_it_is_to_hold_is_named() {
    let mut records = drained(&records(|_| {}), 3);
    let target = BTreeSet::from(["n1", "n3"].map(|name| NodeId::new(name).unwrap()));
    let targets = (0x7f..=0x82).map(|shard| (ShardId(shard), target.clone()));
    let wishes = Wishes {
        targets: targets.collect(),
        ..Wishes::default()
    };
    let mut asked = asked(&[1, 2, 3]);
    let news = news_of(&mut asked[2]);
    news.has_room_for_copies = false;
    // It held the first of them before, and copies the last.
    news.epochs.retain(|shard, _| shard.0 == 0x7f);
    let copied = records.get_mut(&ShardId(0x82)).unwrap();
    Arc::make_mut(copied).learners.push(Learner {
        store: id(3),
        added: Epoch::FIRST,
    });
    let found = moves(&records, &wishes, &asked);
    assert_eq!(
        found.columns(),
        "moves\tno\tn3 is to hold 7f-82; n3 has too little room for 80-81: make room there, or drain it"
    );
    assert_eq!(found.facts["without_room"], json!({"n3": "80-81"}));
    news_of(&mut asked[2]).lacks_room = true;
    let found = moves(&records, &wishes, &asked);
    assert_eq!(found.facts["without_room"], json!({"n3": "7f-81"}));
    news_of(&mut asked[2]).has_room_for_copies = true;
    let found = moves(&records, &wishes, &asked);
    assert_eq!(found.columns(), "moves\tyes\tn3 is to hold 7f-82");
}

#[test]
fn a_balance_that_a_plan_makes_better_is_not_well() {
    let of = |before, after, moves| {
        let balance = Balance {
            before: Some(before),
            after,
            least: 1.0,
        };
        let unmet = Vec::new();
        balance_of(&Evenness {
            balance,
            refused: None,
            moves,
            unmet,
        })
    };
    assert_eq!(
        of(1.09, 1.09, 0).columns(),
        "balance\tyes\tthe fullest node has 1.09 times the mean"
    );
    assert_eq!(
        of(1.5, 1.02, 7).columns(),
        "balance\tno\tthe fullest node has 1.50 times the mean; 1.02 times once `simshard cluster rebalance plan` and `apply` have moved 7 shards"
    );
    assert!(
        of(1.13, 1.67, 200)
            .details
            .ends_with("have moved 200 shards, as zones or missing replicas demand")
    );
    // A node that holds nothing does not change the fullest one.
    assert!(!of(1.05, 1.05, 3).is_well);
}

/// Two nodes have joined three, which hold all. More replicas move than there are shards.
#[test]
fn the_shards_that_a_plan_would_move_count_once() {
    let scene = Scene {
        nodes: 5,
        dead: vec![],
        drained: vec![],
        want: 3,
    };
    let layout = scene.layout(|_| (vec![1, 2, 3], None));
    let keys = MemoryKeyValues::new();
    let even = Admin::new(&keys, &Dialer::PLAIN, &|_| {})
        .balance_by(&layout)
        .unwrap();
    let Evenness { balance, moves, .. } = even;
    assert!(balance.before > Some(1.6), "{balance:?}");
    assert!((128..=ShardId::COUNT).contains(&moves), "{moves}");
}

/// One node that has joined, and would not take its share, keeps all shards from moving.
#[test]
fn a_full_node_that_keeps_plans_from_being_drawn_is_named() {
    let scene = Scene {
        nodes: 4,
        dead: vec![],
        drained: vec![],
        want: 3,
    };
    let mut layout = scene.layout(|_| (vec![1, 2, 3], None));
    layout.cluster.told_of(id(4)).has_room_for_copies = false;
    let keys = MemoryKeyValues::new();
    let admin = Admin::new(&keys, &Dialer::PLAIN, &|_| {});
    let found = balance_of(&admin.balance_by(&layout).unwrap());
    let refused = "no plan can be drawn: n4 has too little room on its disk";
    assert!(found.details.contains(refused), "{}", found.details);
    assert!(!found.is_well && found.facts["refused"].is_string());
}

#[test]
fn copies_under_way_are_named_by_their_nodes() {
    let copying = records(|record| {
        let left = record.in_sync.pop();
        record.learners.push(Learner {
            store: left.unwrap().store,
            added: Epoch::FIRST,
        });
    });
    let found = learners(&copying, &asked(&[1, 2, 3]));
    assert_eq!(found.columns(), "learners\tyes\tn3 copies 80");
    let none = learners(&records(|_| {}), &asked(&[]));
    assert_eq!(none.columns(), "learners\tyes\tno copy is under way");
}

/// A plan gives shards that lack replicas to nodes, but leaves those alone that get theirs.
#[test]
fn a_copy_under_way_counts_as_held() {
    let scene = Scene {
        nodes: 3,
        dead: vec![],
        drained: vec![],
        want: 3,
    };
    let (keys, warn) = (MemoryKeyValues::new(), |_: &str| {});
    let moves = |records: ShardRecords| {
        let cluster = scene.layout(|_| (vec![1, 2, 3], None)).cluster;
        let layout = Layout::of(cluster, records, &Targets::new()).unwrap();
        Admin::new(&keys, &Dialer::PLAIN, &warn)
            .balance_by(&layout)
            .unwrap()
            .moves
    };
    assert_eq!(moves(records(|_| {})), 0);
    assert_eq!(moves(records(|record| record.in_sync.truncate(2))), 1);
    let coming = records(|record| {
        let left = record.in_sync.pop();
        record.learners.push(Learner {
            store: left.unwrap().store,
            added: Epoch::FIRST,
        });
    });
    assert_eq!(moves(coming), 0);
}

/// No node may copy them.
#[test]
fn shards_that_are_being_rebuilt_are_in_no_plan() {
    let scene = Scene {
        nodes: 3,
        dead: vec![],
        drained: vec![],
        want: 3,
    };
    let cluster = scene.layout(|_| (vec![1, 2, 3], None)).cluster;
    let rebuilt = records(|record| {
        let lost = ShardRecord::first(0, &[id(9)], 7);
        *record = lost.rebuilt(id(3), 8, |store| store == id(3)).unwrap();
        record.want = 3;
    });
    let layout = Layout::of(cluster, rebuilt, &Targets::new()).unwrap();
    let (keys, warn) = (MemoryKeyValues::new(), |_: &str| {});
    let told = Admin::new(&keys, &Dialer::PLAIN, &warn)
        .balance_by(&layout)
        .err()
        .unwrap();
    assert_eq!(
        told.to_string(),
        "shards 80 are being rebuilt: end that by `simshard cluster force --rebuild` first"
    );
}

/// Each of two zones has a replica of each shard.
#[test]
fn zones_that_keep_shards_from_being_even_are_named() {
    let unmet = vec!["zone b: its nodes hold at least 1.50 times the mean".to_owned()];
    let balance = Balance {
        before: Some(1.5),
        after: 1.5,
        least: 1.5,
    };
    let found = balance_of(&Evenness {
        balance,
        refused: None,
        moves: 0,
        unmet,
    });
    let is = "balance\tyes\tthe fullest node has 1.50 times the mean; zone b: its nodes hold at least 1.50 times the mean";
    assert_eq!(found.columns(), is);
    assert_eq!(found.facts["unmet"].as_array().map(Vec::len), Some(1));
}

#[test]
fn corpora_that_are_not_complete_are_not_well() {
    let mut states = vec![CorpusState::Live];
    assert_eq!(corpora_of(&states, 0).columns(), "corpora\tyes\t1 live");
    states.extend([CorpusState::Creating, CorpusState::Deleting]);
    assert_eq!(
        corpora_of(&states, 0).columns(),
        "corpora\tno\t1 live, 1 being created, 1 being deleted"
    );
    assert_eq!(
        corpora_of(&[], 2).columns(),
        "corpora\tno\t0 live, records missing of 2 that nodes hold: `simshard corpus recover`"
    );
}

async fn set(keys: &MemoryKeyValues, key: &str, value: &str) {
    let change = Transaction::new().put(key, value);
    let outcome = keys.commit(&change).await.unwrap();
    assert!(matches!(outcome, Outcome::Committed(_)));
}

#[tokio::test]
async fn drained_nodes_and_the_plan_are_told() {
    let keys = MemoryKeyValues::new();
    let plan = |state: &str| {
        let moves = r#"[{"shards":"40-5f","from":["n1"],"to":["n3"],"had_target":false}]"#;
        let id = "0b8d9a8e-6f0f-4f37-9c1c-0d4f3c2a1b00";
        format!(r#"{{"id":"{id}","state":"{state}","drawn_at":1,"moves":{moves}}}"#)
    };
    set(&keys, "nodes/n2", r#"{"drained":true}"#).await;
    let (whole, asked) = (records(|_| {}), asked(&[1, 2, 3]));
    let waits = "waits for `simshard cluster rebalance apply`, or for `rebalance abort`";
    for (state, expected) in [
        ("beginning", "is being carried out"),
        ("moving", "is being carried out"),
        ("ending", "is being taken back"),
        ("staged", waits),
    ] {
        set(&keys, "staged-plan", &plan(state)).await;
        let wishes = Wishes::read(&keys).await.unwrap();
        assert_eq!(
            wishes.metadata(&Vec::new()).columns(),
            "metadata\tyes\tanswers"
        );
        let moves = moves(&whole, &wishes, &asked);
        let plan = "no shard is to move; a plan that moves 32 shards";
        assert_eq!(moves.columns(), format!("moves\tyes\t{plan} {expected}"));
        assert_eq!(moves.facts["plan"], json!(state));
        let nodes = nodes(&whole, &wishes, &asked);
        assert_eq!(nodes.columns(), "nodes\tyes\t3 of 3 answer; drained: n2");
    }
    let stale = Wishes {
        plan_refusal: Some("the plan is stale".to_owned()),
        ..Wishes::read(&keys).await.unwrap()
    };
    let moves = moves(&whole, &stale, &asked);
    let refused = "apply` would refuse it now: the plan is stale";
    assert!(moves.details.ends_with(refused), "{}", moves.details);
    assert_eq!(moves.facts["plan_refusal"], "the plan is stale");
}

/// Programs see no warnings: the facts tell them.
#[tokio::test]
async fn damaged_keys_are_told() {
    let keys = MemoryKeyValues::new();
    let damaged = ["nodes/n2", "paused", "staged-plan", "targets/80"];
    for key in damaged {
        set(&keys, key, "{").await;
    }
    let metadata = Wishes::read(&keys).await.unwrap().metadata(&Vec::new());
    assert!(!metadata.is_well);
    let told = metadata.facts["damaged"].as_array().unwrap();
    assert_eq!(told.len(), damaged.len());
    for key in damaged {
        let named = format!("the key {key} ");
        assert!(metadata.details.contains(&named), "{}", metadata.details);
    }
}
