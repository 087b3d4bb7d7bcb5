//! `simshard cluster status`: whether a cluster is well, on one screen.

use serde_json::{Map, Value};
use simshard_admin::Finding;

use super::access::ClusterAccess;
use super::listing::{Listing, show};
use super::{TableArgs, admin};

pub(super) async fn run(args: &TableArgs) -> anyhow::Result<()> {
    show(args, list).await
}

async fn list(access: &ClusterAccess) -> anyhow::Result<Listing> {
    let mut listing = Listing::new("part\twell\tdetails");
    for finding in admin(access).status().await? {
        listing.push(columns(&finding), json(&finding));
    }
    Ok(listing)
}

fn columns(finding: &Finding) -> String {
    let is_well = if finding.is_well { "yes" } else { "no" };
    format!("{}\t{is_well}\t{}", finding.part, finding.details)
}

fn json(finding: &Finding) -> Value {
    let mut all = Map::new();
    all.insert("part".to_owned(), finding.part.into());
    all.insert("well".to_owned(), finding.is_well.into());
    all.extend(finding.facts.as_object().cloned().unwrap_or_default());
    Value::Object(all)
}
