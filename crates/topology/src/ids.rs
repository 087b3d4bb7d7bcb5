//! The names everything else is keyed by: shards and nodes.

use std::fmt;
use std::sync::Arc;

/// One of the 256 shards: the leading byte of a permuted fingerprint.
///
/// Shown as two lower-case hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u8);

impl ShardId {
    /// How many shards there are.
    pub const COUNT: usize = 256;

    /// Every shard, in order.
    pub fn all() -> impl DoubleEndedIterator<Item = ShardId> + ExactSizeIterator + Clone {
        (0..Self::COUNT).map(|byte| ShardId(byte as u8))
    }

    /// The position of this shard in an array of all shards.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The shard before this one, if there is one.
    pub(crate) fn before(self) -> Option<ShardId> {
        self.0.checked_sub(1).map(ShardId)
    }

    /// The shard after this one, if there is one.
    pub(crate) fn after(self) -> Option<ShardId> {
        self.0.checked_add(1).map(ShardId)
    }
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}", self.0)
    }
}

/// The name of a node: 1 to 64 of `a-z`, `0-9` and `-`, starting with a letter or a digit.
///
/// Cloning copies a pointer, not the text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(Arc<str>);

impl NodeId {
    /// The longest name, in characters.
    pub(crate) const MAX_LEN: usize = 64;

    /// Checks `name` and makes it a node id.
    pub fn new(name: &str) -> Result<NodeId, NodeIdError> {
        let Some(first) = name.chars().next() else {
            return Err(NodeIdError::Empty);
        };
        let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if let Some(found) = name.chars().find(|&c| !is_allowed(c)) {
            return Err(NodeIdError::Character {
                name: name.to_owned(),
                found,
            });
        }
        if name.len() > Self::MAX_LEN {
            return Err(NodeIdError::TooLong {
                name: name.to_owned(),
                len: name.len(),
            });
        }
        if first == '-' {
            return Err(NodeIdError::LeadingHyphen {
                name: name.to_owned(),
            });
        }
        Ok(NodeId(name.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeId({})", self.0)
    }
}

/// Why a text cannot name a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what is meant")]
pub enum NodeIdError {
    #[error("node id is empty, give it 1 to {max} characters", max = NodeId::MAX_LEN)]
    Empty,
    #[error("node id \"{name}\" has {len} characters, use at most {max}", max = NodeId::MAX_LEN)]
    TooLong { name: String, len: usize },
    #[error("node id {name:?} contains {found:?}, use only a-z, 0-9 and '-'")]
    Character { name: String, found: char },
    #[error("node id \"{name}\" starts with '-', start it with a letter or a digit")]
    LeadingHyphen { name: String },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_shown_as_two_hex_digits() {
        assert_eq!(ShardId(0).to_string(), "00");
        assert_eq!(ShardId(0x3f).to_string(), "3f");
    }

    #[test]
    fn there_are_256_shards_in_order() {
        let all: Vec<ShardId> = ShardId::all().collect();
        assert_eq!(all.len(), ShardId::COUNT);
        assert!(all.is_sorted());
        assert_eq!(all[255], ShardId(255));
        assert_eq!(ShardId(0).before(), None);
        assert_eq!(ShardId(255).after(), None);
        assert_eq!(ShardId(7).after(), Some(ShardId(8)));
    }

    #[test]
    fn node_names_are_checked() {
        let longest = "a".repeat(NodeId::MAX_LEN);
        for accepted in ["a", "7", "n1", "crawl-eu-west-3", "a-", &longest] {
            assert_eq!(NodeId::new(accepted).unwrap().as_str(), accepted);
        }
        let cases = [
            (
                String::new(),
                "node id is empty, give it 1 to 64 characters",
            ),
            (
                "-a".into(),
                "node id \"-a\" starts with '-', start it with a letter or a digit",
            ),
            (
                "N1".into(),
                "node id \"N1\" contains 'N', use only a-z, 0-9 and '-'",
            ),
            (
                "a b".into(),
                "node id \"a b\" contains ' ', use only a-z, 0-9 and '-'",
            ),
            (
                "nœud".into(),
                "node id \"nœud\" contains 'œ', use only a-z, 0-9 and '-'",
            ),
        ];
        for (refused, message) in cases {
            assert_eq!(NodeId::new(&refused).unwrap_err().to_string(), message);
        }
        let too_long = NodeId::new(&"a".repeat(65)).unwrap_err();
        assert!(
            too_long
                .to_string()
                .ends_with("has 65 characters, use at most 64")
        );
    }
}
