//! The error for Parquet input in a program that was built without Parquet.

/// Parquet is asked for, and this program was built without it.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "this simshard was built without Parquet: use another format, or build it with \
     `cargo build --release --features parquet`"
)]
pub struct WithoutParquet;
