//! From requests of operators to domain types.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use simshard_admin::{MOST_REPLICAS, Replication};
use simshard_proto::{Violations, admin::v1 as pb, shards_into};
use simshard_topology::{NodeId, ShardSet};
use tonic::Status;

/// Nodes that one request names, at most.
const MOST_NODES: usize = 1_000;

pub(super) fn node(field: &str, name: &str) -> Result<NodeId, Status> {
    NodeId::new(name).map_err(|error| Violations::of(field, format!("is wrong: {error}")))
}

/// Of an empty name, none.
pub(super) fn optional_node(field: &str, name: &str) -> Result<Option<NodeId>, Status> {
    let is_set = !name.is_empty();
    is_set.then(|| node(field, name)).transpose()
}

pub(super) fn nodes(field: &str, names: &[String]) -> Result<BTreeSet<NodeId>, Status> {
    if names.len() > MOST_NODES {
        let wrong = format!(
            "has {} elements: at most {MOST_NODES} are allowed",
            names.len()
        );
        return Err(Violations::of(field, wrong));
    }
    let names = names.iter().enumerate();
    names
        .map(|(place, name)| node(&format!("{field}[{place}]"), name))
        .collect()
}

/// At least one shard.
pub(super) fn shards(shards: &[u32]) -> Result<ShardSet, Status> {
    let shards = shards_into(shards)?;
    if shards.is_empty() {
        return Err(Violations::of(
            "shards",
            "is empty: name at least one shard",
        ));
    }
    Ok(shards)
}

pub(super) fn move_shards(
    request: &pb::MoveShardsRequest,
) -> Result<(ShardSet, BTreeSet<NodeId>), Status> {
    let shards = shards(&request.shards)?;
    let nodes = nodes("nodes", &request.nodes)?;
    if nodes.is_empty() {
        let wrong = "is empty: name as many nodes as the shards have replicas";
        return Err(Violations::of("nodes", wrong));
    }
    Ok((shards, nodes))
}

pub(super) fn replace_node(request: &pb::ReplaceNodeRequest) -> Result<(NodeId, NodeId), Status> {
    let replaced = node("node", &request.node)?;
    let by = node("replacement", &request.replacement)?;
    if replaced == by {
        let wrong = "is the node itself: name another one";
        return Err(Violations::of("replacement", wrong));
    }
    Ok((replaced, by))
}

pub(super) fn replication(request: &pb::SetReplicationRequest) -> Result<Replication, Status> {
    let want = u8::try_from(request.replicas).unwrap_or(u8::MAX);
    let hot = request.hot.map(|hot| u8::try_from(hot).unwrap_or(u8::MAX));
    Replication::new(want, hot).ok_or_else(|| {
        let is_wrong = Replication::new(want, None).is_none();
        let (field, wrong) = if is_wrong {
            (
                "replicas",
                format!("is {}: 1 to {MOST_REPLICAS} are allowed", request.replicas),
            )
        } else {
            let hot = request.hot.unwrap_or_default();
            (
                "hot",
                format!("is {hot}: 1 to {want} are allowed, as there are replicas"),
            )
        };
        Violations::of(field, wrong)
    })
}

pub(super) fn capacity(request: &pb::SetCapacityRequest) -> Result<(NodeId, NonZeroU32), Status> {
    let node = node("node", &request.node)?;
    let capacity = NonZeroU32::new(request.capacity);
    let capacity = capacity.ok_or_else(|| Violations::of("capacity", "is 0: it is 1 or more"))?;
    Ok((node, capacity))
}

pub(super) fn limits(
    request: &pb::SetLimitsRequest,
) -> Result<(NodeId, Option<NonZeroU32>), Status> {
    let node = node("node", &request.node)?;
    Ok((node, NonZeroU32::new(request.copy_rate)))
}

#[cfg(test)]
mod tests {
    use simshard_proto::Reason;
    use tonic_types::StatusExt;

    use super::*;

    fn refused_field<T: std::fmt::Debug>(decoded: Result<T, Status>) -> String {
        let status = decoded.unwrap_err();
        assert_eq!(Reason::of(&status), Some(Reason::InvalidRequest));
        let mut fields = status.get_details_bad_request().unwrap().field_violations;
        fields.remove(0).field
    }

    #[test]
    fn each_wrong_field_is_named() {
        let named = |nodes: &[&str], shards: &[u32]| pb::MoveShardsRequest {
            shards: shards.to_vec(),
            nodes: nodes.iter().map(|&node| node.to_owned()).collect(),
            dry_run: false,
        };
        let (shards, nodes) = move_shards(&named(&["n2", "n1", "n2"], &[255, 0])).unwrap();
        assert_eq!((shards.to_string(), nodes.len()), ("00,ff".to_owned(), 2));
        for (request, field) in [
            (named(&["n1"], &[]), "shards"),
            (named(&["n1"], &[256]), "shards"),
            (named(&[], &[7]), "nodes"),
            (named(&["n1", ""], &[7]), "nodes[1]"),
            (named(&["n1"; 1_001], &[7]), "nodes"),
        ] {
            assert_eq!(refused_field(move_shards(&request)), field);
        }
        let replacement = |by: &str| pb::ReplaceNodeRequest {
            node: "n1".to_owned(),
            replacement: by.to_owned(),
            dry_run: true,
        };
        assert_eq!(
            refused_field(replace_node(&replacement("n1"))),
            "replacement"
        );
        let zero = pb::SetCapacityRequest {
            node: "n1".to_owned(),
            capacity: 0,
        };
        assert_eq!(refused_field(capacity(&zero)), "capacity");
        assert_eq!(optional_node("zone", "").unwrap(), None);
        assert_eq!(refused_field(optional_node("zone", "rack 1")), "zone");
    }

    #[test]
    fn numbers_of_replicas_beyond_any_are_refused() {
        let request = |replicas, hot| pb::SetReplicationRequest {
            replicas,
            hot,
            confirmed: false,
            dry_run: false,
        };
        assert_eq!(replication(&request(3, None)).unwrap().hot(), 2);
        for (replicas, hot, field) in [
            (0, None, "replicas"),
            (257, None, "replicas"),
            (2, Some(3), "hot"),
            (2, Some(258), "hot"),
            (2, Some(0), "hot"),
        ] {
            let refused = replication(&request(replicas, hot));
            assert_eq!(refused_field(refused), field, "{replicas} {hot:?}");
        }
    }
}
