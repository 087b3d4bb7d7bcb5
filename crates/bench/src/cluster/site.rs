//! Where the processes of a measured cluster run.

use std::ffi::OsStr;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;

use simshard_hosts::{Host, Network};

/// The first port of a host of its own.
const FIRST_PORT: u16 = 7000;

/// Where a process runs: beside this one by default, or on a host whose links can be cut.
#[derive(Clone, Debug, Default)]
pub(super) struct Site(Option<Host>);

impl Site {
    /// A program that is to run there.
    pub(super) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        match &self.0 {
            None => Command::new(program),
            Some(host) => host.command(program),
        }
    }

    /// The program that runs now.
    pub(super) fn own_program(&self) -> io::Result<Command> {
        Ok(self.command(std::env::current_exe()?))
    }

    /// Has a process listen at an address of this site. Hosts have no certificates, and no strangers.
    pub(super) fn listen(&self, process: &mut Command, address: &str) {
        process.args(["--listen", address]);
        if self.0.is_some() {
            process.arg("--insecure");
        }
    }

    /// Where a process may listen, on any free port.
    pub(super) fn any_port(&self) -> String {
        format!("{}:0", self.address())
    }

    /// Addresses at which nothing listens.
    pub(super) fn free_addresses<const N: usize>(&self) -> io::Result<[String; N]> {
        let address = self.address();
        let mut ports = [0; N];
        match &self.0 {
            None => {
                let listeners = ports.map(|_| TcpListener::bind((address, 0)));
                for (port, listener) in ports.iter_mut().zip(listeners) {
                    *port = listener?.local_addr()?.port();
                }
            }
            Some(_) => {
                for (port, number) in ports.iter_mut().zip(FIRST_PORT..) {
                    *port = number;
                }
            }
        }
        Ok(ports.map(|port| format!("{address}:{port}")))
    }

    /// Its host, if it has one of its own.
    pub(super) const fn host(&self) -> Option<&Host> {
        self.0.as_ref()
    }

    fn address(&self) -> Ipv4Addr {
        self.0.as_ref().map_or(Ipv4Addr::LOCALHOST, Host::address)
    }
}

/// Where all processes of a cluster run.
#[derive(Default)]
pub(super) struct Sites {
    pub(super) nodes: Vec<Site>,
    pub(super) router: Site,
    pub(super) etcd: Site,
}

impl Sites {
    /// All beside this process.
    pub(super) fn here(nodes: usize) -> Self {
        Self {
            nodes: vec![Site::default(); nodes],
            ..Self::default()
        }
    }

    /// Each on a new host of a network.
    pub(super) fn apart(nodes: usize, network: &mut Network) -> io::Result<Self> {
        let mut site = || Ok::<Site, io::Error>(Site(Some(network.add_host()?)));
        Ok(Self {
            nodes: (0..nodes).map(|_| site()).collect::<io::Result<_>>()?,
            router: site()?,
            etcd: site()?,
        })
    }
}
