//! From what operations return to responses.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use prost_types::{ListValue, NullValue, Struct, Timestamp, Value, value::Kind};
use simshard_admin::{
    Aborted, Estimate, Finding, HowFar, KnownNode, Outlook, Plan, Process, ReplicaGroup, Role,
    ShownMove, UpgradeState,
};
use simshard_cluster::PlanState;
use simshard_proto::{admin::v1 as pb, shards_from};
use simshard_topology::{Balance, NodeId, Version};

/// Of seconds since the beginning of 1970.
pub(super) fn time(seconds: u64) -> Timestamp {
    Timestamp {
        seconds: i64::try_from(seconds).unwrap_or(i64::MAX),
        nanos: 0,
    }
}

pub(super) fn finding(finding: Finding) -> pb::Finding {
    let facts = match value(finding.facts).kind {
        Some(Kind::StructValue(facts)) => facts,
        Some(
            Kind::NullValue(_)
            | Kind::NumberValue(_)
            | Kind::StringValue(_)
            | Kind::BoolValue(_)
            | Kind::ListValue(_),
        )
        | None => Struct::default(),
    };
    pb::Finding {
        part: finding.part.to_owned(),
        well: finding.is_well,
        details: finding.details,
        facts: Some(facts),
    }
}

/// The same value as a message.
fn value(value: serde_json::Value) -> Value {
    use serde_json::Value as Json;

    let kind = match value {
        Json::Null => Kind::NullValue(NullValue::NullValue.into()),
        Json::Bool(is_so) => Kind::BoolValue(is_so),
        Json::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => Kind::StringValue(text),
        Json::Array(values) => Kind::ListValue(ListValue {
            values: values.into_iter().map(self::value).collect(),
        }),
        Json::Object(fields) => {
            let fields = fields.into_iter();
            let fields = fields.map(|(name, field)| (name, self::value(field)));
            Kind::StructValue(Struct {
                fields: fields.collect(),
            })
        }
    };
    Value { kind: Some(kind) }
}

pub(super) fn node(known: KnownNode) -> pb::Node {
    let KnownNode {
        store,
        answers,
        waits,
        settings,
    } = known;
    pb::Node {
        name: store.node.to_string(),
        address: store.address,
        store: store.id.to_string(),
        answers,
        waits,
        drained: settings.is_drained,
        zone: settings.zone.unwrap_or_default(),
        capacity: settings.capacity.map_or(1, NonZeroU32::get),
        copy_rate: settings.copy_rate.map_or(0, NonZeroU32::get),
    }
}

/// A version, and nothing where there is none.
fn version(version: Option<Version>) -> String {
    version.map_or_else(String::new, |version| version.to_string())
}

pub(super) fn group(group: ReplicaGroup) -> pb::ShardGroup {
    pb::ShardGroup {
        shards: shards_from(group.shards),
        epoch: group.epoch.to_string(),
        in_sync: group.in_sync,
        hot: group.hot,
        learners: group.learners,
        target: group.target,
        floor: version(group.floor),
        frozen: group.is_frozen,
        settled: version(group.settled),
    }
}

pub(super) fn shares(outlook: &Outlook) -> Vec<pb::NodeShare> {
    let shares = outlook.shares.iter().map(|share| pb::NodeShare {
        node: share.node.to_string(),
        shards_before: shards_from(share.before),
        shards_after: shards_from(share.after),
        document_count_before: share.documents_before,
        document_count_after: share.documents_after,
        document_count_to_copy: share.documents_to_copy,
        bytes_to_copy: share.bytes_to_copy,
    });
    shares.collect()
}

pub(super) fn balance(balance: Balance) -> pb::Balance {
    pb::Balance {
        before: balance.before.unwrap_or(1.0),
        after: balance.after,
        least: balance.least,
    }
}

pub(super) fn estimate(estimate: Estimate) -> pb::Estimate {
    let (slowest, seconds) = estimate.longest.unzip();
    pb::Estimate {
        bytes: estimate.bytes,
        seconds: seconds.unwrap_or_default(),
        slowest_node: slowest.map_or_else(String::new, |node| node.to_string()),
    }
}

pub(super) fn plan(plan: Plan) -> pb::Plan {
    let state = match plan.state {
        PlanState::Staged => pb::PlanState::Staged,
        PlanState::Beginning => pb::PlanState::Beginning,
        PlanState::Moving => pb::PlanState::Moving,
        PlanState::Ending => pb::PlanState::Ending,
    };
    pb::Plan {
        id: plan.id,
        state: state.into(),
        draw_time: Some(time(plan.drawn_at)),
        moves: plan.moves.iter().map(planned_move).collect(),
    }
}

fn planned_move(shown: &ShownMove) -> pb::PlannedMove {
    let state = match shown.how_far {
        HowFar::Planned => pb::MoveState::Planned,
        HowFar::Waits => pb::MoveState::Waiting,
        HowFar::Copies => pb::MoveState::Copying,
        HowFar::Leaves => pb::MoveState::Leaving,
        HowFar::Arrived => pb::MoveState::Arrived,
        HowFar::Elsewhere => pb::MoveState::Elsewhere,
    };
    let names = |nodes: &BTreeSet<NodeId>| nodes.iter().map(NodeId::to_string).collect();
    pb::PlannedMove {
        shards: shards_from(shown.shards),
        from_nodes: names(&shown.from),
        to_nodes: names(&shown.to),
        state: state.into(),
    }
}

pub(super) fn aborted(aborted: Aborted) -> pb::AbortPlanResponse {
    let (all, arrived) = match aborted {
        Aborted::None | Aborted::Damaged | Aborted::Unmoved => (0, 0),
        Aborted::Moved { all, arrived } => (all, arrived),
    };
    pb::AbortPlanResponse {
        had_plan: aborted != Aborted::None,
        // There are 256 shards.
        shard_count: all as u32,
        arrived_shard_count: arrived as u32,
    }
}

pub(super) fn upgrade(state: UpgradeState) -> pb::GetUpgradeResponse {
    pb::GetUpgradeResponse {
        level: state.level,
        next_level: state.next,
        processes: state.processes.into_iter().map(process).collect(),
    }
}

fn process(process: Process) -> pb::Process {
    let role = match process.role {
        Role::Node => pb::ProcessRole::Node,
        Role::Router => pb::ProcessRole::Router,
    };
    let shown = process.shown;
    pb::Process {
        role: role.into(),
        name: process.name,
        oldest_level: shown.as_ref().map_or(0, |shown| shown.oldest),
        newest_level: shown.as_ref().map_or(0, |shown| shown.newest),
        version: shown.map_or_else(String::new, |shown| shown.version),
        problem: process.problem.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_those_of_the_command() {
        let of_command = finding(Finding {
            part: "moves",
            is_well: true,
            details: String::new(),
            facts: serde_json::json!({ "moving": { "n1": "00-0f" }, "paused": false, "n": [3, null] }),
        });
        let fields = of_command.facts.unwrap().fields;
        let kinds = |name: &str| fields[name].kind.clone().unwrap();
        let Kind::StructValue(moving) = kinds("moving") else {
            panic!("{fields:?}");
        };
        let shards = Kind::StringValue("00-0f".to_owned());
        assert_eq!(moving.fields["n1"].kind, Some(shards));
        assert_eq!(kinds("paused"), Kind::BoolValue(false));
        let Kind::ListValue(list) = kinds("n") else {
            panic!("{fields:?}");
        };
        let three = Kind::NumberValue(3.0);
        assert_eq!((list.values.len(), &list.values[0].kind), (2, &Some(three)));
    }
}
