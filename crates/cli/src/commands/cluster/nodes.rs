//! `simshard cluster nodes`: the nodes that have registered, and which of them answer.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use simshard_cluster::{KeyValueStore, MetadataError, RegisteredStore, registered_stores};
use simshard_node::ask_for_epochs;

use super::TableArgs;
use crate::say;

/// A node that lives answers in this time.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) async fn run(args: &TableArgs) -> anyhow::Result<()> {
    let rows = ask(&*args.metadata.keys()?).await?;
    if args.output.json {
        for (store, answers) in &rows {
            let RegisteredStore {
                id, node, address, ..
            } = store;
            say::print_json(&json!({
                "node": node.to_string(),
                "address": address.to_string(),
                "store": id.to_string(),
                "answers": answers,
            }))?;
        }
        return Ok(());
    }
    let mut text = "node\taddress\tstore\tanswers".to_owned();
    for (store, answers) in &rows {
        let RegisteredStore {
            id, node, address, ..
        } = store;
        let answers = if *answers { "yes" } else { "no" };
        text.push_str(&format!("\n{node}\t{address}\t{id}\t{answers}"));
    }
    say::print(&text)?;
    Ok(())
}

/// The stores that have registered, by the names of their nodes, and whether each answers now.
pub(super) async fn ask(
    keys: &dyn KeyValueStore,
) -> Result<Vec<(RegisteredStore, bool)>, MetadataError> {
    let mut stores = registered_stores(keys).await?;
    stores.sort_by(|a, b| a.node.cmp(&b.node));
    let answers = join_all(stores.iter().map(answers)).await;
    Ok(stores.into_iter().zip(answers).collect())
}

/// Whether the store itself answers at its address.
async fn answers(store: &RegisteredStore) -> bool {
    let epochs = ask_for_epochs(&store.address, store.id, ANSWER_TIMEOUT);
    epochs.await.is_some()
}
