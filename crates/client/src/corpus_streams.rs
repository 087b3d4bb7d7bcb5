//! Streams about whole corpora. They have no deadline: drop one to end it.

use futures_util::{Stream, StreamExt};
use simshard_proto::{
    Group, GroupPair, MalformedColumns, documents_of_columns, pairs_into, v1 as pb,
};
use simshard_simhash::Fingerprint;
use tonic::{Status, Streaming};

use crate::client::Client;
use crate::error::ClientError;

/// A document of a corpus.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Document {
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
    /// Its id; empty for a bare fingerprint.
    pub id: String,
}

/// Pairs of documents, as they come: the ids behind a fingerprint once, however many pairs they make.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs {
    groups: Vec<Group>,
    pairs: Vec<GroupPair>,
}

/// Two documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentPair<'a> {
    /// The fingerprint of one.
    pub fingerprint_a: Fingerprint,
    /// Its id; empty for a bare fingerprint.
    pub id_a: &'a str,
    /// The fingerprint of the other, which is not smaller.
    pub fingerprint_b: Fingerprint,
    /// Its id.
    pub id_b: &'a str,
    /// The distance between the two fingerprints, in bits.
    pub distance: u32,
}

/// A document of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterMember {
    /// The cluster: the smallest fingerprint in it, which no other cluster has.
    pub cluster: Fingerprint,
    /// The document.
    pub document: Document,
}

impl Pairs {
    /// The pairs, one by one: n documents with one fingerprint make n (n - 1) / 2.
    pub fn iter(&self) -> impl Iterator<Item = DocumentPair<'_>> {
        self.pairs.iter().flat_map(|pair| {
            let (left, right) = (&self.groups[pair.left], &self.groups[pair.right]);
            let within = pair.left == pair.right;
            left.ids.iter().enumerate().flat_map(move |(place, a)| {
                let others = if within { place + 1 } else { 0 };
                right.ids[others..].iter().map(move |b| DocumentPair {
                    fingerprint_a: left.fingerprint,
                    id_a: a,
                    fingerprint_b: right.fingerprint,
                    id_b: b,
                    distance: pair.distance,
                })
            })
        })
    }
}

/// Each fails if the router refuses the stream. Each batch can fail, which ends it, and then not all were yielded.
impl Client {
    /// Yields the documents of a corpus in batches, each once, by fingerprint, then id. Those that are inserted
    /// or removed meanwhile may be among them or not.
    pub async fn scan(
        &self,
        corpus: &str,
    ) -> Result<impl Stream<Item = Result<Vec<Document>, ClientError>> + use<>, ClientError> {
        let request = pb::ScanRequest {
            corpus: corpus.to_owned(),
            recipe: self.recipe.clone(),
        };
        let answers = self.stub.clone().scan(request).await;
        self.decoded(answers, |answer: pb::ScanResponse| {
            documents(answer.fingerprints, answer.ids)
        })
    }

    /// Yields the pairs of documents of a corpus whose fingerprints differ in at most `max_distance` bits, or the
    /// corpus's distance, each pair once, in no order. Pairs with documents that are inserted or removed meanwhile
    /// may be among them or not.
    pub async fn find_pairs(
        &self,
        corpus: &str,
        max_distance: Option<u32>,
    ) -> Result<impl Stream<Item = Result<Pairs, ClientError>> + use<>, ClientError> {
        let request = pb::FindPairsRequest {
            corpus: corpus.to_owned(),
            recipe: self.recipe.clone(),
            max_distance,
        };
        let answers = self.stub.clone().find_pairs(request).await;
        self.decoded(answers, |answer| {
            let (groups, pairs) = pairs_into(answer)?;
            Ok(Pairs { groups, pairs })
        })
    }

