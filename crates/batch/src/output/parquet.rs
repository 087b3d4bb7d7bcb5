//! Results as Parquet: pairs, members of clusters, and documents, each a table of its own.
//!
//! | table             | columns                                                              |
//! |-------------------|----------------------------------------------------------------------|
//! | [`PairTable`]     | `id_a`, `id_b`, `fingerprint_a`, `fingerprint_b`, `distance`         |
//! | [`ClusterTable`]  | `id`, `fingerprint`, `cluster`                                       |
//! | [`DocumentTable`] | `id`, `fingerprint`                                                  |
//!
//! Ids are strings, fingerprints and clusters unsigned 64-bit integers, distances signed 32-bit
//! integers; none is ever null. A document of bare hashes has the number of its line as its id.
//! Pages are compressed by Snappy, which every reader of Parquet knows.
//!
//! # Invariants
//! - PQ3: no more than [`table::ROWS_PER_GROUP`] rows, and [`table::ID_BYTES_PER_GROUP`] and one row's ids beyond,
//!   are held before they are written.

mod table;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use simshard_simhash::Fingerprint;

use table::{Cell, Table};

/// Two documents and the bits in which their fingerprints differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PairRow<'a> {
    /// One document.
    pub(super) id_a: &'a str,
    /// The other document.
    pub(super) id_b: &'a str,
    /// Of the one.
    pub(super) fingerprint_a: Fingerprint,
    /// Of the other.
    pub(super) fingerprint_b: Fingerprint,
    /// In bits, at most 64.
    pub(super) distance: u8,
}

/// A document and the cluster that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClusterRow<'a> {
    /// The document.
    pub(super) id: &'a str,
    /// Its fingerprint.
    pub(super) fingerprint: Fingerprint,
    /// Its cluster's id: the smallest fingerprint in it.
    pub(super) cluster: Fingerprint,
}

/// A document and its fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DocumentRow<'a> {
    /// The document.
    pub(super) id: &'a str,
    /// Its fingerprint.
    pub(super) fingerprint: Fingerprint,
}

/// Writes pairs.
pub(super) struct PairTable<W: Write + Send>(Table<W>);

impl<W: Write + Send> PairTable<W> {
    const SCHEMA: &str = "message pairs {
        required binary id_a (STRING);
        required binary id_b (STRING);
        required int64 fingerprint_a (INTEGER(64, false));
        required int64 fingerprint_b (INTEGER(64, false));
        required int32 distance;
    }";

    /// A table without rows.
    ///
    /// # Errors
    /// If `writer` fails.
    pub(super) fn new(writer: W) -> io::Result<Self> {
        Table::new(writer, Self::SCHEMA).map(Self)
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If the writer fails.
    pub(super) fn push(&mut self, row: &PairRow<'_>) -> io::Result<()> {
        self.0.push(&[
            Cell::Text(row.id_a),
            Cell::Text(row.id_b),
            Cell::Unsigned(row.fingerprint_a.0),
            Cell::Unsigned(row.fingerprint_b.0),
            Cell::Small(row.distance.into()),
        ])
    }

    /// Writes what is left. A file without it cannot be read.
    ///
    /// # Errors
    /// If the writer fails.
    pub(super) fn finish(self) -> io::Result<W> {
        self.0.finish()
    }
}

/// Writes members of clusters.
pub(super) struct ClusterTable<W: Write + Send>(Table<W>);

impl<W: Write + Send> ClusterTable<W> {
    const SCHEMA: &str = "message clusters {
        required binary id (STRING);
        required int64 fingerprint (INTEGER(64, false));
        required int64 cluster (INTEGER(64, false));
    }";

    /// A table without rows.
    ///
    /// # Errors
    /// If `writer` fails.
    pub(super) fn new(writer: W) -> io::Result<Self> {
        Table::new(writer, Self::SCHEMA).map(Self)
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If the writer fails.
    pub(super) fn push(&mut self, row: &ClusterRow<'_>) -> io::Result<()> {
        self.0.push(&[
            Cell::Text(row.id),
            Cell::Unsigned(row.fingerprint.0),
            Cell::Unsigned(row.cluster.0),
        ])
    }

    /// Writes what is left. A file without it cannot be read.
    ///
    /// # Errors
    /// If the writer fails.
    pub(super) fn finish(self) -> io::Result<W> {
        self.0.finish()
    }
}

/// Writes documents.
pub(super) struct DocumentTable<W: Write + Send>(Table<W>);

impl<W: Write + Send> DocumentTable<W> {
    const SCHEMA: &str = "message documents {
        required binary id (STRING);
        required int64 fingerprint (INTEGER(64, false));
    }";

    /// A table without rows.
    ///
    /// # Errors
    /// If `writer` fails.
    pub(super) fn new(writer: W) -> io::Result<Self> {
        Table::new(writer, Self::SCHEMA).map(Self)
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If the writer fails.
    pub(super) fn push(&mut self, row: &DocumentRow<'_>) -> io::Result<()> {
        self.0
            .push(&[Cell::Text(row.id), Cell::Unsigned(row.fingerprint.0)])
    }

    /// Writes what is left. A file without it cannot be read.
    ///
    /// # Errors
    /// If the writer fails.
    pub(super) fn finish(self) -> io::Result<W> {
        self.0.finish()
    }
}
