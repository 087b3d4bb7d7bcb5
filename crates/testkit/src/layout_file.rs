//! Layout files for clusters of real processes.

use std::fmt::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

/// So many addresses that nobody uses now. Between this and using one, another process can take it.
#[must_use]
pub fn free_addresses(count: usize) -> Vec<SocketAddr> {
    // All are held before any is let go: or one could come twice.
    let held: Vec<TcpListener> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port"))
        .collect();
    let address = |listener: &TcpListener| listener.local_addr().expect("an address");
    held.iter().map(address).collect()
}

/// Writes the layout file of nodes `n1`, `n2`, … at these addresses.
pub fn write_layout_file(path: &Path, nodes: &[SocketAddr]) {
    let mut text = String::new();
    for (number, address) in (1..).zip(nodes) {
        let node = format!("name = \"n{number}\"\naddress = \"http://{address}\"");
        writeln!(text, "[[nodes]]\n{node}\n").expect("a string takes all");
    }
    std::fs::write(path, text).expect("the layout file can be written");
}
