//! Whether a cluster is well.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::json;
use simshard_cluster::{
    CorpusState, RegisteredStore, Targets, Upgrade, check_node_settings, recorded_corpora,
    shard_records, without_record,
};
use simshard_node::{StoreAnswer, StoreNews};
use simshard_runtime::terminal::counted;
use simshard_topology::replication::{ShardRecord, ShardRecords, StoreId};
use simshard_topology::{Balance, NodeId, ShardId, ShardSet};

use crate::asked::{Cluster, held_corpora};
use crate::changes::{changes, has_stuck};
use crate::finding::{Finding, finding};
use crate::lacking_room::{lacks_room, without_room_text};
use crate::layout::{Layout, names};
use crate::nodes::Asked;
use crate::short::{hot, replicas, shards_where};
use crate::upgrade::versions;
use crate::wishes::Wishes;
use crate::{Admin, AdminError, plans};

impl Admin<'_> {
    /// Looks at each part of the cluster.
    ///
    /// # Errors
    /// If the metadata cannot be read.
    pub async fn status(&self) -> Result<Vec<Finding>, AdminError> {
        let keys = self.keys;
        let records = shard_records(keys).await?;
        let wishes = self.wishes().await?;
        let asked = self.ask_all().await?;
        let held = held_corpora(&asked);
        let corpora = recorded_corpora(keys).await?;
        let unrecorded = without_record(keys, &corpora, held).await?;
        let upgrade = Upgrade::read(keys).await?;
        let states: Vec<CorpusState> = corpora.records().map(|record| record.state).collect();
        Ok(vec![
            wishes.metadata(&asked),
            nodes(&records, &wishes, &asked),
            searches(&records, &asked),
            changes(&records, &asked),
            replicas(&records, &asked, &wishes.drained),
            hot(&records),
            learners(&records, &asked),
            moves(&records, &wishes, &asked),
            self.balance(&records, &wishes.targets, &asked).await,
            corpora_of(&states, unrecorded.len()),
            versions(&upgrade, &asked),
        ])
    }

    /// Whether a plan would share the documents clearly better than they are.
    async fn balance(&self, records: &ShardRecords, targets: &Targets, asked: &Asked) -> Finding {
        match self.balance_now(records, targets, asked).await {
            Ok(even) => balance_of(&even),
            Err(error) => {
                let facts = json!({ "unknown": error.to_string() });
                finding("balance", true, format!("not known now: {error}"), facts)
            }
        }
    }

    async fn balance_now(
        &self,
        records: &ShardRecords,
        targets: &Targets,
        asked: &Asked,
    ) -> Result<Evenness, AdminError> {
        let silent = asked.iter().filter(|(_, answer)| answer.is_none());
        let silent = silent.filter(|(store, _)| matters(store, records, targets));
        let silent: Vec<&NodeId> = silent.map(|(store, _)| &store.node).collect();
        if !silent.is_empty() {
            let verb = if silent.len() == 1 { "does" } else { "do" };
            let problem = format!("{} {verb} not answer", names(silent));
            return Err(AdminError::Refused(problem));
        }
        check_node_settings(self.keys).await?;
        let cluster = Cluster::ask(self).await?;
        self.balance_by(&Layout::of(cluster, records.clone(), targets)?)
    }

    /// The balance of a layout, and what a plan would do.
    fn balance_by(&self, layout: &Layout) -> Result<Evenness, AdminError> {
        let plan = layout.even_plan(self, &layout.nodes()?, layout.replicas()?)?;
        let refused = match layout.check_room(&plan.map) {
            Ok(()) => None,
            Err(AdminError::Refused(problem)) => Some(problem),
            Err(error) => return Err(error),
        };
        Ok(Evenness {
            refused,
            balance: plan.balance,
            moves: plans::moves(layout, &plan.map).len(),
            unmet: plan.unmet.iter().map(ToString::to_string).collect(),
        })
    }
}

/// How evenly shards are spread.
struct Evenness {
    balance: Balance,
    /// Why no plan can be drawn, as a node lacks room.
    refused: Option<String>,
    /// How many shards a plan would move.
    moves: usize,
    /// What a plan cannot meet, as there are too few zones, or nodes in them.
    unmet: Vec<String>,
}

/// Whether a store holds shards, or is to. Plans leave out others that are silent.
fn matters(store: &RegisteredStore, records: &ShardRecords, targets: &Targets) -> bool {
    records.values().any(|record| record.names(store.id))
        || targets.values().any(|nodes| nodes.contains(&store.node))
}

