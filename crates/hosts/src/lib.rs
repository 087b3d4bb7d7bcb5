//! Hosts on a network of their own, for tests and measurements: the links between them can be cut, one way or both.
//!
//! A host is a network namespace of Linux. Only root may make one, with `unshare`, `nsenter` and `ip`.

mod namespace;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::Arc;

use namespace::Namespace;

/// A host of a [`Network`]. It goes with its last copy.
#[derive(Clone, Debug)]
pub struct Host(Arc<Place>);

#[derive(Debug)]
struct Place {
    namespace: Namespace,
    address: Ipv4Addr,
}

impl Host {
    /// The address at which other hosts reach it. All its ports are free at first.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.0.address
    }

    /// A program that is to run on the host.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        self.0.namespace.command(program)
    }
}

/// The way of packets between hosts, or between one host and all others.
#[derive(Clone, Copy, Debug)]
pub enum Link<'a> {
    /// From the first host to the second.
    Between(&'a Host, &'a Host),
    /// From all others to a host.
    Into(&'a Host),
    /// From a host to all others.
    OutOf(&'a Host),
}

impl Link<'_> {
    /// The addresses of its ends, as `ip rule` takes them.
    fn ends(self) -> String {
        match self {
            Self::Between(from, to) => format!("from {} to {}", from.address(), to.address()),
            Self::Into(host) => format!("to {}", host.address()),
            Self::OutOf(host) => format!("from {}", host.address()),
        }
    }
}

/// A network without other processes. The thread that makes it is on it, and so are all threads and processes that this
/// thread starts from then on.
#[derive(Debug)]
pub struct Network {
    hub: Namespace,
    hosts: u8,
}

impl Network {
    /// Makes a network without hosts.
    ///
    /// # Errors
    /// If this process may not make one, or a program is missing.
    pub fn make() -> io::Result<Self> {
        let hub = Namespace::make()?;
        hub.enter()?;
        fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
        // A check of the way back would lose packets in both directions where one is cut.
        for devices in ["all", "default"] {
            fs::write(format!("/proc/sys/net/ipv4/conf/{devices}/rp_filter"), "0")?;
        }
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
        Ok(Host(Arc::new(Place { namespace, address })))
    }

    /// Loses all packets of a link from now on, silently.
    ///
    /// # Errors
    /// If the system refuses it.
    pub fn cut(&self, link: Link<'_>) -> io::Result<()> {
        self.change_rule("add", link)
    }

    /// Loses them no longer.
    ///
    /// # Errors
    /// If the link was not cut.
    pub fn mend(&self, link: Link<'_>) -> io::Result<()> {
        self.change_rule("del", link)
    }

    fn change_rule(&self, verb: &str, link: Link<'_>) -> io::Result<()> {
        self.hub
            .ip(&format!("rule {verb} {} blackhole", link.ends()))
    }
}

#[cfg(test)]
mod tests;
