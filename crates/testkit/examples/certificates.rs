//! Writes certificates of a server on loopback and of a client into a folder, for tests in other languages.

use std::env;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use simshard_testkit::Certificates;

fn main() {
    let folder = env::args_os().nth(1);
    let folder = PathBuf::from(folder.expect("the folder, which exists"));
    Certificates::write(&folder, IpAddr::V4(Ipv4Addr::LOCALHOST));
}
