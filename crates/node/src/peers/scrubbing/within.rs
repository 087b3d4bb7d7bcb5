//! Comparing the replicas of a shard with each other.

use std::time::Duration;

use futures_util::future::try_join_all;
use simshard_proto::shard::v1 as pb;
use simshard_storage::Corpus;
use simshard_topology::Version;
use simshard_topology::replication::StoreId;
use tokio::time::sleep;
use tonic::Status;
use tracing::{info, warn};

use super::differences::{Compared, Difference, confirmed, ranges};
use super::elements::Replica;
use super::reading::{Reading, Replicas};
use super::repairs::{repair, repair_own, repairs};
use super::telling::{Place, Telling};
use super::{OwnShard, most};

/// Between two readings of the same documents: what was on its way has come by then.
const CONFIRM_PAUSE: Duration = Duration::from_secs(1);

/// The replicas of a shard that are compared with each other.
pub(super) struct Within {
    replicas: Replicas,
    own: StoreId,
    /// They take repairs, and are not compared.
    learners: Vec<Replica>,
    repairs: bool,
}

impl Within {
    pub(super) fn new(own: &OwnShard, request: &pb::ScrubShardRequest) -> Result<Self, Status> {
        let learners = own.record.learners.iter();
        // One that cannot be reached will be dropped.
        let learners = learners.filter_map(|learner| own.replica(learner.store).ok());
        let versions = Compared {
            until: Version(request.compared_version),
            settled: own.record.settled,
            to_settle: false,
        };
        Ok(Self {
            learners: learners.collect(),
            replicas: own.replicas(versions, most(request))?,
            own: own.store,
            repairs: request.repairs,
        })
    }

    /// The stores that are compared.
    fn stores(&self) -> impl Iterator<Item = StoreId> {
        let others = self.replicas.others.iter().map(|replica| replica.store);
        std::iter::once(self.own).chain(others)
    }

    pub(super) async fn run(&self, telling: &mut Telling) -> Result<(), Status> {
        telling.summary().stores = self.stores().flat_map(|store| store.0).collect();
        // With one replica there is nothing to compare.
        while !self.replicas.others.is_empty() && self.round(telling).await? {}
        let pb::ScrubSummary {
            compared_count: compared,
            difference_count: differences,
            repaired_count: repaired,
            ..
        } = *telling.summary();
        let shard = self.replicas.shard;
        if differences > 0 {
            info!(%shard, compared, differences, repaired, "the replicas of a shard were compared");
        }
        Ok(())
    }

    /// Finds as many differences as it may take note of, and repairs them. Answers whether there may be others.
    async fn round(&self, telling: &mut Telling) -> Result<bool, Status> {
        let summary = telling.summary();
        let first = self.replicas.read(&[]).await?;
        note(summary, &first);
        summary.compared_count = first.compared;
        summary.has_more = first.found.has_more;
        let mut differences = first.found.differences;
        let mut corpora = first.corpora;
        if !differences.is_empty() {
            sleep(CONFIRM_PAUSE).await;
            let second = self.replicas.read(&ranges(&differences)).await?;
            note(summary, &second);
            differences = confirmed(differences, &second.found.differences);
            corpora = second.corpora;
        }
        let mut left = differences.clone();
        let mut failed = None;
        if self.repairs && !differences.is_empty() {
            failed = self.repair(&differences, &corpora).await.err();
            match self.replicas.read(&ranges(&differences)).await {
                Ok(third) => {
                    note(summary, &third);
                    left.retain(|one| third.found.has(&one.key));
                }
                // Which ones are repaired is not known.
                Err(status) => drop(failed.get_or_insert(status)),
            }
        }
        let may_go_on = summary.has_more && left.len() < differences.len();
        let shard = self.replicas.shard;
        let places: Vec<Place> = self.stores().map(|store| (shard, store)).collect();
        telling.tell(&places, &differences, &left).await?;
        failed.map_or(Ok(may_go_on), Err)
    }

    /// Carries the newest state of each document to the replicas that lack it, and to learners: their copies may have
    /// been read before.
    async fn repair(&self, differences: &[Difference], corpora: &[Corpus]) -> Result<(), Status> {
        let Replicas {
            engine,
            shard,
            epoch,
            others,
            ..
        } = &self.replicas;
        let lacked = |place: usize| repairs(differences, corpora, |one| one.is_lacking(place));
        repair_own(engine, *shard, *epoch, lacked(0)).await?;
        let others = (1..)
            .zip(others)
            .map(async |(place, other)| repair(other, *shard, *epoch, &lacked(place)).await);
        try_join_all(others).await?;
        let all = repairs(differences, corpora, |_| true);
        for learner in &self.learners {
            if let Err(status) = repair(learner, *shard, *epoch, &all).await {
                let error = status.message();
                warn!(%shard, error, "a learner lacks what was repaired: compare the shard again once it is in sync");
            }
        }
        Ok(())
    }
}

/// Takes note of what a reading took.
fn note(summary: &mut pb::ScrubSummary, reading: &Reading) {
    summary.message_bytes += reading.bytes;
}
