//! `simshard cluster nodes`: the nodes that have registered, and which of them answer, or wait for their cluster.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use futures_util::future::join_all;
use serde_json::json;
use simshard_cluster::{
    KeyValueStore, MetadataError, RegisteredStore, registered_stores, waiting_stores,
};
use simshard_topology::replication::StoreId;

use super::TableArgs;
use super::asked::{self, Reports, settings};
use super::listing::{Listing, show};

pub(super) async fn run(args: &TableArgs) -> anyhow::Result<()> {
    show(args, list).await
}

async fn list(keys: &dyn KeyValueStore) -> anyhow::Result<Listing> {
    let rows = ask(keys).await?;
    let waiting = waiting_stores(keys).await?;
    let settings = settings(keys).await?;
    let mut listing =
        Listing::new("node\taddress\tstore\tanswers\tdrained\tzone\tcapacity\tcopy rate");
    for (store, reports) in &rows {
        let RegisteredStore {
            id, node, address, ..
        } = store;
        let answers = reports.is_some();
        let waits = waits(&waiting, *id, answers);
        let set = settings.get(node).cloned().unwrap_or_default();
        let capacity = set.capacity.map_or(1, NonZeroU32::get);
        let object = json!({
            "node": node.to_string(),
            "address": address.to_string(),
            "store": id.to_string(),
            "answers": answers,
            "waits": waits,
            "drained": set.is_drained,
            "zone": set.zone,
            "capacity": capacity,
            "copy_rate": set.copy_rate,
        });
        let answers = match (answers, waits) {
            (true, _) => "yes",
            (false, true) => "waits",
            (false, false) => "no",
        };
        let drained = if set.is_drained { "yes" } else { "no" };
        let zone = set.zone.as_deref().unwrap_or_default();
        let rate = set.copy_rate.map(|rate| rate.to_string());
        let rate = rate.unwrap_or_else(|| "none".to_owned());
        let columns =
            format!("{node}\t{address}\t{id}\t{answers}\t{drained}\t{zone}\t{capacity}\t{rate}");
        listing.push(columns, object);
    }
    Ok(listing)
}

/// Whether a node runs, and waits for the cluster to begin. One that answers waits no more.
fn waits(waiting: &BTreeSet<StoreId>, store: StoreId, answers: bool) -> bool {
    waiting.contains(&store) && !answers
}

/// The stores that have registered, by the names of their nodes, and what those have on disk that answer now.
pub(super) async fn ask(
    keys: &dyn KeyValueStore,
) -> Result<Vec<(RegisteredStore, Option<Reports>)>, MetadataError> {
    let mut stores = registered_stores(keys).await?;
    stores.sort_by(|a, b| a.node.cmp(&b.node));
    let reports = join_all(stores.iter().map(asked::reports_of)).await;
    Ok(stores.into_iter().zip(reports).collect())
}
