//! Hosts of tests: this machine or one of a network, with a clock that may be wrong.

mod clock;

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;

use clock::Clock;

use crate::free_addresses;

/// The first port of a host that has its own addresses.
const FIRST_PORT: u16 = 7000;

/// A place where processes run.
#[derive(Clone, Debug)]
pub struct Host {
    /// `None` if it is the place where this process runs.
    place: Option<simshard_hosts::Host>,
    clock: Option<Arc<Clock>>,
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

    /// A host of a network.
    #[must_use]
    pub const fn on(place: simshard_hosts::Host) -> Self {
        Self {
            place: Some(place),
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

    /// Where it is on its network.
    #[must_use]
    pub fn place(&self) -> &simshard_hosts::Host {
        self.place.as_ref().expect("on a network")
    }

    /// Addresses where processes of the host may listen.
    #[must_use]
    pub fn addresses(&self, count: u16) -> Vec<SocketAddr> {
        match &self.place {
            None => free_addresses(count.into()),
            Some(place) => (0..count)
                .map(|number| SocketAddr::from((place.address(), FIRST_PORT + number)))
                .collect(),
        }
    }

    /// A program that is to run on the host.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = match &self.place {
            None => Command::new(program),
            Some(place) => place.command(program),
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

#[cfg(test)]
mod tests {
    use super::*;

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
