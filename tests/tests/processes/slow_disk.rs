//! A node whose disk is slow: each sync of the log takes a second and a half, and none fails or hangs. A library makes it
//! so, which is preloaded.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use simshard_testkit::{End, Process, ProcessCluster, Shape, binary, did_nothing};
use tokio::task::block_in_place;

use crate::failovers::get_acquainted;
use crate::load::{Load, create};
use crate::readiness::until_ready;
use crate::records::until_short;

const NODE: usize = 1;

/// Syncs are slow while the file of this variable is there.
const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

int fdatasync(int file) {
    int (*sync)(int) = (int (*)(int)) dlsym(RTLD_NEXT, "fdatasync");
    if (access(getenv("SLOW_WHILE"), F_OK) == 0) {
        usleep(1500000);
    }
    return sync(file);
}
"#;

/// The library, in a folder; `None` if nothing here compiles it.
fn library(folder: &Path) -> Option<PathBuf> {
    let (source, library) = (folder.join("slow.c"), folder.join("slow.so"));
    fs::write(&source, LIBRARY).unwrap();
    let mut compiler = Command::new("cc");
    let compiler = compiler.args(["-shared", "-fPIC", "-o"]);
    let compiled = compiler.args([&library, &source]).status();
    compiled
        .is_ok_and(|status| status.success())
        .then_some(library)
}

/// PE12, PE13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_disk_is_slow_leaves_its_shards_and_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = library(folder.path()) else {
        return did_nothing("no C compiler makes a disk slow");
    };
    let slow = folder.path().join("slow");
    let mut cluster = ProcessCluster::start(Shape::of(3).with_replicas(3));
    create(&cluster.client()).await;
    let _node = block_in_place(|| {
        cluster.end_node(NODE, End::Stopped);
        let variables = [
            format!("LD_PRELOAD={}", library.display()),
            format!("SLOW_WHILE={}", slow.display()),
        ];
        let args = variables.into_iter().chain([binary().to_owned()]);
        Process::serve("env", args.chain(cluster.node_args(NODE)))
    });
    until_ready(&cluster, NODE).await;
    let load = Load::start(&[cluster.client().with_timeout(Duration::from_secs(20))]);
    get_acquainted(&load).await;
    fs::write(&slow, "").unwrap();
    until_short(&cluster, 3).await;
    load.until_more(20).await;
    fs::remove_file(&slow).unwrap();
    until_ready(&cluster, NODE).await;
    load.end(&cluster.client()).await;
}