    /// Yields the documents that are linked by pairs within `max_distance` bits, or the corpus's distance, directly or
    /// through others. One cluster follows another, ordered by cluster, fingerprint, and id. Documents that are
    /// inserted or removed meanwhile may link others or not.
    pub async fn find_clusters(
        &self,
        corpus: &str,
        max_distance: Option<u32>,
    ) -> Result<impl Stream<Item = Result<Vec<ClusterMember>, ClientError>> + use<>, ClientError>
    {
        let request = pb::FindClustersRequest {
            corpus: corpus.to_owned(),
            recipe: self.recipe.clone(),
            max_distance,
        };
        let answers = self.stub.clone().find_clusters(request).await;
        self.decoded(answers, members)
    }

    /// The answers of a stream that the router has accepted.
    fn decoded<A, T>(
        &self,
        answers: Result<tonic::Response<Streaming<A>>, Status>,
        decode: fn(A) -> Result<T, MalformedColumns>,
    ) -> Result<impl Stream<Item = Result<T, ClientError>> + use<A, T>, ClientError> {
        let answers = answers.map_err(|status| self.error(status))?.into_inner();
        let url = self.url.clone();
        Ok(answers.map(move |answer| match answer {
            Ok(answer) => Ok(decode(answer)?),
            Err(status) => Err(ClientError::from_status(status, &url)),
        }))
    }
}

fn members(answer: pb::FindClustersResponse) -> Result<Vec<ClusterMember>, MalformedColumns> {
    let documents = documents(answer.fingerprints, answer.ids)?;
    if answer.clusters.len() != documents.len() {
        return Err(MalformedColumns {
            column: "clusters",
            found: answer.clusters.len(),
            expected: documents.len(),
        });
    }
    let clusters = answer.clusters.into_iter().map(Fingerprint);
    let member = |(cluster, document)| ClusterMember { cluster, document };
    Ok(clusters.zip(documents).map(member).collect())
}

fn documents(fingerprints: Vec<u64>, ids: Vec<String>) -> Result<Vec<Document>, MalformedColumns> {
    let mut documents = documents_of_columns(fingerprints, ids)?;
    documents
        .ids
        .resize(documents.fingerprints.len(), String::new());
    let pairs = documents.fingerprints.into_iter().zip(documents.ids);
    let document = |(fingerprint, id)| Document { fingerprint, id };
    Ok(pairs.map(document).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_do_not_fit_are_refused() {
        let answer = |clusters: &[u64], ids: &[&str]| pb::FindClustersResponse {
            clusters: clusters.to_vec(),
            fingerprints: vec![4, 5],
            ids: ids.iter().map(|&id| id.to_owned()).collect(),
        };
        assert_eq!(members(answer(&[4, 4], &[])).unwrap().len(), 2);
        assert_eq!(members(answer(&[4], &[])).unwrap_err().column, "clusters");
        let short = members(answer(&[4, 4], &["a"]));
        assert_eq!(short.unwrap_err().column, "ids");
    }

    #[test]
    fn a_row_stands_for_all_pairs_between_its_groups_or_within_one() {
        let group = |fingerprint, ids: &[&str]| Group {
            fingerprint: Fingerprint(fingerprint),
            ids: ids.iter().map(|&id| id.to_owned()).collect(),
        };
        let row = |left, right, distance| GroupPair {
            left,
            right,
            distance,
        };
        let pairs = Pairs {
            groups: vec![group(4, &["a", "b", "c"]), group(5, &["", "x"])],
            pairs: vec![row(0, 0, 0), row(0, 1, 1)],
        };
        let listed = pairs.iter().map(|pair| {
            assert_eq!(
                pair.distance,
                pair.fingerprint_a.distance(pair.fingerprint_b)
            );
            (pair.id_a, pair.id_b)
        });
        let expected = [
            ("a", "b"),
            ("a", "c"),
            ("b", "c"),
            ("a", ""),
            ("a", "x"),
            ("b", ""),
            ("b", "x"),
            ("c", ""),
            ("c", "x"),
        ];
        assert!(listed.eq(expected));
    }
}
