//! The sizes that every request keeps to.

/// Most documents or queries of one batch.
pub const MAX_BATCH: usize = 65_536;

/// Most bytes of an id.
pub const MAX_ID_BYTES: usize = 1_024;

/// Most bytes of one message, both ways.
pub const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// Most bytes of a router's request to a node: the client's, with a fingerprint
/// for each text, however short that is, and what the router adds.
pub const MAX_SHARD_REQUEST_BYTES: usize = MAX_MESSAGE_BYTES + 8 * MAX_BATCH + (64 << 10);
