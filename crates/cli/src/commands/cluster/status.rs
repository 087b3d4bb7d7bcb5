//! `simshard cluster status`: whether a cluster is well, on one screen.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use serde_json::{Map, Value, json};
use simshard_cluster::{
    CorpusState, KeyValueStore, RegisteredStore, Targets, recorded_corpora, shard_records, targets,
};
use simshard_topology::replication::{ShardRecord, ShardRecords, StoreId};
use simshard_topology::{Balance, ShardSet};

use super::TableArgs;
use super::asked::warn_of_bad;
use super::layout::Layout;
use super::moving::replicas;
use super::nodes::ask;
use crate::say;

/// What an operator looks at first of a part of the cluster.
#[derive(Debug, PartialEq)]
struct Finding {
    part: &'static str,
    is_well: bool,
    details: String,
    /// The same for scripts.
    facts: Value,
}

pub(super) async fn run(args: &TableArgs) -> anyhow::Result<()> {
    let keys = args.metadata.keys()?;
    let records = shard_records(&*keys).await?;
    let corpora = recorded_corpora(&*keys).await?;
    let states: Vec<CorpusState> = corpora.records().map(|record| record.state).collect();
    let targets = targets(&*keys, warn_of_bad).await?;
    let asked = ask(&*keys).await?;
    // The records are there, so the metadata has answered.
    let metadata = finding("metadata", true, "answers".to_owned(), json!({}));
    let findings = [
        metadata,
        nodes(&records, &targets, &asked),
        searches(&records, &asked),
        short("replicas", &records, lacks_replicas),
        short("hot", &records, lacks_hot),
        learners(&records, &asked),
        moves(&records, &targets, &asked),
        balance(&*keys, &asked).await,
        corpora_of(&states),
    ];
    let mut text = "part\twell\tdetails".to_owned();
    for finding in findings {
        if args.output.json {
            say::print_json(&finding.json())?;
        } else {
            text.push_str(&format!("\n{}", finding.columns()));
        }
    }
    if !args.output.json {
        say::print(&text)?;
    }
    Ok(())
}

const fn finding(part: &'static str, is_well: bool, details: String, facts: Value) -> Finding {
    Finding {
        part,
        is_well,
        details,
        facts,
    }
}

impl Finding {
    fn columns(&self) -> String {
        let is_well = if self.is_well { "yes" } else { "no" };
        format!("{}\t{is_well}\t{}", self.part, self.details)
    }

    fn json(&self) -> Value {
        let mut all = Map::new();
        all.insert("part".to_owned(), self.part.into());
        all.insert("well".to_owned(), self.is_well.into());
        all.extend(self.facts.as_object().cloned().unwrap_or_default());
        Value::Object(all)
    }
}

type Asked = [(RegisteredStore, bool)];

/// Those that do not answer are of no account if they hold nothing, and are to hold nothing.
fn nodes(records: &ShardRecords, targets: &Targets, asked: &Asked) -> Finding {
    let matters = |store: &RegisteredStore| {
        records.values().any(|record| record.names(store.id))
            || targets.values().any(|nodes| nodes.contains(&store.node))
    };
    let silent = asked
        .iter()
        .filter(|(store, answers)| !answers && matters(store));
    let silent: Vec<&str> = silent.map(|(store, _)| store.node.as_str()).collect();
    let answering = asked.iter().filter(|(_, answers)| *answers).count();
    let all = asked.len();
    let mut details = format!("{answering} of {all} answer");
    if !silent.is_empty() {
        details += &format!("; silent: {}", silent.join(","));
    }
    let facts = json!({ "nodes": all, "silent": silent });
    finding("nodes", silent.is_empty(), details, facts)
}

/// Whether all searches can be answered.
fn searches(records: &ShardRecords, asked: &Asked) -> Finding {
    let answering = asked.iter().filter(|(_, answers)| *answers);
    let answering: BTreeSet<StoreId> = answering.map(|(store, _)| store.id).collect();
    let lacks = |record: &ShardRecord| {
        let mut hot = record.in_sync.iter().filter(|entry| entry.hot);
        !hot.any(|entry| answering.contains(&entry.store))
    };
    let shards = shards_where(records, lacks);
    let details = if shards.is_empty() {
        "each shard has a hot replica that answers".to_owned()
    } else {
        format!("no hot replica answers: {shards}")
    };
    let facts = json!({ "unanswered": shards.to_string() });
    finding("searches", shards.is_empty(), details, facts)
}

fn lacks_replicas(record: &ShardRecord) -> bool {
    record.in_sync.len() < record.want.into()
}

