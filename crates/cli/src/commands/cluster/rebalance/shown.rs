//! Which shards go where by the staged plan, and how far that is, as it is printed.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use simshard_admin::{HowFar, Plan, ShownMove};
use simshard_cluster::PlanState;
use simshard_topology::NodeId;

const fn name(how_far: HowFar) -> &'static str {
    match how_far {
        HowFar::Planned => "planned",
        HowFar::Waits => "waits",
        HowFar::Copies => "copies",
        HowFar::Leaves => "leaves",
        HowFar::Arrived => "arrived",
        HowFar::Elsewhere => "elsewhere",
    }
}

/// Shards that are as far between the same nodes: as columns and as an object.
pub(super) fn row(shown: &ShownMove) -> (String, Value) {
    let (shards, state) = (&shown.shards, name(shown.how_far));
    let (from, to) = (texts(&shown.from), texts(&shown.to));
    let columns = format!("{shards}\t{}\t{}\t{state}", from.join(","), to.join(","));
    let object = json!({ "shards": shards.to_string(), "from": from, "to": to, "state": state });
    (columns, object)
}

/// How far a plan is, for people.
pub(super) fn state_of(plan: &Plan) -> &'static str {
    let is_over = |one: &ShownMove| matches!(one.how_far, HowFar::Arrived | HowFar::Elsewhere);
    match plan.state {
        PlanState::Moving if plan.moves.iter().all(is_over) => "is carried out",
        PlanState::Staged => "is not applied",
        PlanState::Beginning => "has just begun",
        PlanState::Moving => "is being carried out",
        PlanState::Ending => "is being taken back",
    }
}

fn texts(nodes: &BTreeSet<NodeId>) -> Vec<&str> {
    nodes.iter().map(NodeId::as_str).collect()
}
