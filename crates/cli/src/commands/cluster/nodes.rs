//! `simshard cluster nodes`: the nodes that have registered, and which of them answer, or wait for their cluster.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use futures_util::future::join_all;
use serde_json::json;
use simshard_cluster::{
    KeyValueStore, MetadataError, NodeSettings, RegisteredStore, registered_stores, waiting_stores,
};
use simshard_topology::replication::StoreId;

use super::TableArgs;
use super::asked::{self, Reports, settings};
use crate::say;

pub(super) async fn run(args: &TableArgs) -> anyhow::Result<()> {
    let keys = args.metadata.keys()?;
    let rows = ask(&*keys).await?;
    let waiting = waiting_stores(&*keys).await?;
    let settings = settings(&*keys).await?;
    let set = |node| settings.get(node).cloned().unwrap_or_default();
    let capacity = |set: &NodeSettings| set.capacity.map_or(1, NonZeroU32::get);
    if args.output.json {
        for (store, reports) in &rows {
            let RegisteredStore {
                id, node, address, ..
            } = store;
            let answers = reports.is_some();
            let set = set(node);
            say::print_json(&json!({
                "node": node.to_string(),
                "address": address.to_string(),
                "store": id.to_string(),
                "answers": answers,
                "waits": waits(&waiting, *id, answers),
                "drained": set.is_drained,
                "zone": set.zone,
                "capacity": capacity(&set),
                "copy_rate": set.copy_rate,
            }))?;
        }
        return Ok(());
    }
    let mut text = "node\taddress\tstore\tanswers\tdrained\tzone\tcapacity\tcopy rate".to_owned();
    for (store, reports) in &rows {
        let RegisteredStore {
            id, node, address, ..
        } = store;
        let answers = if reports.is_some() {
            "yes"
        } else if waits(&waiting, *id, false) {
            "waits"
        } else {
            "no"
        };
        let set = set(node);
        let drained = if set.is_drained { "yes" } else { "no" };
        let (zone, capacity) = (set.zone.as_deref().unwrap_or_default(), capacity(&set));
        let rate = set.copy_rate.map(|rate| rate.to_string());
        let rate = rate.unwrap_or_else(|| "none".to_owned());
        text.push_str(&format!(
            "\n{node}\t{address}\t{id}\t{answers}\t{drained}\t{zone}\t{capacity}\t{rate}"
        ));
    }
    say::print(&text)?;
    Ok(())
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
