//! Hosts of a network of their own: processes whose links are cut, one way or both, and whose clocks differ.

mod clock;
mod namespace;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::Arc;

use clock::Clock;
use namespace::Namespace;

use crate::free_addresses;

/// The first port of a host that has its own addresses.
const FIRST_PORT: u16 = 7000;

/// A place where processes run.
#[derive(Clone, Debug)]
pub struct Host {
    /// `None` if it is the place where this process runs.
    place: Option<Arc<Place>>,
    clock: Option<Arc<Clock>>,
}

#[derive(Debug)]
struct Place {
    namespace: Namespace,
    address: Ipv4Addr,
}

impl Host {
    /// The host of this process.
    #[must_use]
    pub const fn here() -> Self {
        Self {
            place: None,
            clock: None,
        }
    }

    /// The same, with a clock that can be shifted.
    #[must_use]
    pub fn with_clock(self) -> Self {
        Self {
            clock: Some(Arc::new(Clock::right())),
            ..self
        }
    }

    /// Addresses where processes of the host may listen.
    #[must_use]
    pub fn addresses(&self, count: u16) -> Vec<SocketAddr> {
        match &self.place {
            None => free_addresses(count.into()),
            Some(place) => (0..count)
                .map(|number| SocketAddr::from((place.address, FIRST_PORT + number)))
                .collect(),
        }
    }

    /// A program that is to run on the host.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = match &self.place {
            None => Command::new(program),
            Some(place) => place.namespace.command(program),
        };
        if let Some(clock) = &self.clock {
            command.envs(clock.environment());
        }
        command
    }

    /// Shifts the clock of all processes of the host, which has one of its own.
    pub fn shift_clock(&self, seconds: i64) {
        let clock = self.clock.as_ref().expect("a clock of its own");
        clock.shift(seconds);
    }
}

/// A network that no other process is on. The thread that makes it is on it, and so are all that this thread starts from
/// then on. It goes with the hosts.
#[derive(Debug)]
pub struct Network {
    hub: Namespace,
    hosts: u8,
}

impl Network {
    /// Makes a network without hosts.
    ///
    /// # Errors
    /// If this process may not make one.
    pub fn make() -> io::Result<Self> {
        let hub = Namespace::make()?;
        hub.enter()?;
        fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
        hub.ip("link set lo up")?;
        Ok(Self { hub, hosts: 0 })
    }

    /// Adds a host.
    ///
    /// # Errors
    /// If this process may not do that.
    pub fn add_host(&mut self) -> io::Result<Host> {
        self.hosts += 1;
        let number = self.hosts;
        let namespace = Namespace::make()?;
        let id = namespace.id();
        let address = Ipv4Addr::new(10, 77, number, 2);
        self.hub.ip(&format!(
            "link add to{number} type veth peer name hub netns {id}"
        ))?;
        self.hub
            .ip(&format!("addr add 10.77.{number}.1/24 dev to{number}"))?;
        self.hub.ip(&format!("link set to{number} up"))?;
        for part in [
            "link set lo up".to_owned(),
            format!("addr add {address}/24 dev hub"),
            "link set hub up".to_owned(),
            format!("route add default via 10.77.{number}.1"),
        ] {
            namespace.ip(&part)?;
        }
        let place = Place { namespace, address };
        Ok(Host {
            place: Some(Arc::new(place)),
            clock: None,
        })
    }

    /// Loses all packets from one host to another from now on, silently.
    pub fn cut(&self, from: &Host, to: &Host) {
        self.change_rule("add", from, to);
    }

    /// Loses them no longer.
    pub fn mend(&self, from: &Host, to: &Host) {
        self.change_rule("del", from, to);
    }

    fn change_rule(&self, verb: &str, from: &Host, to: &Host) {
        let [from, to] = [from, to].map(|host| host.place.as_ref().expect("on the network"));
        let (from, to) = (IpAddr::from(from.address), IpAddr::from(to.address));
        let rule = format!("rule {verb} from {from} to {to} blackhole");
        self.hub.ip(&rule).expect("a rule of the own network");
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpStream;
    use std::process::Stdio;
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// What a host reads from this address.
    fn fetched(host: &Host, address: SocketAddr) -> String {
        let read = format!(
            "timeout 2 bash -c 'cat < /dev/tcp/{}/{}'",
            address.ip(),
            address.port()
        );
        let output = host.command("sh").args(["-c", &read]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn a_cut_is_of_one_direction_and_is_mended() {
        let Ok(mut network) = Network::make() else {
            println!("no network of its own can be made: this must be root");
            return;
        };
        let (one, other) = (network.add_host().unwrap(), network.add_host().unwrap());
        let address = one.addresses(1)[0];
        let serve = format!(
            "import socket, time\n\
             s = socket.create_server(('{}', {}))\n\
             print(flush=True)\n\
             while True: s.accept()[0].sendall(b'here')",
            address.ip(),
            address.port()
        );
        let mut server = one
            .command("python3")
            .args(["-c", &serve])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        server
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut [0])
            .unwrap();
        assert_eq!(fetched(&other, address), "here");
        for (from, to) in [(&one, &other), (&other, &one)] {
            network.cut(from, to);
            assert_eq!(fetched(&other, address), "");
            network.mend(from, to);
            assert_eq!(fetched(&other, address), "here");
        }
        // What this process starts is on the network, and is not cut off.
        network.cut(&one, &other);
        let connect = move || TcpStream::connect_timeout(&address, Duration::from_secs(2));
        thread::spawn(connect).join().unwrap().unwrap();
        server.kill().unwrap();
        server.wait().unwrap();
    }

    #[test]
    fn a_clock_is_shifted_while_a_process_runs() {
        let host = Host::here().with_clock();
        let now = || {
            let date = host.command("date").arg("+%s").output().unwrap();
            let date = String::from_utf8(date.stdout).unwrap();
            date.trim().parse::<i64>().unwrap()
        };
        let before = now();
        host.shift_clock(300);
        assert!((299..330).contains(&(now() - before)));
        host.shift_clock(-300);
        assert!((-301..-270).contains(&(now() - before)));
    }
}