fn lacks_hot(record: &ShardRecord) -> bool {
    let hot = record.in_sync.iter().filter(|entry| entry.hot);
    hot.count() < record.hot.min(record.want).into()
}

/// The shards that have fewer replicas than are wished for.
fn short(
    part: &'static str,
    records: &ShardRecords,
    is_short: impl Fn(&ShardRecord) -> bool,
) -> Finding {
    let shards = shards_where(records, is_short);
    let details = if shards.is_empty() {
        "no shard is short".to_owned()
    } else {
        format!("short: {shards}")
    };
    let facts = json!({ "short": shards.to_string() });
    finding(part, shards.is_empty(), details, facts)
}

/// The copies that are under way. They are a good sign: shards get replicas.
fn learners(records: &ShardRecords, asked: &Asked) -> Finding {
    let mut by_store: BTreeMap<StoreId, ShardSet> = BTreeMap::new();
    for (shard, record) in records {
        for learner in &record.learners {
            by_store.entry(learner.store).or_default().insert(*shard);
        }
    }
    let name = |store: StoreId| {
        let known = asked.iter().find(|(known, _)| known.id == store);
        known.map_or_else(|| store.to_string(), |(known, _)| known.node.to_string())
    };
    let by_node = by_store.into_iter();
    let by_node = by_node
        .map(|(store, shards)| (name(store), shards))
        .collect();
    let details = of_nodes(&by_node, "copies", "no copy is under way");
    let facts = json!({ "copying": texts(&by_node) });
    finding("learners", true, details, facts)
}

/// The shards of nodes in a sentence each, and what is said without any.
fn of_nodes(by_node: &BTreeMap<String, ShardSet>, verb: &str, none: &str) -> String {
    if by_node.is_empty() {
        return none.to_owned();
    }
    let all = by_node.iter();
    let all = all.map(|(node, shards)| format!("{node} {verb} {shards}"));
    all.collect::<Vec<String>>().join("; ")
}

fn texts(by_node: &BTreeMap<String, ShardSet>) -> BTreeMap<&str, String> {
    let all = by_node.iter();
    all.map(|(node, shards)| (&**node, shards.to_string()))
        .collect()
}

/// The shards that are to go to nodes which do not hold them yet. One that does not answer takes none.
fn moves(records: &ShardRecords, targets: &Targets, asked: &Asked) -> Finding {
    let mut by_node: BTreeMap<String, ShardSet> = BTreeMap::new();
    let mut are_well = true;
    for (shard, nodes) in targets {
        for node in nodes {
            let known = asked.iter().find(|(store, _)| store.node == *node);
            let holds = known.is_some_and(|(store, _)| records[shard].in_sync(store.id).is_some());
            if !holds {
                by_node.entry(node.to_string()).or_default().insert(*shard);
                are_well &= known.is_some_and(|(_, answers)| *answers);
            }
        }
    }
    let details = of_nodes(&by_node, "is to hold", "no shard is to move");
    let facts = json!({ "moving": texts(&by_node) });
    finding("moves", are_well, details, facts)
}

/// Whether a plan would share the documents clearly better than they are.
async fn balance(keys: &dyn KeyValueStore, asked: &Asked) -> Finding {
    let plan = async {
        let silent = asked.iter().find(|(_, answers)| !answers);
        if let Some((store, _)) = silent {
            bail!("{} does not answer", store.node);
        }
        let layout = Layout::read(keys).await?;
        let plan = layout.planned(&layout.nodes(None)?, replicas(&layout.records)?)?;
        Ok((plan.balance, plan.moves.len()))
    };
    match plan.await {
        Ok((balance, moves)) => balance_of(balance, moves),
        Err(error) => {
            let facts = json!({ "unknown": error.to_string() });
            finding("balance", true, format!("not known now: {error}"), facts)
        }
    }
}

/// A plan moves nothing while the balance is good enough.
fn balance_of(balance: Balance, moves: usize) -> Finding {
    let (now, planned) = (balance.before.unwrap_or(1.0), balance.after);
    let is_well = moves == 0;
    let mut details = format!("the fullest node has {now:.2} times the mean");
    if !is_well {
        details +=
            &format!("; {planned:.2} times after {moves} moves of `simshard cluster rebalance`");
    }
    finding(
        "balance",
        is_well,
        details,
        json!({ "fullest": now, "planned": planned, "moves": moves }),
    )
}