/// All that have registered are to answer: one that is gone for good is the operator's to take out.
fn nodes(records: &ShardRecords, wishes: &Wishes, asked: &Asked) -> Finding {
    let silent = asked.iter().filter(|(_, answer)| answer.is_none());
    let (holding, empty): (Vec<_>, Vec<_>) = silent
        .map(|(store, _)| store)
        .partition(|store| matters(store, records, &wishes.targets));
    let names_of = |stores: &[&RegisteredStore]| -> Vec<String> {
        stores.iter().map(|store| store.node.to_string()).collect()
    };
    let silent = names_of(&[&holding[..], &empty[..]].concat());
    let (holding, empty) = (names_of(&holding), names_of(&empty));
    let all = asked.len();
    let answering = all - silent.len();
    let mut details = format!("{answering} of {all} answer");
    if !holding.is_empty() {
        let advice = if has_stuck(records, asked) {
            "start each, or see `changes`"
        } else {
            "start each; if one is gone for good, `simshard cluster drain` or `replace` moves its shards to others"
        };
        details += &format!("; silent: {}: {advice}", holding.join(","));
    }
    if !empty.is_empty() {
        details += &format!(
            "; silent, without shards: {}: start each; `simshard cluster remove` is for one that is gone for good",
            empty.join(",")
        );
    }
    if !wishes.drained.is_empty() {
        details += &format!("; drained: {}", names(&wishes.drained));
    }
    let facts = json!({
        "nodes": all,
        "silent": silent,
        "silent_without_shards": empty,
        "drained": wishes.drained.iter().map(NodeId::as_str).collect::<Vec<_>>(),
    });
    finding("nodes", silent.is_empty(), details, facts)
}

/// Whether all searches can be answered: by a hot replica that lives, is whole, and has made its tables. One that is too busy
/// to tell counts as one that has.
fn searches(records: &ShardRecords, asked: &Asked) -> Finding {
    let [silent, damaged, unbuilt] = unanswered(records, asked);
    let problems = [
        ("no hot replica answers", silent),
        (
            "a file is damaged, and no other hot replica answers",
            damaged,
        ),
        ("tables are being made", unbuilt),
    ];
    let problems = problems.iter().filter(|(_, shards)| !shards.is_empty());
    let problems = problems.map(|(problem, shards)| format!("{problem}: {shards}"));
    let problems: Vec<String> = problems.collect();
    let unanswered = silent.union(&damaged).union(&unbuilt);
    let details = if problems.is_empty() {
        "each shard has a hot replica that answers".to_owned()
    } else {
        problems.join("; ")
    };
    let rebuilt = shards_where(records, ShardRecord::is_rebuilt);
    let details = if rebuilt.is_empty() {
        details
    } else {
        format!(
            "{details}; being rebuilt, by `simshard cluster force --rebuild`: {rebuilt}; run it again if it has ended"
        )
    };
    let facts = json!({
        "unanswered": unanswered.to_string(),
        "damaged": damaged.to_string(),
        "unbuilt": unbuilt.to_string(),
        "rebuilt": rebuilt.to_string(),
    });
    finding("searches", unanswered.is_empty(), details, facts)
}

/// The shards of which no hot replica answers, none that answers is whole, or none of these has its tables.
fn unanswered(records: &ShardRecords, asked: &Asked) -> [ShardSet; 3] {
    let answers: BTreeMap<StoreId, &StoreAnswer> = asked
        .iter()
        .filter_map(|(store, answer)| Some((store.id, answer.as_ref()?)))
        .collect();
    let told = |answer: &StoreAnswer, shard: ShardId, what: fn(&StoreNews) -> ShardSet| {
        answer.news().is_some_and(|news| what(news).contains(shard))
    };
    let [mut silent, mut damaged, mut unbuilt] = [ShardSet::EMPTY; 3];
    for (&shard, record) in records {
        let hot = record.in_sync.iter().filter(|entry| entry.hot);
        let hot = hot.filter_map(|entry| answers.get(&entry.store));
        let mut hot: Vec<_> = hot.collect();
        if hot.is_empty() {
            silent.insert(shard);
            continue;
        }
        hot.retain(|answer| !told(answer, shard, |news| news.damaged));
        if hot.is_empty() {
            damaged.insert(shard);
        } else if hot
            .iter()
            .all(|answer| told(answer, shard, |news| news.unbuilt))
        {
            unbuilt.insert(shard);
        }
    }
    [silent, damaged, unbuilt]
}

