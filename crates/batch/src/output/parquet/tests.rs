//! What the tables promise, read back by the reader of Parquet input.

use std::fs::File;
use std::io::{Seek, Write as _};

use simshard_input::parquet::{ContentColumn, ParquetColumns, ParquetDocuments};
use simshard_input::{Content, Document, Ids};

use super::table::{ID_BYTES_PER_GROUP, ROWS_PER_GROUP};
use super::*;

/// The documents of a finished table, by two of its columns.
fn documents(table: File, id: &str, fingerprint: &str) -> Vec<Document> {
    let columns = ParquetColumns {
        id: id.to_owned(),
        content: ContentColumn::Fingerprint(fingerprint.to_owned()),
    };
    let documents = ParquetDocuments::open("t".to_owned(), table, &columns, Ids::Any).unwrap();
    documents.map(Result::unwrap).collect()
}

fn document(id: &str, fingerprint: u64) -> Document {
    Document {
        id: id.to_owned(),
        content: Content::Fingerprint(Fingerprint(fingerprint)),
    }
}

fn file() -> File {
    tempfile::tempfile().unwrap()
}

/// Another handle to a finished table.
fn again(file: &File) -> File {
    file.try_clone().unwrap()
}

#[test]
fn pairs_are_read_back_as_they_were_written() {
    let mut table = PairTable::new(file()).unwrap();
    let row = |id_a, a, id_b, b, distance| PairRow {
        id_a,
        id_b,
        fingerprint_a: Fingerprint(a),
        fingerprint_b: Fingerprint(b),
        distance,
    };
    table.push(&row("å", u64::MAX, "", 0, 64)).unwrap();
    table.push(&row("a\tb\n", 7, "a", 7, 0)).unwrap();
    let written = table.finish().unwrap();
    let read = documents(again(&written), "id_a", "fingerprint_a");
    assert_eq!(read, [document("å", u64::MAX), document("a\tb\n", 7)]);
    let read = documents(again(&written), "id_b", "fingerprint_b");
    assert_eq!(read, [document("", 0), document("a", 7)]);
    let read = documents(written, "id_a", "distance");
    assert_eq!(read, [document("å", 64), document("a\tb\n", 0)]);
}

#[test]
fn clusters_are_read_back_as_they_were_written() {
    let mut table = ClusterTable::new(file()).unwrap();
    for (id, fingerprint, cluster) in [("a", 1 << 63, 3), ("b", 3, 3), ("c", u64::MAX, u64::MAX)] {
        let (fingerprint, cluster) = (Fingerprint(fingerprint), Fingerprint(cluster));
        table
            .push(&ClusterRow {
                id,
                fingerprint,
                cluster,
            })
            .unwrap();
    }
    let written = table.finish().unwrap();
    let read = documents(again(&written), "id", "fingerprint");
    assert_eq!(
        read,
        [
            document("a", 1 << 63),
            document("b", 3),
            document("c", u64::MAX)
        ]
    );
    let read = documents(written, "id", "cluster");
    assert_eq!(
        read,
        [document("a", 3), document("b", 3), document("c", u64::MAX)]
    );
}

#[test]
fn a_table_without_rows_can_be_read() {
    let written = ClusterTable::new(file()).unwrap().finish().unwrap();
    assert_eq!(documents(written, "id", "fingerprint"), []);
}

#[test]
fn more_rows_than_a_group_holds_are_written_in_several() {
    let rows = ROWS_PER_GROUP as u64 * 2 + 3;
    let mut table = ClusterTable::new(file()).unwrap();
    for row in 0..rows {
        let (id, fingerprint) = (row.to_string(), Fingerprint(!row));
        table
            .push(&ClusterRow {
                id: &id,
                fingerprint,
                cluster: Fingerprint(7),
            })
            .unwrap();
    }
    let read = documents(table.finish().unwrap(), "id", "fingerprint");
    assert_eq!(read.len() as u64, rows);
    for (row, read) in (0..).zip(read) {
        assert_eq!(read, document(&row.to_string(), !row));
    }
}

/// Counts what has been written so far.
#[derive(Default)]
struct Counting(usize);

impl io::Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// PQ3
#[test]
fn no_more_than_a_group_is_held() {
    let fingerprint = Fingerprint(0);
    let mut table = ClusterTable::new(Counting::default()).unwrap();
    let id = "x".repeat(1 << 20);
    for _ in 0..ID_BYTES_PER_GROUP / id.len() - 1 {
        table
            .push(&ClusterRow {
                id: &id,
                fingerprint,
                cluster: Fingerprint(7),
            })
            .unwrap();
        assert!(table.0.held().1 < ID_BYTES_PER_GROUP);
    }
    table
        .push(&ClusterRow {
            id: &id,
            fingerprint,
            cluster: Fingerprint(7),
        })
        .unwrap();
    assert_eq!(table.0.held(), (0, 0));

    let mut table = ClusterTable::new(Counting::default()).unwrap();
    for _ in 0..ROWS_PER_GROUP {
        table
            .push(&ClusterRow {
                id: "",
                fingerprint,
                cluster: Fingerprint(7),
            })
            .unwrap();
    }
    assert_eq!(table.0.held(), (0, 0));
    assert!(table.finish().unwrap().0 > 0);
}

/// A disk that is full.
struct Full;

impl io::Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::new(io::ErrorKind::StorageFull, "no space left"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_the_writer_says_is_handed_on() {
    let mut failed = ClusterTable::new(Full).err();
    if failed.is_none() {
        let mut table = ClusterTable::new(Full).unwrap();
        let row = ClusterRow {
            id: "a",
            fingerprint: Fingerprint(1),
            cluster: Fingerprint(7),
        };
        failed = table.push(&row).err().or_else(|| table.finish().err());
    }
    let error = failed.unwrap();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(error.to_string(), "no space left");
}

#[test]
fn a_table_that_is_not_finished_is_no_parquet_file() {
    let mut file = file();
    let mut table = ClusterTable::new(again(&file)).unwrap();
    let row = ClusterRow {
        id: "a",
        fingerprint: Fingerprint(1),
        cluster: Fingerprint(7),
    };
    table.push(&row).unwrap();
    drop(table);
    file.flush().unwrap();
    file.rewind().unwrap();
    let columns = ParquetColumns {
        id: "id".to_owned(),
        content: ContentColumn::Fingerprint("fingerprint".to_owned()),
    };
    assert!(ParquetDocuments::open("t".to_owned(), file, &columns, Ids::Any).is_err());
}
