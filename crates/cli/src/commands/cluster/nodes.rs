//! `simshard cluster nodes`: the nodes that have registered, and which of them answer, or wait for their cluster.

use std::num::NonZeroU32;

use serde_json::json;
use simshard_admin::KnownNode;
use simshard_cluster::RegisteredStore;

use super::access::ClusterAccess;
use super::listing::{Listing, show};
use super::{TableArgs, admin};

pub(super) async fn run(args: &TableArgs) -> anyhow::Result<()> {
    show(args, list).await
}

async fn list(access: &ClusterAccess) -> anyhow::Result<Listing> {
    let mut listing =
        Listing::new("node\taddress\tstore\tanswers\tdrained\tzone\tcapacity\tcopy rate");
    for known in admin(access).nodes().await? {
        let KnownNode {
            store,
            answers,
            waits,
            settings: set,
        } = known;
        let RegisteredStore {
            id, node, address, ..
        } = store;
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
