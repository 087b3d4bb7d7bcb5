//! Queries of a shard, and their proofs.

use simshard_topology::ShardId;
use simshard_topology::replication::{Epoch, Read, ShardRecords, StoreId, read_quorum};

use crate::disk::Contents;
use crate::faults::Fault;
use crate::message::{Message, Place, Purpose};
use crate::oracle::Promise;
use crate::scene::{ELEMENTS, MILLISECOND, SECOND, Time, node_of, shards_of};
use crate::world::{Timer, World};

/// A query under way.
pub(crate) struct Reading {
    shard: ShardId,
    read: Read,
    /// When it began, as a moment.
    begun: u64,
    pub(crate) deadline: Time,
    contents: Option<Contents>,
    /// What was heard, for RI8: stores that confirmed, and whether the metadata did.
    confirmed: Vec<StoreId>,
    is_current: bool,
}

impl World {
    pub(crate) fn begin_read(&mut self, router: usize, shard: ShardId) {
        let Some(record) = self.routers[router].known.get(&shard).cloned() else {
            return;
        };
        let number = self.moment as usize;
        let place = Place::Router(router);
        let in_sync: Vec<_> = record.in_sync.iter().map(|entry| entry.store).collect();
        let hot = record.in_sync.iter().filter(|entry| entry.hot);
        let hot: Vec<_> = hot.map(|entry| entry.store).collect();
        // Only a planted fault may leave none: then nothing answers.
        if hot.is_empty() {
            assert!(self.fault.is_some(), "no store in sync is hot");
            return;
        }
        let reader = hot[self.rng.usize(..hot.len())];
        let reading = Reading {
            shard,
            begun: self.moment,
            deadline: self.now + SECOND,
            contents: None,
            confirmed: Vec::new(),
            is_current: false,
            read: Read::new(record),
        };
        let query = Message::Query {
            read: number,
            shard,
            epoch: reading.read.epoch(),
        };
        self.routers[router].reading.insert(number, reading);
        self.send(place, Place::Node(node_of(reader)), query);
        for store in in_sync.into_iter().filter(|store| *store != reader) {
            let confirm = Message::Confirm {
                read: number,
                store,
                shard,
            };
            self.send(place, Place::Node(node_of(store)), confirm);
        }
        self.timer(place, 20 * MILLISECOND, Timer::Prove(number));
    }

    pub(crate) fn ask_for_proof(&mut self, router: usize, read: usize) {
        let this = &mut self.routers[router];
        let Some(reading) = this.reading.get_mut(&read) else {
            return;
        };
        if self.fault == Some(Fault::StaleMetadataProves) {
            reading.read.is_current(this.known[&reading.shard].epoch);
            self.finish_read(router, read);
            return;
        }
        let ask = Message::ReadMetadata(Purpose::Proof(read));
        self.send(Place::Router(router), Place::Metadata, ask);
    }

    pub(crate) fn take_proof(&mut self, router: usize, read: usize, records: &ShardRecords) {
        let Some(reading) = self.routers[router].reading.get_mut(&read) else {
            return;
        };
        let current = records[&reading.shard].epoch;
        reading.read.is_current(current);
        reading.is_current |= current == reading.read.epoch();
        if current > reading.read.epoch() {
            self.begin_anew(router, read);
        } else {
            self.finish_read(router, read);
        }
    }

    pub(crate) fn take_answer(
        &mut self,
        router: usize,
        read: usize,
        store: StoreId,
        epoch: Epoch,
        contents: Option<Contents>,
    ) {
        let Some(reading) = self.routers[router].reading.get_mut(&read) else {
            return;
        };
        let Some(contents) = contents else {
            // It may be late with the record that the router knows, or the router is.
            return;
        };
        if epoch == reading.read.epoch() && reading.read.answered(store) {
            reading.contents = Some(contents);
            self.take_confirmation(router, read, store, epoch);
        }
    }

    pub(crate) fn take_confirmation(
        &mut self,
        router: usize,
        read: usize,
        store: StoreId,
        installed: Epoch,
    ) {
        let Some(reading) = self.routers[router].reading.get_mut(&read) else {
            return;
        };
        reading.read.confirmed(store, installed);
        if installed <= reading.read.epoch() && !reading.confirmed.contains(&store) {
            reading.confirmed.push(store);
        }
        self.finish_read(router, read);
    }

    /// A query begins anew with the newest record, until its deadline.
    fn begin_anew(&mut self, router: usize, read: usize) {
        if let Some(reading) = self.routers[router].reading.remove(&read) {
            self.begin_read(router, reading.shard);
        }
    }

    fn finish_read(&mut self, router: usize, read: usize) {
        let this = &mut self.routers[router];
        let Some(reading) = this.reading.get(&read) else {
            return;
        };
        let is_proven = match self.fault {
            Some(Fault::NoProof) => true,
            Some(Fault::OneConfirmation) => !reading.confirmed.is_empty(),
            _ => reading.read.is_proven(),
        };
        let Some(contents) = reading.contents.filter(|_| is_proven) else {
            return;
        };
        let (shard, begun, epoch) = (reading.shard, reading.begun, reading.read.epoch());
        let confirmed = (reading.confirmed.len(), reading.is_current);
        this.reading.remove(&read);
        self.oracle.answered += 1;
        self.tell(|| format!("read {read} of {shard} at {epoch} is complete"));
        self.check_proof(router, (shard, epoch), confirmed);
        for element in (0..ELEMENTS).filter(|element| shards_of(*element).contains(&shard)) {
            let place = || format!("a complete answer of {shard} by epoch {epoch}");
            let shown = self.oracle.shown(shard, element, contents[element]);
            self.oracle
                .check(element, shown, begun, Promise::RI2, place);
        }
    }

    /// RI8.
    fn check_proof(&mut self, router: usize, of: (ShardId, Epoch), confirmed: (usize, bool)) {
        let record = self.routers[router].record(of.0, of.1);
        let quorum = record.map_or(usize::MAX, |record| read_quorum(record.in_sync.len()));
        let (stores, is_current) = confirmed;
        if !is_current && stores < quorum {
            let how = || format!("{stores} stores of {quorum} confirmed an answer of {of:?}");
            self.oracle.note(Promise::RI8, how);
        }
    }
}
