//! What a shard has in common with each other one.

use std::sync::Arc;

use simshard_proto::shard::v1 as pb;
use simshard_proto::shard_into;
use simshard_topology::{ShardSet, Version};
use tokio::task::spawn_blocking;
use tonic::Status;

use super::{held, pin, uids};
use crate::engine::Engine;
use crate::error::NodeError;

/// Sums up the cells of a shard, as a request says.
pub(crate) async fn sum_cells(
    engine: &Arc<Engine>,
    request: &pb::SumCellsRequest,
) -> Result<pb::SumCellsResponse, Status> {
    let shard = shard_into("shard", request.shard)?;
    let (_, record) = held(engine, shard, &request.store)?;
    let corpora = uids(&request.corpora)?;
    let until = Version(request.compared_version);
    let settled = Version(request.settled_version);
    let permit = engine.scrub_permit().await?;
    let pinned = pin(engine, shard, record.epoch)?;
    let summed = spawn_blocking(move || {
        let _permit = permit;
        pinned.cells(shard, &corpora, until, settled)
    });
    let summed = summed.await.map_err(|_| NodeError::Stopping)?;
    let cells = summed.map_err(NodeError::from)?;
    let sums = ShardSet::ALL.iter().flat_map(|other| cells.with(other));
    Ok(pb::SumCellsResponse {
        sums: sums.collect(),
    })
}
