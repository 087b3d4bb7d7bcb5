//! What the tables promise, read back by the reader of Parquet input.

use std::fs::File;
use std::io::{Seek, Write};

use simshard_input::Notation;
use simshard_input::parquet::{ContentColumn, ParquetDocuments, TableColumns};
use simshard_input::{Content, Document, Ids};

use super::table::{ID_BYTES_PER_GROUP, ROWS_PER_GROUP};
use super::*;

/// The documents of a finished table, by two of its columns.
fn documents(table: File, id: &str, fingerprint: &str) -> Vec<Document> {
    let columns = TableColumns {
        id: Some(id.to_owned()),
        content: ContentColumn::Fingerprint(fingerprint.to_owned(), Notation::Unsigned),
        rank: None,
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

fn table<W: Write + Send>(rows: Rows, writer: W) -> Table<W> {
    Table::new(writer, schema(rows)).unwrap()
}

fn member(id: &str, fingerprint: u64) -> Member<'_> {
    Member {
        id: Some(id.into()),
        fingerprint: Fingerprint(fingerprint),
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
    let mut table = table(Rows::Pairs, file());
    let (a, b) = (member("å", u64::MAX), member("", 0));
    table.push(&pair_row(&a, &b, 64)).unwrap();
    let (a, b) = (member("a\tb\n", 7), member("a", 7));
    table.push(&pair_row(&a, &b, 0)).unwrap();
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
    let mut table = table(Rows::Members, file());
    for (id, fingerprint, cluster) in [("a", 1 << 63, 3), ("b", 3, 3), ("c", u64::MAX, u64::MAX)] {
        let member = member(id, fingerprint);
        let row = member_row(Fingerprint(cluster), &member);
        table.push(&row).unwrap();
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
    let written = table(Rows::Members, file()).finish().unwrap();
    assert_eq!(documents(written, "id", "fingerprint"), []);
}

#[test]
fn more_rows_than_a_group_holds_are_written_in_several() {
    let rows = ROWS_PER_GROUP as u64 * 2 + 3;
    let mut table = table(Rows::Members, file());
    for row in 0..rows {
        let id = row.to_string();
        let member = member(&id, !row);
        table.push(&member_row(Fingerprint(7), &member)).unwrap();
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
    let mut long = table(Rows::Members, Counting::default());
    let id = "x".repeat(1 << 20);
    let row = member(&id, 0);
    let row = member_row(Fingerprint(7), &row);
    for _ in 0..ID_BYTES_PER_GROUP / id.len() - 1 {
        long.push(&row).unwrap();
        assert!(long.held().1 < ID_BYTES_PER_GROUP);
    }
    long.push(&row).unwrap();
    assert_eq!(long.held(), (0, 0));

    let mut many = table(Rows::Members, Counting::default());
    let row = member("", 0);
    let row = member_row(Fingerprint(7), &row);
    for _ in 0..ROWS_PER_GROUP {
        many.push(&row).unwrap();
    }
    assert_eq!(many.held(), (0, 0));
    assert!(many.finish().unwrap().0 > 0);
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
    let mut failed = Table::new(Full, schema(Rows::Members)).err();
    if failed.is_none() {
        let mut table = table(Rows::Members, Full);
        let member = member("a", 1);
        let row = member_row(Fingerprint(7), &member);
        failed = table.push(&row).err().or_else(|| table.finish().err());
    }
    let error = failed.unwrap();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(error.to_string(), "no space left");
}

#[test]
fn a_table_that_is_not_finished_is_no_parquet_file() {
    let mut file = file();
    let mut table = table(Rows::Members, again(&file));
    let member = member("a", 1);
    table.push(&member_row(Fingerprint(7), &member)).unwrap();
    drop(table);
    file.flush().unwrap();
    file.rewind().unwrap();
    let columns = TableColumns {
        id: Some("id".to_owned()),
        content: ContentColumn::Fingerprint("fingerprint".to_owned(), Notation::Unsigned),
        rank: None,
    };
    assert!(ParquetDocuments::open("t".to_owned(), file, &columns, Ids::Any).is_err());
}
