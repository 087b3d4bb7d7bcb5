//! The contracts of what keeps the metadata of a cluster, run against every backend.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod corpora;
mod etcd;
mod etcd_access;
mod key_value;
