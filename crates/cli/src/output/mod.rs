//! Where results go.

pub mod parquet;
