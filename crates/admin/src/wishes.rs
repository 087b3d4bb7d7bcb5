//! What operators have set, as `status` shows it: also what of it cannot be understood.

use parking_lot::Mutex;
use serde_json::json;
use simshard_cluster::{
    KeyValueStore, MetadataError, PlanState, StagedPlan, Targets, node_settings, paused,
    staged_plan, targets,
};
use simshard_runtime::terminal::counted;
use simshard_topology::NodeId;

use crate::status::{Finding, finding};

/// What operators have set.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    pub(crate) targets: Targets,
    /// The nodes that are to take no shards.
    pub(crate) drained: Vec<NodeId>,
    pub(crate) are_paused: bool,
    pub(crate) plan: Option<StagedPlan>,
    /// Why some of it cannot be understood.
    pub(crate) damage: Vec<String>,
}

impl Wishes {
    pub(crate) async fn read(keys: &dyn KeyValueStore) -> Result<Self, MetadataError> {
        let damage = Mutex::new(Vec::new());
        let on_bad = |error: &MetadataError| damage.lock().push(error.to_string());
        let targets = targets(keys, &on_bad).await?;
        let settings = node_settings(keys, &on_bad).await?.into_iter();
        let drained = settings.filter(|(_, settings)| settings.is_drained);
        let drained = drained.map(|(node, _)| node).collect();
        let are_paused = paused(keys, &on_bad).await?.is_some();
        let plan = match staged_plan(keys).await {
            Ok(staged) => staged.map(|(plan, _)| plan),
            Err(error @ MetadataError::BadRecord { .. }) => {
                on_bad(&error);
                None
            }
            Err(error) => return Err(error),
        };
        Ok(Self {
            targets,
            drained,
            are_paused,
            plan,
            damage: damage.into_inner(),
        })
    }

    /// Whether all of it is understood. It could be read, so the metadata has answered.
    pub(crate) fn metadata(&self) -> Finding {
        let facts = json!({ "damaged": self.damage });
        let details = if self.damage.is_empty() {
            "answers".to_owned()
        } else {
            format!("answers; {}", self.damage.join("; "))
        };
        finding("metadata", self.damage.is_empty(), details, facts)
    }

    /// What becomes of the plan that is staged, if one is.
    pub(crate) fn plan_text(&self) -> Option<String> {
        let plan = self.plan.as_ref()?;
        let shards = counted(plan.moves.len(), "shard");
        Some(match plan.state {
            PlanState::Staged => format!(
                "a plan that moves {shards} waits: `simshard cluster rebalance apply`, or `abort`"
            ),
            PlanState::Beginning | PlanState::Moving => {
                format!("a plan that moves {shards} is carried out")
            }
            PlanState::Ending => format!("a plan that moves {shards} is taken back"),
        })
    }
}
