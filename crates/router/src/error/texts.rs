//! The parts of errors' messages that take more than a line.

use std::collections::BTreeMap;

use simshard_cluster::{CorpusName, CorpusState, CorpusUid};
use simshard_topology::{NodeId, ShardSet};

use super::Why;

/// Corpora that one error names.
const MOST_NAMED_CORPORA: usize = 10;

/// A corpus and its state, for programs.
pub(super) fn corpus_in(corpus: &CorpusName, state: CorpusState) -> [(&'static str, String); 2] {
    let state = match state {
        CorpusState::Creating => "CREATING",
        CorpusState::Live => "LIVE",
        CorpusState::Deleting => "DELETING",
    };
    [("corpus", corpus.to_string()), ("state", state.to_owned())]
}

/// A node, for programs.
pub(super) fn one_node(node: &NodeId) -> Vec<(&'static str, String)> {
    vec![("nodes", node.to_string())]
}

/// What a corpus in this state is, and how to complete that.
pub(super) const fn unfinished(state: CorpusState) -> &'static str {
    match state {
        CorpusState::Creating => {
            "being created: if that was cut short, repeat the creation with the same configuration, or delete the corpus"
        }
        CorpusState::Live => "live",
        CorpusState::Deleting => "being deleted: repeat the deletion to complete it",
    }
}

/// The first few: an error travels in headers, which take only so much.
pub(super) fn listed(uids: &[CorpusUid]) -> String {
    let few = uids
        .iter()
        .take(MOST_NAMED_CORPORA)
        .map(CorpusUid::to_string);
    let few = few.collect::<Vec<_>>().join(", ");
    match uids.len().checked_sub(MOST_NAMED_CORPORA) {
        Some(more @ 1..) => format!("{few} and {more} more corpora"),
        Some(0) | None => few,
    }
}

/// Nodes that did not do their part, and their shards.
pub(super) fn unreachable(nodes: &BTreeMap<NodeId, ShardSet>, why: Why) -> String {
    let what = match why {
        Why::Late => "did not answer in time",
        Why::Lost => "cannot be reached",
        Why::LostWithMetadata => {
            "cannot be reached, and the metadata does not answer or cannot be understood, by which others would go on without \
             it (see the router's log)"
        }
        Why::Cold => {
            "must first make tables, or be filled by `simshard cluster force --rebuild`, as other replicas are lost"
        }
        Why::WrongEpoch => {
            "and this router have different records of shards, as one of them lacks news of the metadata"
        }
    };
    let name = |(node, shards)| format!("node {node} (shards {shards} of 00-ff)");
    let named: Vec<String> = nodes.iter().map(name).collect();
    format!("{} {what}: retry later", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_metadata_is_the_cause_it_is_named() {
        let nodes = BTreeMap::from([(NodeId::new("n1").unwrap(), ShardSet::ALL)]);
        let told = unreachable(&nodes, Why::LostWithMetadata);
        assert!(told.contains("node n1") && told.contains("the metadata does not answer"));
        assert!(!unreachable(&nodes, Why::Lost).contains("metadata"));
    }
}
