//! The stores of the nodes that an operator has chosen for shards.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use simshard_cluster::{ClusterLayout, Targets};
use simshard_topology::ShardId;
use simshard_topology::replication::StoreId;

/// The stores that are to hold each shard.
type Stores = BTreeMap<ShardId, BTreeSet<StoreId>>;

/// The stores that were found last, and by what.
#[derive(Debug, Default)]
pub(super) struct Aims(Option<(Arc<Targets>, Arc<ClusterLayout>, Arc<Stores>)>);

impl Aims {
    /// The stores by these targets and this layout. They are found anew only where one of the two has changed.
    pub(super) fn look(
        &mut self,
        targets: &Arc<Targets>,
        layout: &Arc<ClusterLayout>,
    ) -> Arc<Stores> {
        if let Some((by, in_layout, stores)) = &self.0
            && Arc::ptr_eq(by, targets)
            && Arc::ptr_eq(in_layout, layout)
        {
            return Arc::clone(stores);
        }
        let stores = targets.iter().map(|(shard, nodes)| {
            let stores = nodes.iter().flat_map(|node| layout.stores_of(node));
            (*shard, stores.collect())
        });
        let stores: Arc<Stores> = Arc::new(stores.collect());
        let (by, in_layout) = (Arc::clone(targets), Arc::clone(layout));
        self.0 = Some((by, in_layout, Arc::clone(&stores)));
        stores
    }
}
