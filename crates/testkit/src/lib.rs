//! Builders and oracles that tests share: clusters in this process, real
//! processes, and the slow, obvious answers.
//!
//! Only for tests: everything here panics where a test should fail.

#![allow(clippy::missing_panics_doc, reason = "panicking is how a test fails")]

mod binary;
mod certificates;
mod cluster;
mod end;
mod etcd_server;
mod forgetful_cluster;
mod host;
mod host_cluster;
mod layout_file;
mod layouts;
mod metadata;
mod oracle;
mod process;
mod process_cluster;
mod shape;
mod stalling_proxy;
mod waiting;

use std::io::Write;

pub use binary::binary;
pub use certificates::Certificates;
pub use cluster::TestCluster;
pub use end::End;
pub use etcd_server::{EtcdServer, etcd_program};
pub use forgetful_cluster::ForgetfulCluster;
pub use host::Host;
pub use host_cluster::{ClusterPart, HostCluster};
pub use layout_file::{free_addresses, write_layout_file};
pub use layouts::promised_layouts;
pub use oracle::Oracle;
pub use process::{Process, Running, Waiting, run, run_with_open_input};
pub use process_cluster::ProcessCluster;
pub use shape::Shape;
pub use stalling_proxy::StallingProxy;
pub use waiting::{PATIENCE, block_until, until, until_some, until_within};

/// Tells that a test could do nothing here, as where only root may do what it does. The test runner does not capture it,
/// and `cargo xtask test` counts it.
pub fn did_nothing(why: &str) {
    writeln!(std::io::stdout(), "\ndid nothing: {why}").expect("an output");
}

/// Whether the long tests are asked for.
#[must_use]
pub fn is_long() -> bool {
    std::env::var_os("SIMSHARD_LONG").is_some()
}
