//! What operators have set, as `status` shows it: also what of it cannot be understood.

use serde_json::json;
use simshard_cluster::{
    KeyValueStore, MetadataError, MetadataErrorKind, PlanState, StagedPlan, Targets, clashes,
    node_settings, paused, staged_plan, targets,
};
use simshard_runtime::terminal::counted;
use simshard_topology::NodeId;

use crate::finding::{Finding, finding};
use crate::layout::Layout;
use crate::nodes::Asked;
use crate::{Admin, AdminError};

/// What operators have set.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    pub(crate) targets: Targets,
    /// The nodes that are to take no shards.
    pub(crate) drained: Vec<NodeId>,
    pub(crate) are_paused: bool,
    pub(crate) plan: Option<StagedPlan>,
    /// Why the plan cannot be applied now, if it only waits for that.
    pub(crate) plan_refusal: Option<String>,
    /// Why some of it cannot be understood.
    pub(crate) damage: Vec<String>,
}

impl Admin<'_> {
    pub(crate) async fn wishes(&self) -> Result<Wishes, AdminError> {
        let wishes = Wishes::read(self.keys).await?;
        let staged = wishes.plan.as_ref();
        let waiting = staged.filter(|plan| plan.state == PlanState::Staged);
        let Some(plan) = waiting else {
            return Ok(wishes);
        };
        let layout = Layout::read(self).await;
        let checked = layout.and_then(|layout| layout.check_staged(plan));
        let plan_refusal = match checked {
            Ok(()) => None,
            Err(AdminError::Metadata(error)) if error.kind() == MetadataErrorKind::Failure => {
                return Err(error.into());
            }
            Err(refused) => Some(refused.to_string()),
        };
        Ok(Wishes {
            plan_refusal,
            ..wishes
        })
    }
}

impl Wishes {
    pub(crate) async fn read(keys: &dyn KeyValueStore) -> Result<Self, MetadataError> {
        let mut damage = Vec::new();
        let mut on_bad = |error: &MetadataError| damage.push(error.to_string());
        let targets = targets(keys, &mut on_bad).await?;
        let settings = node_settings(keys, &mut on_bad).await?.into_iter();
        let drained = settings.filter(|(_, settings)| settings.is_drained);
        let drained = drained.map(|(node, _)| node).collect();
        let are_paused = paused(keys, &mut on_bad).await?.is_some();
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
            plan_refusal: None,
            damage,
        })
    }

    /// Whether all of it is understood, and the stores do not clash. It could be read, so the metadata has answered.
    pub(crate) fn metadata(&self, asked: &Asked) -> Finding {
        let clashes = clashes(asked.iter().map(|(store, _)| store));
        let clashes = clashes.iter().map(ToString::to_string);
        let damage: Vec<String> = self.damage.iter().cloned().chain(clashes).collect();
        let facts = json!({ "damaged": damage });
        let details = if damage.is_empty() {
            "answers".to_owned()
        } else {
            format!("answers; {}", damage.join("; "))
        };
        finding("metadata", damage.is_empty(), details, facts)
    }

    /// What becomes of the plan that is staged, if one is.
    pub(crate) fn plan_text(&self) -> Option<String> {
        let plan = self.plan.as_ref()?;
        let shards = counted(plan.moves.len(), "shard");
        if let Some(refusal) = &self.plan_refusal {
            return Some(format!(
                "a plan that moves {shards} waits, and `simshard cluster rebalance apply` would refuse it now: {refusal}"
            ));
        }
        Some(match plan.state {
            PlanState::Staged => format!(
                "a plan that moves {shards} waits for `simshard cluster rebalance apply`, or for `rebalance abort`"
            ),
            PlanState::Beginning | PlanState::Moving => {
                format!("a plan that moves {shards} is being carried out")
            }
            PlanState::Ending => format!("a plan that moves {shards} is being taken back"),
        })
    }
}