/// The copies that are under way. They are a good sign: shards get replicas.
fn learners(records: &ShardRecords, asked: &Asked) -> Finding {
    let mut by_store: BTreeMap<StoreId, ShardSet> = BTreeMap::new();
    for (shard, record) in records {
        for learner in &record.learners {
            by_store.entry(learner.store).or_default().insert(*shard);
        }
    }
    let by_node = by_store.into_iter();
    let by_node = by_node
        .map(|(store, shards)| (name(asked, store), shards))
        .collect();
    let details = of_nodes(&by_node, "copies", "no copy is under way");
    let facts = json!({ "copying": texts(&by_node) });
    finding("learners", true, details, facts)
}

/// What a store is called: by its node, if it has registered.
fn name(asked: &Asked, store: StoreId) -> String {
    let known = asked.iter().find(|(known, _)| known.id == store);
    known.map_or_else(|| store.to_string(), |(known, _)| known.node.to_string())
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

/// The shards that are to go to nodes which do not hold them yet. One that does not answer, or lacks room, takes none.
fn moves(records: &ShardRecords, wishes: &Wishes, asked: &Asked) -> Finding {
    let mut by_node: BTreeMap<String, ShardSet> = BTreeMap::new();
    let mut without_room: BTreeMap<String, ShardSet> = BTreeMap::new();
    let mut are_well = true;
    for (shard, nodes) in &wishes.targets {
        for node in nodes {
            let record = &records[shard];
            let known = asked.iter().find(|(store, _)| store.node == *node);
            let holds = known.is_some_and(|(store, _)| record.in_sync(store.id).is_some());
            if holds {
                continue;
            }
            by_node.entry(node.to_string()).or_default().insert(*shard);
            let Some((store, Some(answer))) = known else {
                are_well = false;
                continue;
            };
            let news = answer.news();
            if news.is_some_and(|news| lacks_room(news, store.id, *shard, record)) {
                are_well = false;
                let shards = without_room.entry(node.to_string()).or_default();
                shards.insert(*shard);
            }
        }
    }
    let mut details = of_nodes(&by_node, "is to hold", "no shard is to move");
    if !without_room.is_empty() {
        details += &format!("; {}", without_room_text(&without_room));
    }
    if let Some(plan) = wishes.plan_text() {
        details += &format!("; {plan}");
    }
    if wishes.are_paused {
        details += "; paused, until `simshard cluster rebalance resume`";
    }
    let facts = json!({
        "moving": texts(&by_node),
        "without_room": texts(&without_room),
        "paused": wishes.are_paused,
        "plan": wishes.plan.as_ref().map(|plan| plan.state),
        "plan_refusal": wishes.plan_refusal,
    });
    finding("moves", are_well, details, facts)
}

/// A plan moves nothing while the balance is good enough. Zones and missing replicas may make it worse.
fn balance_of(even: &Evenness) -> Finding {
    let Evenness {
        balance,
        refused,
        moves,
        unmet,
    } = even;
    let (now, planned) = (balance.before.unwrap_or(1.0), balance.after);
    let is_well = *moves == 0;
    let mut details = format!("the fullest node has {now:.2} times the mean");
    if let Some(refused) = refused {
        details += &format!("; no plan can be drawn: {refused}");
    } else if !is_well {
        let reason = if planned > now {
            ", as zones or missing replicas demand"
        } else {
            ""
        };
        details += &format!(
            "; {planned:.2} times once `simshard cluster rebalance plan` and `apply` have moved {}{reason}",
            counted(*moves, "shard")
        );
    }
    for unmet in unmet {
        details += &format!("; {unmet}");
    }
    finding(
        "balance",
        is_well,
        details,
        json!({ "fullest": now, "planned": planned, "moves": moves, "refused": refused, "unmet": unmet }),
    )
}

/// Corpora whose creation or deletion was cut short are not usable until it is repeated. If records are missing, routers
/// make and list no corpus.
fn corpora_of(states: &[CorpusState], missing: usize) -> Finding {
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
    if missing > 0 {
        details +=
            &format!(", records missing of {missing} that nodes hold: `simshard corpus recover`");
    }
    let is_well = creating + deleting + missing == 0;
    let facts =
        json!({ "live": live, "creating": creating, "deleting": deleting, "missing": missing });
    finding("corpora", is_well, details, facts)
}
