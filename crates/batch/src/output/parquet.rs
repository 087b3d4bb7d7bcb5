//! `parquet`: pairs, members of clusters, and documents, each a table of its own.
//!
//! | table     | columns                                                              |
//! |-----------|----------------------------------------------------------------------|
//! | pairs     | `id_a`, `id_b`, `fingerprint_a`, `fingerprint_b`, `distance`         |
//! | clusters  | `id`, `fingerprint`, `cluster`                                       |
//! | documents | `id`, `fingerprint`                                                  |
//!
//! Ids are strings, fingerprints and clusters 64-bit integers, unsigned unless the notation says otherwise,
//! distances signed 32-bit integers; none is ever null. A document of bare hashes has the number of its line as its id.
//! Pages are compressed by Snappy, which every reader of Parquet knows.
//!
//! # Invariants
//! - PQ3: no more than [`table::ROWS_PER_GROUP`] rows, and [`table::ID_BYTES_PER_GROUP`] and one row's ids beyond,
//!   are held before they are written.

mod table;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::io;

use simshard_input::Notation;
use simshard_simhash::Fingerprint;

use super::file::Output;
use super::sinks::{Rows, Sink};
use crate::member::Member;
use table::{Cell, Table};

/// A table of rows.
pub(super) struct Parquet(Table<Output>);

impl Parquet {
    pub(super) fn new(rows: Rows, notation: Notation, output: Output) -> io::Result<Self> {
        let schema = match notation {
            Notation::Unsigned => schema(rows).to_owned(),
            Notation::Signed => schema(rows).replace("INTEGER(64, false)", "INTEGER(64, true)"),
        };
        Table::new(output, &schema).map(Self)
    }
}

impl Sink for Parquet {
    fn pair(&mut self, a: &Member<'_>, b: &Member<'_>, distance: u32) -> io::Result<()> {
        self.0.push(&pair_row(a, b, distance))
    }

    fn member(&mut self, cluster: Fingerprint, member: &Member<'_>) -> io::Result<()> {
        self.0.push(&member_row(cluster, member))
    }

    fn document(&mut self, document: &Member<'_>) -> io::Result<()> {
        self.0.push(&document_row(document))
    }

    fn finish(self: Box<Self>) -> io::Result<Output> {
        self.0.finish()
    }
}

fn schema(rows: Rows) -> &'static str {
    match rows {
        Rows::Pairs => {
            "message pairs {
                required binary id_a (STRING);
                required binary id_b (STRING);
                required int64 fingerprint_a (INTEGER(64, false));
                required int64 fingerprint_b (INTEGER(64, false));
                required int32 distance;
            }"
        }
        Rows::Members => {
            "message clusters {
                required binary id (STRING);
                required int64 fingerprint (INTEGER(64, false));
                required int64 cluster (INTEGER(64, false));
            }"
        }
        Rows::Documents => {
            "message documents {
                required binary id (STRING);
                required int64 fingerprint (INTEGER(64, false));
            }"
        }
    }
}

fn pair_row<'a>(a: &'a Member<'_>, b: &'a Member<'_>, distance: u32) -> [Cell<'a>; 5] {
    [
        id(a),
        id(b),
        Cell::Unsigned(a.fingerprint.0),
        Cell::Unsigned(b.fingerprint.0),
        Cell::Small(distance.cast_signed()),
    ]
}

fn member_row<'a>(cluster: Fingerprint, member: &'a Member<'_>) -> [Cell<'a>; 3] {
    let [id, fingerprint] = document_row(member);
    [id, fingerprint, Cell::Unsigned(cluster.0)]
}

fn document_row<'a>(document: &'a Member<'_>) -> [Cell<'a>; 2] {
    [id(document), Cell::Unsigned(document.fingerprint.0)]
}

fn id<'a>(document: &'a Member<'_>) -> Cell<'a> {
    Cell::Text(match &document.id {
        Some(id) => Cow::Borrowed(id),
        None => Cow::Owned(document.fingerprint.to_string()),
    })
}
