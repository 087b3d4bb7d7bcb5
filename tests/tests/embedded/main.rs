//! Clusters inside the test's own process, on real connections: right answers, refusals, lost nodes and races.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_requests;
mod cut_connections;
mod cut_creations;
mod given_up_memory;
mod grpc_web;
mod json;
mod live;
mod lost_nodes;
mod moved_nodes;
mod own_router;
mod races;
mod reflection;
mod refusals;
mod requests;
mod router_oracle;
mod shards;
mod slow_readers;
mod tls;
mod tokens;
