//! Layout files for clusters of real processes.

use std::fmt::Write;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;

/// So many addresses that nobody uses now. For a minute they go only to who asks for them by their ports.
#[must_use]
pub fn free_addresses(count: usize) -> Vec<SocketAddr> {
    // All are held before any is let go: or one could come twice.
    let held: Vec<TcpListener> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port"))
        .collect();
    let address = |listener: &TcpListener| set_aside(listener).expect("a connection to itself");
    held.iter().map(address).collect()
}

/// Leaves a connection behind that the listener's side has closed. While the system waits for what may still come of
/// it, it gives the port to nobody who asks for any, and a listener that asks for this one can have it.
fn set_aside(listener: &TcpListener) -> io::Result<SocketAddr> {
    let address = listener.local_addr()?;
    let client = TcpStream::connect(address)?;
    let (server, _) = listener.accept()?;
    // Who closes first is the one who waits.
    drop(server);
    drop(client);
    Ok(address)
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

#[cfg(test)]
mod tests {
    use tokio::net::TcpSocket;

    use super::*;

    #[test]
    fn a_free_address_is_for_who_asks_for_it() {
        for address in free_addresses(3) {
            // As a port that the system chooses must be.
            let unused = TcpSocket::new_v4().unwrap();
            unused.set_reuseaddr(false).unwrap();
            let refused = unused.bind(address).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
            TcpListener::bind(address).unwrap();
        }
    }
}
