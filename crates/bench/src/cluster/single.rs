//! Requests of one document or one query each.

use std::sync::Arc;

use simshard_client::{Stub, v1 as pb};
use simshard_simhash::Fingerprint;

use super::check::{Answer, Sample};
use super::requests::refused;
use super::settings::BARE;
use super::streams::find_request;

/// Searches and inserts by their number, on one connection.
pub(super) struct Single {
    pub(super) connection: Stub,
    pub(super) queries: Vec<Fingerprint>,
    /// The documents to insert.
    pub(super) new: Vec<Fingerprint>,
    /// The queries whose answers are kept.
    pub(super) sample: Sample,
}

impl Single {
    /// Searches for the query of this number.
    pub(super) async fn find(self: Arc<Self>, number: usize) -> anyhow::Result<Option<Answer>> {
        let request = find_request(BARE, &[self.queries[number]]);
        let answer = self.connection.clone().find_all(request).await;
        let response = answer.map_err(refused)?.into_inner();
        let is_kept = self.sample.touches(number..number + 1);
        Ok(is_kept.then_some(Answer {
            first: number,
            response,
        }))
    }

    /// Inserts the document of this number.
    pub(super) async fn insert(self: Arc<Self>, number: usize) -> anyhow::Result<Option<Answer>> {
        let request = pb::InsertRequest {
            corpus: BARE.to_owned(),
            fingerprints: vec![self.new[number].0],
            ..pb::InsertRequest::default()
        };
        let answer = self.connection.clone().insert(request).await;
        answer.map_err(refused)?;
        Ok(None)
    }

    /// Does both by turns.
    pub(super) async fn either(self: Arc<Self>, number: usize) -> anyhow::Result<Option<Answer>> {
        match number % 2 {
            0 => self.insert(number / 2).await,
            _ => self.find(number / 2).await,
        }
    }
}
