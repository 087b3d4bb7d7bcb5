//! Which nodes are to hold which shards.

use std::collections::BTreeSet;

use simshard_cluster::{Targets, check_targets, set_targets};
use simshard_runtime::terminal::counted;
use simshard_topology::{NodeId, ShardSet};

use crate::layout::{Layout, names, nodes_of};
use crate::placing::Placing;
use crate::{Admin, AdminError, Outlook};

/// Shards that are to go to other nodes.
pub struct Moving {
    /// What becomes of the nodes.
    pub outlook: Outlook,
    layout: Layout,
    targets: Targets,
}

impl Admin<'_> {
    /// Plans how shards go to the nodes that are named. Nothing is written.
    ///
    /// # Errors
    /// If a node would not come, or their number is not that of the replicas.
    pub async fn plan_move(
        &self,
        shards: ShardSet,
        nodes: &BTreeSet<NodeId>,
    ) -> Result<Moving, AdminError> {
        let layout = Layout::read(self).await?;
        let after = layout.moved(shards, nodes)?;
        // Those that are there already stay.
        let targets = shards.iter();
        let targets = targets.map(|shard| (shard, nodes_of(&after, shard)));
        let targets: Targets = targets.collect();
        check_targets(self.keys, &targets).await?;
        let mut outlook = Outlook::of_map(&layout, &after);
        outlook.unmet.extend(crowded(&layout, nodes));
        Ok(Moving {
            outlook,
            layout,
            targets,
        })
    }

    /// Lets shards go where that was planned.
    ///
    /// # Errors
    /// If others have changed too much since.
    pub async fn move_shards(&self, planned: Moving) -> Result<Placing, AdminError> {
        let Moving {
            layout, targets, ..
        } = planned;
        let placing = Placing {
            targets,
            ..Placing::default()
        };
        self.place(&layout, placing).await
    }

    /// Lets shards be anywhere: they stay where they are, and a move under way ends.
    ///
    /// # Errors
    /// If the metadata cannot be written.
    pub async fn free_shards(&self, shards: ShardSet) -> Result<(), AdminError> {
        Ok(set_targets(self.keys, &Targets::new(), shards).await?)
    }

    /// Sets targets. Answers which shards are elsewhere.
    pub(crate) async fn place(
        &self,
        layout: &Layout,
        mut placing: Placing,
    ) -> Result<Placing, AdminError> {
        set_targets(self.keys, &placing.targets, ShardSet::EMPTY).await?;
        placing.unplaced = placing.not_done(&layout.records, &layout.nodes_of_stores());
        Ok(placing)
    }
}

/// Says that nodes are in fewer zones than they could be.
fn crowded(layout: &Layout, nodes: &BTreeSet<NodeId>) -> Option<String> {
    let zones = |nodes: &BTreeSet<NodeId>| {
        let zones = nodes
            .iter()
            .cloned()
            .map(|node| layout.cluster.candidate(node).zone);
        zones.collect::<BTreeSet<_>>().len()
    };
    let (named, possible) = (zones(nodes), zones(&layout.takers()).min(nodes.len()));
    (named < possible).then(|| {
        format!(
            "{} are in {}: name nodes of {possible}, so that a zone that fails takes fewer replicas",
            names(nodes),
            counted(named, "zone")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaving::tests::Scene;

    #[test]
    fn nodes_that_are_in_fewer_zones_than_they_could_be_are_told() {
        let scene = Scene {
            nodes: 4,
            dead: vec![],
            drained: vec![],
            want: 2,
        };
        let mut layout = scene.layout(|_| (vec![1, 2], None));
        let named = |numbers: &[u8]| -> BTreeSet<NodeId> {
            let names = numbers.iter().map(|number| format!("n{number}"));
            names.map(|name| NodeId::new(&name).unwrap()).collect()
        };
        // All nodes are in one zone, as none has any.
        assert_eq!(crowded(&layout, &named(&[1, 2])), None);
        for node in named(&[3, 4]) {
            layout.cluster.put_in_zone(&node, "x");
        }
        assert_eq!(crowded(&layout, &named(&[1, 3])), None);
        assert_eq!(crowded(&layout, &named(&[3])), None);
        assert_eq!(
            crowded(&layout, &named(&[3, 4])).unwrap(),
            "n3,n4 are in 1 zone: name nodes of 2, so that a zone that fails takes fewer replicas"
        );
    }
}
