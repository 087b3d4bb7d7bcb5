//! Batches of documents and of queries, in requests of their own and in streams: decode, delegate, convert.

use std::sync::Arc;

use simshard_proto::v1 as pb;
use tonic::Status;

use super::{CorpusGrpc, convert};
use crate::caller::CallerWatch;
use crate::deadline::Deadline;
use crate::decode::{self, Find, OnCorpus};
use crate::remembered::OpenCorpus;
use crate::router::{Change, FindOutcome, QueryBatch};

impl CorpusGrpc {
    async fn change(
        &self,
        change: Change,
        request: OnCorpus<Vec<String>>,
        deadline: Deadline,
        held: impl CallerWatch,
    ) -> Result<u64, Status> {
        self.rights.check(&request.name)?;
        if change != Change::Insert {
            let documents = request.batch.len();
            self.rights.log_removal(&request.name, documents)?;
        }
        let work = async |corpus: Arc<OpenCorpus>| {
            let documents = request.documents(&corpus).await?;
            self.router
                .change(&corpus, change, documents, deadline, held.clone())
                .await
        };
        let router = &self.router;
        Ok(router
            .on_corpus(&request.name, &request.recipe, work)
            .await?)
    }

    async fn find(
        &self,
        request: OnCorpus<Find>,
        deadline: Deadline,
    ) -> Result<(Vec<u64>, FindOutcome), Status> {
        self.rights.check(&request.name)?;
        let router = &self.router;
        let spec = request.rest.spec;
        let work = async |corpus: Arc<OpenCorpus>| {
            let near = QueryBatch {
                queries: request.batch.fingerprints(&corpus).await?.into(),
                max_distance: decode::distance(spec.max_distance, corpus.layout())?,
                spec,
            };
            let found = router.find(&corpus, &near, deadline).await?;
            Ok((near.queries.iter().map(|query| query.0).collect(), found))
        };
        Ok(router
            .on_corpus(&request.name, &request.recipe, work)
            .await?)
    }

    pub(super) async fn insert_batch(
        &self,
        request: pb::InsertRequest,
        deadline: Deadline,
        held: impl CallerWatch,
    ) -> Result<pb::InsertResponse, Status> {
        let documents = decode::insert(request)?;
        let inserted_count = self
            .change(Change::Insert, documents, deadline, held)
            .await?;
        Ok(pb::InsertResponse { inserted_count })
    }

    pub(super) async fn remove_batch(
        &self,
        request: pb::RemoveRequest,
        deadline: Deadline,
        held: impl CallerWatch,
    ) -> Result<pb::RemoveResponse, Status> {
        let change = if request.beyond_clock {
            Change::RemoveBeyondClock
        } else {
            Change::Remove
        };
        let documents = decode::remove(request)?;
        let removed_count = self.change(change, documents, deadline, held).await?;
        Ok(pb::RemoveResponse { removed_count })
    }

    pub(super) async fn find_first_batch(
        &self,
        request: pb::FindFirstRequest,
        deadline: Deadline,
    ) -> Result<pb::FindFirstResponse, Status> {
        let request = decode::find_first(request)?;
        let form = request.rest.form;
        let (queries, found) = self.find(request, deadline).await?;
        convert::find_first_response(queries, found, form).await
    }

    pub(super) async fn find_all_batch(
        &self,
        request: pb::FindAllRequest,
        deadline: Deadline,
    ) -> Result<pb::FindAllResponse, Status> {
        let request = decode::find_all(request)?;
        let form = request.rest.form;
        let (queries, found) = self.find(request, deadline).await?;
        convert::find_all_response(queries, found, form).await
    }
}
