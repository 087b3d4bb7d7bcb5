//! How a node starts: it makes its directory the newest start of its store, or ends.

use simshard_topology::replication::{PublishedStore, StartStep, next_start_step, renewed};

use crate::disk::Disk;
use crate::faults::Fault;
use crate::message::{Message, Place, Purpose};
use crate::node::Process;
use crate::scene::{MILLISECOND, SECOND, store};
use crate::world::{Timer, World};

impl World {
    pub(crate) fn start(&mut self, node: usize) {
        self.nodes[node].process = Process::Starting(None);
        self.timer(Place::Node(node), 0, Timer::Tick);
    }

    /// Takes the next step of a start, after a reading of the metadata.
    pub(crate) fn go_on_starting(&mut self, node: usize, published: Option<PublishedStore>) {
        let nonce = self.rng.u64(..);
        let fault = self.fault;
        let this = &mut self.nodes[node];
        let Process::Starting(made) = this.process else {
            return;
        };
        if let (Some(made), Some(published)) = (made, published)
            && published.incarnation == made
        {
            self.run_node(node, made, published);
            return;
        }
        let held = this.disk.held.as_ref();
        let step = next_start_step(held, published.as_ref(), this.disk.end());
        let step = match step {
            Err(_) if fault == Some(Fault::OlderDirectoryServes) && made.is_none() => {
                Ok(StartStep::Renew)
            }
            Err(_) if fault == Some(Fault::OlderDirectoryServes) => {
                held.map(|held| StartStep::Enter(held.newest)).ok_or(())
            }
            step => step.map_err(drop),
        };
        match step {
            Ok(StartStep::Renew) => {
                let next = renewed(held, published.as_ref(), nonce);
                this.disk.held = Some(next);
                this.process = Process::Starting(Some(next.newest));
            }
            Ok(StartStep::Enter(incarnation)) => {
                let synced = published.map_or(0, |published| published.synced);
                let enter = Message::Publish {
                    store: this.disk.store,
                    replaces: published,
                    published: PublishedStore {
                        incarnation,
                        synced: synced.max(this.disk.synced),
                    },
                };
                self.send(Place::Node(node), Place::Metadata, enter);
            }
            Err(()) => {
                self.replace_directory(node);
                return;
            }
        }
        let read = Message::ReadMetadata(Purpose::Start);
        self.send(Place::Node(node), Place::Metadata, read);
    }

    /// An operator gives a node an empty directory.
    pub(crate) fn replace_directory(&mut self, node: usize) {
        self.tell(|| format!("node {node} gets an empty directory"));
        let later = self.rng.u64(500 * MILLISECOND..2 * SECOND);
        let this = &mut self.nodes[node];
        self.lost.insert(this.disk.store);
        this.disk = Disk::new(store(node, this.directories));
        this.directories += 1;
        this.backup = None;
        this.life += 1;
        this.process = Process::Down;
        self.timer(Place::Node(node), later, Timer::Start);
    }
}
