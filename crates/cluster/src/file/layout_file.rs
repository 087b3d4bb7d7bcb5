//! The layout file: TOML in, [`ClusterLayout`] out.
//!
//! ```toml
//! [[nodes]]
//! name = "n1"
//! address = "http://127.0.0.1:7470"
//! ```
//!
//! Every shard has one replica: with one file per machine there is nothing to
//! fail over to.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use simshard_runtime::toml_mistake::TomlMistake;
use simshard_topology::NodeId;

use crate::layout::{ClusterLayout, ClusterLayoutError, Node};
use crate::store::MetadataError;

const REPLICAS: usize = 1;

/// The file as it is written, before any of it is believed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLayout {
    #[serde(default)]
    nodes: Vec<RawNode>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawNode {
    name: String,
    address: String,
}

/// Reads and checks the layout file.
pub(super) fn load(path: &Path) -> Result<ClusterLayout, MetadataError> {
    let text = fs::read_to_string(path).map_err(|reason| MetadataError::Unreadable {
        path: path.to_owned(),
        reason,
    })?;
    let raw: RawLayout = toml::from_str(&text).map_err(|error| MetadataError::MalformedLayout {
        path: path.to_owned(),
        mistake: TomlMistake::of(&text, &error),
    })?;
    let mut nodes = Vec::with_capacity(raw.nodes.len());
    for node in raw.nodes {
        let id = NodeId::new(&node.name)
            .map_err(|error| unusable(path, ClusterLayoutError::BadName(error)))?;
        nodes.push(Node {
            id,
            address: node.address,
        });
    }
    ClusterLayout::planned(nodes, REPLICAS).map_err(|problem| unusable(path, problem))
}

fn unusable(path: &Path, problem: ClusterLayoutError) -> MetadataError {
    MetadataError::UnusableLayout {
        path: path.to_owned(),
        problem,
    }
}
