//! The gRPC edge of the operations on a cluster: decode, delegate, convert.

mod call;
mod convert;
mod decode;
mod error;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use simshard_admin::Departure;
use simshard_cluster::KeyValueStore;
use simshard_proto::admin::v1 as pb;
use simshard_proto::admin::v1::admin_service_server::{AdminService, AdminServiceServer};
use simshard_proto::{MAX_MESSAGE_BYTES, Reason, shards_from};
use simshard_topology::ShardSet;
use simshard_transport::Dialer;
use tokio::sync::Semaphore;
use tonic::{Request, Response, Status};

use call::{Call, confirm};

use crate::deadline::Deadline;

/// Requests that are served at once. Each asks all nodes.
const MOST_AT_ONCE: usize = 8;

/// `simshard.admin.v1.AdminService` over the metadata of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct AdminGrpc {
    /// Where nodes register themselves, if they do.
    keys: Option<Arc<dyn KeyValueStore>>,
    /// How it asks nodes.
    dialer: Dialer,
    /// How long a request may take if the client does not say.
    timeout: Duration,
    places: Arc<Semaphore>,
}

impl AdminGrpc {
    pub(crate) fn new(
        keys: Option<Arc<dyn KeyValueStore>>,
        dialer: Dialer,
        timeout: Duration,
    ) -> Self {
        Self {
            keys,
            dialer,
            timeout,
            places: Arc::new(Semaphore::new(MOST_AT_ONCE)),
        }
    }

    pub(crate) fn into_server(self) -> AdminServiceServer<Self> {
        AdminServiceServer::new(self)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }

