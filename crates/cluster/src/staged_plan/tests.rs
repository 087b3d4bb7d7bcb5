//! Plans that two processes change at once, that are cut off, or that are not possible any more.

use super::*;
use crate::disturbed::{Before, Disturbed};
use crate::key_value::MemoryKeyValues;
use crate::membership::register;
use crate::node_settings::{NodeSettings, change_node_settings};
use crate::steps::tests::{cluster, registered};
use crate::targets::{set_targets, targets};

const SHARDS: [ShardId; 3] = [ShardId(3), ShardId(4), ShardId(200)];

fn nodes(names: &[&str]) -> BTreeSet<NodeId> {
    let names = names.iter();
    names.map(|name| NodeId::new(name).unwrap()).collect()
}

/// A plan that takes shards from n3 to n4.
fn plan() -> StagedPlan {
    let planned = PlannedMove {
        from: nodes(&["n1", "n2", "n3"]),
        to: nodes(&["n1", "n2", "n4"]),
        had_target: false,
    };
    let moves = SHARDS.map(|shard| (shard, planned.clone()));
    let zone = NodeSettings {
        zone: Some("rack-a".to_owned()),
        ..NodeSettings::default()
    };
    let drawn_for = SettingsOfNodes::from([(NodeId::new("n1").unwrap(), zone)]);
    StagedPlan::new(1_795_000_000, BTreeMap::from(moves), drawn_for)
}

/// A cluster of three nodes with a spare one, and this plan.
async fn staged(plan: &StagedPlan) -> MemoryKeyValues {
    let keys = cluster().await;
    register(&keys, &registered(StoreId([4; 16])))
        .await
        .unwrap();
    stage_plan(&keys, plan, None).await.unwrap();
    keys
}

async fn turn(keys: &dyn KeyValueStore, state: PlanState) {
    let (plan, revision) = staged_plan(keys).await.unwrap().unwrap();
    let plan = plan.turned(state);
    stage_plan(keys, &plan, Some(revision)).await.unwrap();
}

async fn state_of(keys: &dyn KeyValueStore) -> Option<PlanState> {
    let read = staged_plan(keys).await.unwrap();
    read.map(|(plan, _)| plan.state)
}

async fn targets_of(keys: &dyn KeyValueStore) -> Targets {
    targets(keys, |_| {}).await.unwrap()
}

/// SP1.
#[tokio::test]
async fn of_two_plans_one_is_staged() {
    let (first, second) = (plan(), plan());
    let keys = staged(&first).await;
    let late = stage_plan(&keys, &second, None).await;
    assert!(matches!(late, Err(MetadataError::Raced)));
    let (read, revision) = staged_plan(&keys).await.unwrap().unwrap();
    assert_eq!(read, first);
    stage_plan(&keys, &second, Some(revision)).await.unwrap();
    let late = stage_plan(&keys, &first, Some(revision)).await;
    assert!(matches!(late, Err(MetadataError::Raced)));
    let (read, _) = staged_plan(&keys).await.unwrap().unwrap();
    assert_eq!(read, second);
}

/// SP4: each attempt is cut off one change later than the one before.
#[tokio::test]
async fn any_process_goes_on_with_a_plan() {
    for cut_off in 0..3 {
        let mut keys = staged(&plan()).await;
        assert_eq!(targets_of(&keys).await, Targets::new());
        for (state, after) in [
            (PlanState::Beginning, Some(PlanState::Moving)),
            (PlanState::Ending, None),
        ] {
            turn(&keys, state).await;
            let nothing = (0..cut_off).map(|_| Before::Nothing);
            let cut = Disturbed::commits(keys, nothing.chain([Before::Failure]));
            let first = carry_on(&cut).await;
            keys = cut.keys;
            assert_eq!(first.is_err(), cut_off < 2, "{cut_off} {first:?}");
            carry_on(&keys).await.unwrap();
            assert_eq!(state_of(&keys).await, after);
        }
        assert_eq!(targets_of(&keys).await, Targets::new());
    }
}

/// SP2: before each change of one who begins it, another one takes it back.
#[tokio::test]
async fn a_plan_that_is_taken_back_sets_no_target() {
    for place in 0..2 {
        let keys = staged(&plan()).await;
        turn(&keys, PlanState::Beginning).await;
        let (begun, _) = staged_plan(&keys).await.unwrap().unwrap();
        let state = PlanState::Ending;
        let ending = RawPlan::from(&StagedPlan { state, ..begun });
        let text = serde_json::to_string(&ending).unwrap();
        let back = Before::Change(Transaction::new().put(keys::STAGED_PLAN, text));
        let nothing = (0..place).map(|_| Before::Nothing);
        let raced = Disturbed::commits(keys, nothing.chain([back]));
        carry_on(&raced).await.unwrap();
        assert!(raced.committed().1 > 0, "{place}");
        let keys = raced.keys;
        assert_eq!(state_of(&keys).await, None);
        assert_eq!(targets_of(&keys).await, Targets::new());
    }
}

/// SP3.
#[tokio::test]
async fn shards_with_other_targets_are_left_alone() {
    let keys = staged(&plan()).await;
    let elsewhere = nodes(&["n2", "n3", "n4"]);
    let others = Targets::from([(SHARDS[1], elsewhere.clone())]);
    set_targets(&keys, &others, ShardSet::EMPTY).await.unwrap();
    turn(&keys, PlanState::Beginning).await;
    carry_on(&keys).await.unwrap();
    let mut expected = plan().targets();
    expected.insert(SHARDS[1], elsewhere);
    assert_eq!(targets_of(&keys).await, expected);
    turn(&keys, PlanState::Ending).await;
    carry_on(&keys).await.unwrap();
    assert_eq!(targets_of(&keys).await, others);
}

