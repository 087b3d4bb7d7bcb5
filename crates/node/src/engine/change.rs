//! Inserting and removing documents.

use std::sync::Arc;

use rayon::prelude::*;
use simshard_cluster::CorpusUid;
use simshard_proto::Documents;
use simshard_topology::{ShardId, ShardSet};

use super::{Engine, group_by_shard};
use crate::error::NodeError;
use crate::shard::{Document, Shard};

impl Engine {
    /// Inserts documents into those of their shards that are meant; returns how
    /// many were new in their home shard, if that is meant.
    pub(crate) async fn insert(
        self: &Arc<Self>,
        corpus: CorpusUid,
        shards: ShardSet,
        documents: Documents,
    ) -> Result<u64, NodeError> {
        self.change(corpus, shards, documents, Shard::insert).await
    }

    /// Removes documents from those of their shards that are meant; returns how
    /// many were in their home shard, if that is meant.
    pub(crate) async fn remove(
        self: &Arc<Self>,
        corpus: CorpusUid,
        shards: ShardSet,
        documents: Documents,
    ) -> Result<u64, NodeError> {
        let remove = |shard: &mut Shard, documents: Vec<Document>| shard.remove(&documents);
        self.change(corpus, shards, documents, remove).await
    }

    async fn change(
        self: &Arc<Self>,
        corpus: CorpusUid,
        shards: ShardSet,
        documents: Documents,
        change: fn(&mut Shard, Vec<Document>) -> u64,
    ) -> Result<u64, NodeError> {
        self.check_owned(shards)?;
        let corpus = self.corpora.get(corpus)?;
        self.run(move |_, _| {
            let parts = group_by_shard(shards, &documents.fingerprints, |fingerprint| {
                let shards = corpus.tables.document_shards(fingerprint);
                shards.map(ShardId).collect()
            });
            let counts = parts.into_par_iter().map(|(id, places)| {
                let picked = pick(&documents, &places);
                corpus
                    .write(id)
                    .map_or(0, |mut shard| change(&mut shard, picked))
            });
            Ok(counts.sum())
        })
        .await
    }
}

fn pick(documents: &Documents, places: &[u32]) -> Vec<Document> {
    let document = |&place: &u32| {
        let place = place as usize;
        (documents.fingerprints[place], documents.id(place).into())
    };
    places.iter().map(document).collect()
}
