//! Ending what an operator's command began with a staged plan, if that command was cut off.

use std::sync::Arc;
use std::time::Duration;

use simshard_cluster::{KeyValueStore, PlanState, StagedPlan, carry_on, follow_staged_plan};
use simshard_topology::replication::StoreId;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::left_out;

/// A plan that begins or ends for this long has lost the command that did it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Nodes do not all begin at once: each waits this long in addition for each step of the first byte of its store.
const STEP: Duration = Duration::from_millis(8);

/// Follows the staged plan, and goes on with it where that is due, as long as it is polled.
pub(super) async fn run(keys: &Arc<dyn KeyValueStore>, own: StoreId) {
    let told = watch::Sender::default();
    let followed = told.subscribe();
    tokio::join!(
        follow_staged_plan(Arc::clone(keys), &told, left_out),
        go_on(&**keys, followed, PATIENCE + STEP * u32::from(own.0[0])),
    );
}

async fn go_on(
    keys: &dyn KeyValueStore,
    mut followed: watch::Receiver<Option<Arc<Vec<StagedPlan>>>>,
    patience: Duration,
) {
    loop {
        let is_under_way = followed
            .borrow_and_update()
            .iter()
            .flat_map(|plans| &**plans)
            .any(|plan| matches!(plan.state, PlanState::Beginning | PlanState::Ending));
        if !is_under_way {
            if followed.changed().await.is_err() {
                return;
            }
            continue;
        }
        if timeout(patience, followed.changed()).await.is_ok() {
            continue;
        }
        match carry_on(keys).await {
            Ok(()) => info!(
                "this node went on with the staged plan, as the command that began it is gone"
            ),
            Err(error) => warn!(%error, "this node cannot go on with the staged plan now"),
        }
        sleep(PATIENCE).await;
    }
}
