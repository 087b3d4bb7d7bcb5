//! What is said where Parquet is asked for, and the program was built without it.

/// Parquet is asked for, and this program was built without it.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "this simshard was built without Parquet: use another format, or build it with \
     `cargo build --release --features parquet`"
)]
pub struct WithoutParquet;