/// SP3: they are chosen between the reading of the targets and their commit.
#[tokio::test]
async fn targets_that_are_chosen_meanwhile_are_left_alone() {
    let keys = staged(&plan()).await;
    turn(&keys, PlanState::Beginning).await;
    let elsewhere = r#"{"nodes":["n2","n3","n4"]}"#;
    let change = Transaction::new().put(keys::target(SHARDS[1]), elsewhere);
    let keys = Disturbed::commits(keys, [Before::Change(change)]);
    carry_on(&keys).await.unwrap();
    let mut expected = plan().targets();
    expected.insert(SHARDS[1], nodes(&["n2", "n3", "n4"]));
    assert_eq!(targets_of(&keys).await, expected);
    assert_eq!(state_of(&keys).await, Some(PlanState::Moving));
}

/// SP3: an operator had chosen nodes for two shards before. A node of the first one is drained while the plan is carried out.
#[tokio::test]
async fn each_target_that_a_plan_replaced_comes_back_if_it_can() {
    for is_drained in [false, true] {
        let mut plan = plan();
        let elsewhere = PlannedMove {
            from: nodes(&["n1", "n2", "n4"]),
            to: nodes(&["n2", "n3", "n4"]),
            had_target: true,
        };
        plan.moves.insert(SHARDS[1], elsewhere);
        plan.moves.get_mut(&SHARDS[0]).unwrap().had_target = true;
        let replaced = SHARDS[..2].iter();
        let before = replaced.map(|shard| (*shard, plan.moves[shard].from.clone()));
        let before: Targets = before.collect();
        let keys = staged(&plan).await;
        set_targets(&keys, &before, ShardSet::EMPTY).await.unwrap();
        turn(&keys, PlanState::Beginning).await;
        carry_on(&keys).await.unwrap();
        assert_eq!(targets_of(&keys).await, plan.targets());
        let node = NodeId::new("n3").unwrap();
        let set = |settings: &mut NodeSettings| settings.is_drained = is_drained;
        change_node_settings(&keys, &node, set).await.unwrap();
        turn(&keys, PlanState::Ending).await;
        carry_on(&keys).await.unwrap();
        let mut back = before;
        back.retain(|_, nodes| !is_drained || !nodes.contains(&node));
        assert_eq!(back.len(), if is_drained { 1 } else { 2 });
        // The plan was never reached, but for what the shards held from the beginning.
        assert_eq!(targets_of(&keys).await, back);
        assert_eq!(state_of(&keys).await, None);
    }
}

/// Else each attempt would fail like the first one.
#[tokio::test]
async fn a_plan_that_is_not_possible_any_more_ends() {
    let keys = staged(&plan()).await;
    turn(&keys, PlanState::Beginning).await;
    let drain = |settings: &mut NodeSettings| settings.is_drained = true;
    let node = NodeId::new("n4").unwrap();
    change_node_settings(&keys, &node, drain).await.unwrap();
    let refused = carry_on(&keys).await.unwrap_err().to_string();
    assert!(refused.contains("node n4 is drained"), "{refused}");
    assert_eq!(state_of(&keys).await, None);
    assert_eq!(targets_of(&keys).await, Targets::new());
}

/// A target that is reached stays when a plan is taken back.
#[tokio::test]
async fn shards_that_have_arrived_stay() {
    let mut plan = plan();
    let there = PlannedMove {
        from: nodes(&["n1", "n2", "n4"]),
        to: nodes(&["n1", "n2", "n3"]),
        had_target: false,
    };
    plan.moves.insert(SHARDS[0], there);
    let keys = staged(&plan).await;
    turn(&keys, PlanState::Beginning).await;
    carry_on(&keys).await.unwrap();
    let open: ShardSet = SHARDS[1..].iter().copied().collect();
    assert_eq!(unreached(&keys, &plan).await.unwrap(), open);
    turn(&keys, PlanState::Ending).await;
    carry_on(&keys).await.unwrap();
    let left = Targets::from([(SHARDS[0], nodes(&["n1", "n2", "n3"]))]);
    assert_eq!(targets_of(&keys).await, left);
}

#[tokio::test]
async fn a_damaged_plan_is_refused_by_its_key() {
    let keys = cluster().await;
    let damaged = [
        "{",
        r#"{"id":"7","state":"staged","drawn_at":1,"moves":[]}"#,
        r#"{"id":"67e55044-10b1-426f-9247-bb680e5fe0c8","state":"begun","drawn_at":1,"moves":[]}"#,
        r#"{"id":"67e55044-10b1-426f-9247-bb680e5fe0c8","state":"staged","drawn_at":1,
            "moves":[{"shards":"07","from":["n1"],"to":[],"had_target":false}]}"#,
        r#"{"id":"67e55044-10b1-426f-9247-bb680e5fe0c8","state":"staged","drawn_at":1,
            "moves":[{"shards":"07","from":[],"to":["n1"],"had_target":false},{"shards":"00-0f","from":[],"to":["n2"],"had_target":false}]}"#,
    ];
    for text in damaged {
        let change = Transaction::new().put(keys::STAGED_PLAN, text);
        let outcome = keys.commit(&change).await.unwrap();
        assert!(matches!(outcome, Outcome::Committed(_)));
        let refused = staged_plan(&keys).await.unwrap_err().to_string();
        assert!(refused.contains("staged-plan"), "{refused}");
        assert!(refused.contains("rebalance abort`"), "{refused}");
        assert!(remove_bad_plan(&keys).await.unwrap());
        assert!(staged_plan(&keys).await.unwrap().is_none());
    }
    stage_plan(&keys, &plan(), None).await.unwrap();
    assert!(!remove_bad_plan(&keys).await.unwrap());
    assert!(staged_plan(&keys).await.unwrap().is_some());
}
