//! The table of shards that were compared with each other.

use serde_json::json;
use simshard_topology::{ShardId, ShardSet};

use super::{Outcome, Outcomes};
use crate::args::JsonArgs;
use crate::say;

/// A line of the table.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    shards: ShardSet,
    with: ShardSet,
    state: &'static str,
    differences: u64,
    repaired: u64,
}

/// Rows of which neighbours are one that say the same of shards without differences.
fn joined(rows: impl Iterator<Item = Row>) -> Vec<Row> {
    let mut joined: Vec<Row> = Vec::new();
    for row in rows {
        match joined.last_mut() {
            Some(last) if row.differences == 0 && row.is_like(last) => {
                last.shards = last.shards.union(&row.shards);
            }
            _ => joined.push(row),
        }
    }
    joined
}

impl Row {
    fn is_like(&self, other: &Self) -> bool {
        let said = |row: &Self| (row.with, row.state, row.differences, row.repaired);
        said(self) == said(other)
    }
}

impl Outcomes {
    /// Takes note of a shard whose sums are unknown. No shard is compared with it.
    pub(super) fn miss(&mut self, missed: ShardId, within: ShardSet, problem: &str) {
        if within.contains(missed) {
            let unknown = Outcome::unknown(problem.to_owned());
            self.by_shard.insert(missed, unknown);
            return;
        }
        for shard in within.iter() {
            self.by_shard.entry(shard).or_default().add(Outcome {
                missed: ShardSet::from_iter([missed]),
                problem: Some(problem.to_owned()),
                ..Outcome::default()
            });
        }
    }

    /// A line for the shards that agree with all others, one for those that were not compared, and one for each that differs.
    fn rows(&self) -> Vec<Row> {
        let others = self.by_shard.iter();
        let others = others.filter(|(_, outcome)| outcome.state() != "agrees");
        let rows = others.map(|(shard, outcome)| Row {
            shards: ShardSet::from_iter([*shard]),
            with: outcome.differing.union(&outcome.missed),
            state: outcome.state(),
            differences: outcome.differences,
            repaired: outcome.repaired,
        });
        let rows = joined(rows);
        let differs = |shard: &ShardId| {
            let mut named = rows.iter().map(|row| row.shards.union(&row.with));
            named.any(|named| named.contains(*shard))
        };
        let agreeing: ShardSet = self.summed.iter().filter(|shard| !differs(shard)).collect();
        let agree = (!agreeing.is_empty()).then_some(Row {
            shards: agreeing,
            with: ShardSet::ALL,
            state: "agrees",
            differences: 0,
            repaired: 0,
        });
        agree.into_iter().chain(rows).collect()
    }

    /// Prints the table.
    pub(in super::super) fn print(&self, output: JsonArgs) -> anyhow::Result<()> {
        let mut text = "\nshards\twith\tstate\tdifferences\trepaired".to_owned();
        for row in self.rows() {
            let Row {
                shards,
                with,
                state,
                differences,
                repaired,
            } = row;
            if output.json {
                say::print_json(&json!({
                    "shards": shards.to_string(),
                    "with": with.to_string(),
                    "state": state,
                    "differences": differences,
                    "repaired": repaired,
                }))?;
            } else {
                text.push_str(&format!(
                    "\n{shards}\t{with}\t{state}\t{differences}\t{repaired}"
                ));
            }
        }
        if !output.json {
            return say::print(&text);
        }
        for corpus in &self.unrecorded {
            say::print_json(&json!({ "corpus": corpus.to_string(), "state": "not compared" }))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_shards_of_a_pair_that_differs_do_not_agree() {
        let set = |shards: &[u8]| -> ShardSet { shards.iter().copied().map(ShardId).collect() };
        let mut outcomes = Outcomes {
            summed: set(&[1, 2, 3, 4]),
            ..Outcomes::default()
        };
        outcomes.by_shard.insert(ShardId(4), Outcome::default());
        let agreeing = |outcomes: &Outcomes| {
            let rows = outcomes.rows().into_iter();
            let mut agreeing = rows.filter(|row| row.state == "agrees");
            agreeing.next().map(|row| row.shards)
        };
        assert_eq!(agreeing(&outcomes), Some(set(&[1, 2, 3, 4])));
        let outcome = Outcome {
            differing: set(&[3]),
            differences: 2,
            repaired: 1,
            ..Outcome::default()
        };
        outcomes.by_shard.insert(ShardId(1), outcome);
        assert_eq!(agreeing(&outcomes), Some(set(&[2, 4])));
        assert_eq!(outcomes.rows()[1].state, "differs");
        for shard in [8, 9] {
            outcomes.miss(ShardId(shard), ShardSet::ALL, "it is silent");
        }
        assert_eq!(agreeing(&outcomes), None);
        let rows = outcomes.rows();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[1].shards, set(&[8, 9]));
    }
    #[test]
    fn shards_that_were_asked_for_are_named_where_others_cannot_be_read() {
        let set = |shards: &[u8]| -> ShardSet { shards.iter().copied().map(ShardId).collect() };
        let mut outcomes = Outcomes {
            summed: set(&[1, 2]),
            ..Outcomes::default()
        };
        for shard in [8, 9] {
            outcomes.miss(ShardId(shard), set(&[1, 2]), "it is silent");
        }
        let row = Row {
            shards: set(&[1, 2]),
            with: set(&[8, 9]),
            state: "not compared",
            differences: 0,
            repaired: 0,
        };
        assert_eq!(outcomes.rows(), [row]);
    }
}
