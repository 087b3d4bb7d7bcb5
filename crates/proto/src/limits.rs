//! The sizes that every request keeps to.

/// Most documents or queries of one batch.
pub const MAX_BATCH: usize = 65_536;

/// Most bytes of an id.
pub const MAX_ID_BYTES: usize = 1_024;

/// Most bytes of one message, both ways.
pub const MAX_MESSAGE_BYTES: usize = 16 << 20;
