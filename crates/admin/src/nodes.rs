//! The nodes that have registered, and which of them answer, or wait for their cluster.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use simshard_cluster::{
    MetadataError, NodeSettings, RegisteredStore, registered_stores, waiting_stores,
};
use simshard_node::StoreAnswer;
use simshard_topology::replication::StoreId;

use crate::asked::settings;
use crate::{Admin, AdminError};

/// A node that has registered.
#[derive(Clone, Debug)]
pub struct KnownNode {
    /// The node, and its store.
    pub store: RegisteredStore,
    /// Whether it answers now.
    pub answers: bool,
    /// Whether it runs, and waits for the cluster to begin.
    pub waits: bool,
    /// What operators have set for it.
    pub settings: NodeSettings,
}

/// The stores that have registered, and what those answer that live.
pub(crate) type Asked = [(RegisteredStore, Option<StoreAnswer>)];

impl Admin<'_> {
    /// The nodes that have registered, by their names.
    ///
    /// # Errors
    /// If the metadata cannot be read.
    pub async fn nodes(&self) -> Result<Vec<KnownNode>, AdminError> {
        let asked = self.ask_all().await?;
        let waiting = waiting_stores(self.keys).await?;
        let mut settings = settings(self).await?;
        let nodes = asked.into_iter().map(|(store, answer)| {
            let answers = answer.is_some();
            KnownNode {
                answers,
                waits: waits(&waiting, store.id, answers),
                settings: settings.remove(&store.node).unwrap_or_default(),
                store,
            }
        });
        Ok(nodes.collect())
    }

    /// The stores that have registered, by the names of their nodes, and what those answer that live.
    pub(crate) async fn ask_all(
        &self,
    ) -> Result<Vec<(RegisteredStore, Option<StoreAnswer>)>, MetadataError> {
        let mut stores = registered_stores(self.keys).await?;
        stores.sort_by(|a, b| a.node.cmp(&b.node));
        let answers: Vec<_> = stores.iter().map(|store| self.answer_of(store)).collect();
        let answers = join_all(answers).await;
        Ok(stores.into_iter().zip(answers).collect())
    }
}

/// Whether a node runs, and waits for the cluster to begin. One that answers waits no more.
fn waits(waiting: &BTreeSet<StoreId>, store: StoreId, answers: bool) -> bool {
    waiting.contains(&store) && !answers
}