/// Corpora whose creation or deletion was cut short are not usable until it is repeated.
fn corpora_of(states: &[CorpusState]) -> Finding {
    let count = |wanted| states.iter().filter(|state| **state == wanted).count();
    let live = count(CorpusState::Live);
    let creating = count(CorpusState::Creating);
    let deleting = count(CorpusState::Deleting);
    let mut details = format!("{live} live");
    if creating > 0 {
        details += &format!(", {creating} being created");
    }
    if deleting > 0 {
        details += &format!(", {deleting} being deleted");
    }
    let facts = json!({ "live": live, "creating": creating, "deleting": deleting });
    finding("corpora", creating + deleting == 0, details, facts)
}

fn shards_where(records: &ShardRecords, holds: impl Fn(&ShardRecord) -> bool) -> ShardSet {
    let shards = records.iter().filter(|(_, record)| holds(record));
    shards.map(|(shard, _)| *shard).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use simshard_topology::replication::{Epoch, Learner};
    use simshard_topology::{NodeId, ShardId};

    use super::*;

    fn id(number: u8) -> StoreId {
        StoreId([number; 16])
    }

    /// Three nodes, of which some answer.
    fn asked(answering: &[u8]) -> Vec<(RegisteredStore, bool)> {
        let store = |number: u8| RegisteredStore {
            id: id(number),
            node: NodeId::new(&format!("n{number}")).unwrap(),
            address: format!("http://127.0.0.1:{number}"),
            next_generation: 0,
            corpora: BTreeSet::new(),
            in_sync: BTreeMap::new(),
            partners: BTreeMap::new(),
            is_replacement: false,
        };
        let stores = (1..=3).map(|number| (store(number), answering.contains(&number)));
        stores.collect()
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

    fn is_short(records: &ShardRecords) -> [Finding; 2] {
        [
            short("replicas", records, lacks_replicas),
            short("hot", records, lacks_hot),
        ]
    }

    #[test]
    fn shards_that_are_short_are_named() {
        let whole = records(|_| {});
        assert!(is_short(&whole).iter().all(|finding| finding.is_well));
        let without_cold = records(|record| record.in_sync.truncate(2));
        let [replicas, hot] = is_short(&without_cold);
        assert_eq!(replicas.columns(), "replicas\tno\tshort: 80");
        assert!(hot.is_well);
        let without_hot = records(|record| record.in_sync[1].hot = false);
        let [replicas, hot] = is_short(&without_hot);
        assert!(replicas.is_well);
        assert_eq!(
            hot.json(),
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
        let none = Targets::new();
        let silent = nodes(&one_hot, &none, &asked(&[2]));
        assert_eq!(silent.columns(), "nodes\tno\t1 of 3 answer; silent: n1,n3");
        let without_n3 = drained(&one_hot, 3);
        let silent = nodes(&without_n3, &none, &asked(&[1, 2]));
        assert_eq!(silent.columns(), "nodes\tyes\t2 of 3 answer");
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
        for (name, answering, expected) in [
            ("n2", &[1, 2][..], "moves\tyes\tno shard is to move"),
            ("n3", &[1, 2, 3], "moves\tyes\tn3 is to hold 80"),
            ("n3", &[1, 2], "moves\tno\tn3 is to hold 80"),
            ("n9", &[1, 2], "moves\tno\tn9 is to hold 80"),
        ] {
            let found = moves(&records, &target(name), &asked(answering));
            assert_eq!(found.columns(), expected);
        }
    }

    #[test]
    fn a_balance_that_a_plan_makes_better_is_not_well() {
        let of = |before, after, moves| {
            let balance = Balance {
                before: Some(before),
                after,
                least: 1.0,
            };
            balance_of(balance, moves)
        };
        assert_eq!(
            of(1.09, 1.09, 0).columns(),
            "balance\tyes\tthe fullest node has 1.09 times the mean"
        );
        assert_eq!(
            of(1.5, 1.02, 7).columns(),
            "balance\tno\tthe fullest node has 1.50 times the mean; 1.02 times after 7 moves of `simshard cluster rebalance`"
        );
        // A node that holds nothing does not change the fullest one.
        assert!(!of(1.05, 1.05, 3).is_well);
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

    #[test]
    fn corpora_that_are_not_complete_are_not_well() {
        let mut states = vec![CorpusState::Live];
        assert_eq!(corpora_of(&states).columns(), "corpora\tyes\t1 live");
        states.extend([CorpusState::Creating, CorpusState::Deleting]);
        let found = corpora_of(&states).columns();
        assert_eq!(
            found,
            "corpora\tno\t1 live, 1 being created, 1 being deleted"
        );
    }
}
