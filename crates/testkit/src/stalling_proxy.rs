//! A link that hangs, and recovers, without ever breaking.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use parking_lot::{Condvar, Mutex};

use crate::PATIENCE;

/// Stands before a server, and passes bytes both ways, but for times in which it keeps them.
#[derive(Debug)]
pub struct StallingProxy {
    address: SocketAddr,
    link: Arc<Link>,
}

#[derive(Debug, Default)]
struct Link {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_stalled: bool,
    /// Whether bytes for the server are kept.
    keeps_some: bool,
}

impl StallingProxy {
    /// A link to a server; it begins by passing all.
    #[must_use]
    pub fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let link = Arc::<Link>::default();
        let accepting = Arc::clone(&link);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // If the server is down, the client's connection breaks.
                if let Ok(server) = TcpStream::connect(server) {
                    accepting.connect(&client, &server);
                }
            }
        });
        Self { address, link }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on it keeps what comes.
    pub fn stall(&self) {
        self.link.set(true);
    }

    /// Waits until it keeps something that was meant for the server.
    pub fn until_it_keeps_some(&self) {
        let mut state = self.link.state.lock();
        let is_waiting = |state: &mut State| !state.keeps_some;
        let changed = &self.link.changed;
        let waited = changed.wait_while_for(&mut state, is_waiting, PATIENCE);
        assert!(!waited.timed_out(), "nothing came for the server");
    }

    /// Passes on what it kept, and whatever comes.
    pub fn resume(&self) {
        self.link.set(false);
    }
}

impl Link {
    fn connect(self: &Arc<Self>, client: &TcpStream, server: &TcpStream) {
        for (from, to, is_for_server) in [(client, server, true), (server, client, false)] {
            // As Simshard does: no byte is to wait for others.
            to.set_nodelay(true).expect("an open connection");
            let clone = |stream: &TcpStream| stream.try_clone().expect("a file descriptor");
            let (link, from, to) = (Arc::clone(self), clone(from), clone(to));
            thread::spawn(move || link.pass(&from, &to, is_for_server));
        }
    }

    /// Passes bytes one way until either end is closed.
    fn pass(&self, mut from: &TcpStream, mut to: &TcpStream, is_for_server: bool) {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(bytes @ 1..) = from.read(&mut buffer) {
            self.wait(is_for_server);
            if to.write_all(&buffer[..bytes]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }

    /// Waits until bytes may pass.
    fn wait(&self, is_for_server: bool) {
        let mut state = self.state.lock();
        if state.is_stalled && is_for_server {
            state.keeps_some = true;
            self.changed.notify_all();
        }
        self.changed
            .wait_while(&mut state, |state| state.is_stalled);
    }

    fn set(&self, is_stalled: bool) {
        *self.state.lock() = State {
            is_stalled,
            keeps_some: false,
        };
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stalled_link_keeps_what_comes_and_passes_it_on_later() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let proxy = StallingProxy::start(listener.local_addr().expect("an address"));
        let mut client = TcpStream::connect(proxy.address()).expect("a connection");
        let (mut server, _) = listener.accept().expect("a connection");
        let mut received = [0; 2];
        client.write_all(b"ab").expect("room");
        server.read_exact(&mut received).expect("two bytes");
        proxy.stall();
        client.write_all(b"cd").expect("room");
        proxy.until_it_keeps_some();
        server.set_nonblocking(true).expect("a socket");
        assert!(server.read(&mut received).is_err(), "nothing is there");
        server.set_nonblocking(false).expect("a socket");
        proxy.resume();
        server.read_exact(&mut received).expect("two bytes");
        assert_eq!(&received, b"cd");
        drop(client);
        assert_eq!(server.read(&mut received).expect("the end"), 0);
    }
}