    fn call<T>(&self, request: &Request<T>) -> Result<Call, Status> {
        let keys = self.keys.as_ref().ok_or_else(|| {
            let problem = "the nodes of this router do not register themselves: ask a router that was started with \
                           --metadata and without a layout file";
            Reason::NoRegisteredNodes.status(problem, [])
        })?;
        let deadline = Deadline::from_metadata(request.metadata(), self.timeout);
        let place = Arc::clone(&self.places).try_acquire_owned();
        let place = place.map_err(|_| {
            let problem = format!(
                "{MOST_AT_ONCE} requests of operators are in flight: retry once one of them has ended"
            );
            Reason::Overloaded.status(problem, [])
        })?;
        let keys = Arc::clone(keys);
        Ok(Call::new(keys, self.dialer.clone(), deadline, place))
    }
}

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl AdminService for AdminGrpc {
    async fn get_status(
        &self,
        request: Request<pb::GetStatusRequest>,
    ) -> Answer<pb::GetStatusResponse> {
        let call = self.call(&request)?;
        let findings = call.in_time(call.admin().status()).await?;
        Ok(Response::new(pb::GetStatusResponse {
            findings: findings.into_iter().map(convert::finding).collect(),
            warnings: call.warnings(),
        }))
    }

    async fn list_nodes(
        &self,
        request: Request<pb::ListNodesRequest>,
    ) -> Answer<pb::ListNodesResponse> {
        let call = self.call(&request)?;
        let nodes = call.in_time(call.admin().nodes()).await?;
        Ok(Response::new(pb::ListNodesResponse {
            nodes: nodes.into_iter().map(convert::node).collect(),
            warnings: call.warnings(),
        }))
    }

    async fn list_shards(
        &self,
        request: Request<pb::ListShardsRequest>,
    ) -> Answer<pb::ListShardsResponse> {
        let call = self.call(&request)?;
        let node = decode::optional_node("node", &request.get_ref().node)?;
        let groups = call.in_time(call.admin().shards(node.as_ref())).await?;
        Ok(Response::new(pb::ListShardsResponse {
            groups: groups.into_iter().map(convert::group).collect(),
            warnings: call.warnings(),
        }))
    }

    async fn draw_plan(
        &self,
        request: Request<pb::DrawPlanRequest>,
    ) -> Answer<pb::DrawPlanResponse> {
        let call = self.call(&request)?;
        let drawn = call.in_time(call.admin().draw_plan()).await?;
        call.in_time(call.admin().stage(&drawn)).await?;
        let plan_id = (!drawn.is_empty()).then(|| drawn.id());
        Ok(Response::new(pb::DrawPlanResponse {
            plan_id: plan_id.unwrap_or_default(),
            shares: convert::shares(&drawn.outlook),
            balance: drawn.outlook.balance.map(convert::balance),
            estimate: Some(convert::estimate(drawn.estimate)),
            warnings: call.warnings_and(drawn.outlook.unmet),
        }))
    }

    async fn get_plan(&self, request: Request<pb::GetPlanRequest>) -> Answer<pb::GetPlanResponse> {
        let call = self.call(&request)?;
        let paused = call.in_time(call.admin().paused()).await?;
        let plan = call.in_time(call.admin().plan()).await?;
        Ok(Response::new(pb::GetPlanResponse {
            plan: plan.map(convert::plan),
            pause_time: paused.map(|paused| convert::time(paused.since.unwrap_or_default())),
            warnings: call.warnings(),
        }))
    }

    async fn apply_plan(
        &self,
        request: Request<pb::ApplyPlanRequest>,
    ) -> Answer<pb::ApplyPlanResponse> {
        let call = self.call(&request)?;
        let pb::ApplyPlanRequest { plan_id, confirmed } = request.into_inner();
        let plan = call.in_time(call.admin().applicable()).await?;
        if !plan_id.is_empty() && plan.id() != plan_id {
            let problem = format!(
                "another plan has been drawn since, {}: look at it",
                plan.id()
            );
            return Err(Reason::ChangedMeanwhile.status(problem, []));
        }
        confirm(plan.question.as_deref(), confirmed)?;
        let placing = call.in_time(call.admin().apply(&plan)).await?;
        Ok(Response::new(pb::ApplyPlanResponse {
            moving_shards: shards_from(placing.unplaced),
        }))
    }

    async fn abort_plan(
        &self,
        request: Request<pb::AbortPlanRequest>,
    ) -> Answer<pb::AbortPlanResponse> {
        let call = self.call(&request)?;
        let aborted = call.in_time(call.admin().abort()).await?;
        Ok(Response::new(convert::aborted(aborted)))
    }

    async fn pause_moves(
        &self,
        request: Request<pb::PauseMovesRequest>,
    ) -> Answer<pb::PauseMovesResponse> {
        let call = self.call(&request)?;
        let pause = call.in_time(call.admin().pause()).await?;
        Ok(Response::new(pb::PauseMovesResponse {
            pause_time: Some(convert::time(pause.since)),
        }))
    }

    async fn resume_moves(
        &self,
        request: Request<pb::ResumeMovesRequest>,
    ) -> Answer<pb::ResumeMovesResponse> {
        let call = self.call(&request)?;
        call.in_time(call.admin().resume()).await?;
        Ok(Response::new(pb::ResumeMovesResponse {}))
    }

    async fn move_shards(
        &self,
        request: Request<pb::MoveShardsRequest>,
    ) -> Answer<pb::MoveShardsResponse> {
        let call = self.call(&request)?;
        let (shards, nodes) = decode::move_shards(request.get_ref())?;
        let planned = call.in_time(call.admin().plan_move(shards, &nodes)).await?;
        let shares = convert::shares(&planned.outlook);
        let unmet = planned.outlook.unmet.clone();
        let moving = if request.get_ref().dry_run {
            ShardSet::EMPTY
        } else {
            let placing = call.in_time(call.admin().move_shards(planned)).await?;
            placing.unplaced
        };
        Ok(Response::new(pb::MoveShardsResponse {
            moving_shards: shards_from(moving),
            shares,
            warnings: call.warnings_and(unmet),
        }))
    }

    async fn free_shards(
        &self,
        request: Request<pb::FreeShardsRequest>,
    ) -> Answer<pb::FreeShardsResponse> {
        let call = self.call(&request)?;
        let shards = decode::shards(&request.get_ref().shards)?;
        call.in_time(call.admin().free_shards(shards)).await?;
        Ok(Response::new(pb::FreeShardsResponse {}))
    }

    async fn drain_node(
        &self,
        request: Request<pb::DrainNodeRequest>,
    ) -> Answer<pb::DrainNodeResponse> {
        let call = self.call(&request)?;
        let pb::DrainNodeRequest { node, dry_run } = request.into_inner();
        let node = decode::node("node", &node)?;
        let departure = Departure::Drain(BTreeSet::from([node]));
        let (planned, moving) = call.empty(&departure, dry_run).await?;
        Ok(Response::new(pb::DrainNodeResponse {
            moving_shards: shards_from(moving),
            shares: convert::shares(&planned.outlook),
            balance: planned.outlook.balance.map(convert::balance),
            warnings: call.warnings_and(planned.outlook.unmet),
        }))
    }

    async fn undrain_node(
        &self,
        request: Request<pb::UndrainNodeRequest>,
    ) -> Answer<pb::UndrainNodeResponse> {
        let call = self.call(&request)?;
        let node = decode::node("node", &request.get_ref().node)?;
        call.in_time(call.admin().undrain(&node)).await?;
        Ok(Response::new(pb::UndrainNodeResponse {
            warnings: call.warnings(),
        }))
    }

    async fn replace_node(
        &self,
        request: Request<pb::ReplaceNodeRequest>,
    ) -> Answer<pb::ReplaceNodeResponse> {
        let call = self.call(&request)?;
        let (node, by) = decode::replace_node(request.get_ref())?;
        let departure = Departure::Replace { node, by };
        let (planned, moving) = call.empty(&departure, request.get_ref().dry_run).await?;
        Ok(Response::new(pb::ReplaceNodeResponse {
            moving_shards: shards_from(moving),
            shares: convert::shares(&planned.outlook),
            warnings: call.warnings_and(planned.outlook.unmet),
        }))
    }

    async fn remove_node(
        &self,
        request: Request<pb::RemoveNodeRequest>,
    ) -> Answer<pb::RemoveNodeResponse> {
        let call = self.call(&request)?;
        let node = decode::node("node", &request.get_ref().node)?;
        call.in_time(call.admin().remove(&node)).await?;
        Ok(Response::new(pb::RemoveNodeResponse {}))
    }

    async fn set_replication(
        &self,
        request: Request<pb::SetReplicationRequest>,
    ) -> Answer<pb::SetReplicationResponse> {
        let call = self.call(&request)?;
        let wished = decode::replication(request.get_ref())?;
        let plan = call.in_time(call.admin().plan_replication(wished)).await?;
        let outlook = plan.outlook.clone();
        let moving = call.replicate(plan, request.get_ref()).await?;
        Ok(Response::new(pb::SetReplicationResponse {
            moving_shards: shards_from(moving),
            shares: convert::shares(&outlook),
            warnings: call.warnings_and(outlook.unmet),
        }))
    }

    async fn set_zone(&self, request: Request<pb::SetZoneRequest>) -> Answer<pb::SetZoneResponse> {
        let call = self.call(&request)?;
        let pb::SetZoneRequest { node, zone } = request.into_inner();
        let node = decode::node("node", &node)?;
        let zone = decode::optional_node("zone", &zone)?;
        call.in_time(call.admin().set_zone(&node, zone.as_ref()))
            .await?;
        Ok(Response::new(pb::SetZoneResponse {}))
    }

    async fn set_capacity(
        &self,
        request: Request<pb::SetCapacityRequest>,
    ) -> Answer<pb::SetCapacityResponse> {
        let call = self.call(&request)?;
        let (node, capacity) = decode::capacity(request.get_ref())?;
        call.in_time(call.admin().set_capacity(&node, capacity))
            .await?;
        Ok(Response::new(pb::SetCapacityResponse {}))
    }

    async fn set_limits(
        &self,
        request: Request<pb::SetLimitsRequest>,
    ) -> Answer<pb::SetLimitsResponse> {
        let call = self.call(&request)?;
        let (node, rate) = decode::limits(request.get_ref())?;
        call.in_time(call.admin().set_copy_rate(&node, rate))
            .await?;
        Ok(Response::new(pb::SetLimitsResponse {}))
    }

    async fn get_upgrade(
        &self,
        request: Request<pb::GetUpgradeRequest>,
    ) -> Answer<pb::GetUpgradeResponse> {
        let call = self.call(&request)?;
        let state = call.in_time(call.admin().upgrade()).await?;
        Ok(Response::new(convert::upgrade(state)))
    }

    async fn finalize_upgrade(
        &self,
        request: Request<pb::FinalizeUpgradeRequest>,
    ) -> Answer<pb::FinalizeUpgradeResponse> {
        let call = self.call(&request)?;
        let pb::FinalizeUpgradeRequest {
            stopped_nodes,
            confirmed,
        } = request.into_inner();
        let stopped = decode::nodes("stopped_nodes", &stopped_nodes)?;
        let stopped = Vec::from_iter(stopped);
        let admin = call.admin();
        let asked = admin.question_before_finalize(&stopped);
        let (level, question) = call.in_time(asked).await?;
        confirm(question.as_deref(), confirmed)?;
        let level = match question {
            Some(_) => call.in_time(admin.finalize(&stopped)).await?,
            None => level,
        };
        Ok(Response::new(pb::FinalizeUpgradeResponse { level }))
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use simshard_admin::AdminError;
    use simshard_cluster::MemoryKeyValues;

    use super::*;

    fn edge() -> AdminGrpc {
        AdminGrpc::new(
            Some(Arc::new(MemoryKeyValues::new())),
            Dialer::PLAIN,
            Duration::from_secs(30),
        )
    }

    fn request() -> Request<pb::GetStatusRequest> {
        Request::new(pb::GetStatusRequest {})
    }

    #[tokio::test]
    async fn a_few_requests_are_served_at_once() {
        let edge = edge();
        let calls: Vec<Call> = (0..MOST_AT_ONCE)
            .map(|_| edge.call(&request()).unwrap())
            .collect();
        let refused = edge.get_status(request()).await.unwrap_err();
        assert_eq!(Reason::of(&refused), Some(Reason::Overloaded));
        drop(calls);
        // There is room for it, and no cluster.
        let refused = edge.get_status(request()).await.unwrap_err();
        assert_eq!(Reason::of(&refused), Some(Reason::Refused));
        assert!(refused.message().contains("there is no cluster yet"));
    }

    #[tokio::test(start_paused = true)]
    async fn an_operation_ends_at_the_deadline_of_its_client() {
        let mut request = request();
        let timeout = "2S".parse().unwrap();
        request.metadata_mut().insert("grpc-timeout", timeout);
        let started = tokio::time::Instant::now();
        let call = edge().call(&request).unwrap();
        let late = call.in_time(pending::<Result<(), AdminError>>()).await;
        assert_eq!(
            Reason::of(&late.unwrap_err()),
            Some(Reason::DeadlineTooShort)
        );
        assert!(started.elapsed() < Duration::from_secs(2));
    }
}
