//! Layout files for clusters of real processes.

use std::collections::HashSet;
use std::fmt::Write;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{LazyLock, Mutex, PoisonError};

/// What this process got. A node that is down for minutes has its address still when it starts again.
static GIVEN: LazyLock<Mutex<HashSet<SocketAddr>>> = LazyLock::new(Mutex::default);

/// `count` addresses that are free, and that this process never got before. For a minute, only a listener that asks for
/// such a port by its number gets it.
#[must_use]
pub fn free_addresses(count: usize) -> Vec<SocketAddr> {
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let open = || {
        let listener = TcpListener::bind((own_host(), 0)).expect("a free port");
        let address = set_aside(&listener).expect("a connection to itself");
        (address, listener)
    };
    new_addresses(&mut given, count, open)
}

/// Opens addresses until `count` are new. All are held until then, else the same one could come again and again.
fn new_addresses<L>(
    given: &mut HashSet<SocketAddr>,
    count: usize,
    mut open: impl FnMut() -> (SocketAddr, L),
) -> Vec<SocketAddr> {
    let (mut addresses, mut held) = (Vec::new(), Vec::new());
    while addresses.len() < count {
        let (address, listener) = open();
        held.push(listener);
        if given.insert(address) {
            addresses.push(address);
        }
    }
    addresses
}

/// Where ports are looked for. Linux has all of 127.0.0.0/8. Other programs connect from 127.0.0.1, so their source
/// ports never take one of these. Processes whose ids differ in their last two bytes have hosts of their own.
fn own_host() -> IpAddr {
    if cfg!(target_os = "linux") {
        let [.., high, low] = std::process::id().to_be_bytes();
        IpAddr::from([127, high, low, 4])
    } else {
        Ipv4Addr::LOCALHOST.into()
    }
}

/// Leaves a connection in TIME_WAIT on the listener's side. Until that ends, the system does not choose the port
/// for a listener that asks for any port, but a listener that asks for this one can have it.
fn set_aside(listener: &TcpListener) -> io::Result<SocketAddr> {
    let address = listener.local_addr()?;
    let client = TcpStream::connect(address)?;
    let (server, _) = listener.accept()?;
    // The side that closes first is the one in TIME_WAIT.
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
    use std::thread;
    use std::time::{Duration, Instant};

    use tokio::net::TcpSocket;

    use super::*;

    #[test]
    fn no_address_is_given_twice() {
        let mut ports = [5, 5, 6, 5, 7, 6, 8].into_iter();
        let mut open = || (SocketAddr::from(([127; 4], ports.next().unwrap())), ());
        let mut given = HashSet::new();
        let mut new_ports = |count| {
            let addresses = new_addresses(&mut given, count, &mut open).into_iter();
            addresses.map(|address| address.port()).collect::<Vec<_>>()
        };
        assert_eq!(new_ports(2), [5, 6]);
        assert_eq!(new_ports(2), [7, 8]);
    }

    #[test]
    fn a_free_address_goes_only_to_a_listener_that_names_it() {
        for address in free_addresses(3) {
            // As a port that the system chooses must be.
            let unused = TcpSocket::new_v4().unwrap();
            unused.set_reuseaddr(false).unwrap();
            let refused = unused.bind(address).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
            bind_once_others_let_go(address);
        }
    }

    /// A process that another test starts has copies of all sockets until it executes its program.
    fn bind_once_others_let_go(address: SocketAddr) {
        let start = Instant::now();
        while let Err(error) = TcpListener::bind(address) {
            assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
            assert!(
                start.elapsed() < Duration::from_secs(10),
                "{address} is taken"
            );
            thread::yield_now();
        }
    }
}
