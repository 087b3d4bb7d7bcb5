//! WARC and WET files, put together of pieces and damaged.

use std::io::{self, Cursor, Read};

use flate2::read::GzEncoder;
use proptest::prelude::*;
use simshard_input::warc::WarcDocuments;
use simshard_input::{Html, Ids};

use super::splice::{Bytes, damaged, spliced};
use super::{assert_printable, assert_within_limits, cases};

fn record(fields: &str, block: &[u8]) -> Vec<u8> {
    let header = format!(
        "WARC/1.0\r\n{fields}Content-Length: {}\r\n\r\n",
        block.len()
    );
    [header.as_bytes(), block, b"\r\n\r\n"].concat()
}

/// A record of every kind that is read.
fn records() -> Vec<Vec<u8>> {
    let mut zipped = Vec::new();
    let mut encoder = GzEncoder::new(&b"a text in gzip"[..], flate2::Compression::fast());
    encoder.read_to_end(&mut zipped).unwrap();
    let ok = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n";
    let response = "WARC-Type: response\r\nWARC-Target-URI: c\r\n\
                    Content-Type: application/http; msgtype=response\r\n";
    let answer = |fields: &str, payload: &[u8]| {
        record(
            response,
            &[ok.as_bytes(), fields.as_bytes(), b"\r\n", payload].concat(),
        )
    };
    vec![
        record(
            "WARC-Type: warcinfo\r\nContent-Type: application/warc-fields\r\n",
            b"a: b\r\n",
        ),
        record(
            "WARC-Type: conversion\r\nWARC-Target-URI: http://a/\r\n",
            "é text".as_bytes(),
        ),
        record("WARC-Type: conversion\r\nWARC-Record-ID: <urn:1>\r\n", b""),
        record(
            "WARC-Type: resource\r\nWARC-Target-URI: <b>\r\nContent-Type: text/plain;charset=utf-8\r\n",
            b"WARC/1.0\r\n",
        ),
        record("WARC-Type: resource\r\nContent-Type: text/html\r\n", b"<p>"),
        answer("", b"a payload"),
        answer(
            "Transfer-Encoding: chunked\r\n",
            b"3\r\nabc\r\n1;x=y\r\nd\r\n0\r\n\r\n",
        ),
        answer("Content-Encoding: gzip\r\n", &zipped),
    ]
}

const PIECES: [&str; 40] = [
    "WARC/1.0\r\n",
    "WARC/1.1\n",
    "WARC/",
    "\r\n",
    "\n",
    "\r\n\r\n",
    "\n\n",
    " ",
    "\t",
    ":",
    "WARC-Type: ",
    "conversion\r\n",
    "resource\r\n",
    "response\r\n",
    "metadata\r\n",
    "WARC-Target-URI: a\r\n",
    "WARC-Target-URI: <",
    "WARC-Record-ID: b\n",
    "Content-Type: text/plain\r\n",
    "Content-Type: application/http\r\n",
    "Content-Length: 0\r\n\r\n",
    "Content-Length: 3\r\n\r\nabc",
    "Content-Length: -1\r\n\r\n",
    "Content-Length: 18446744073709551615\r\n\r\n",
    "Content-Length: 18446744073709551616\r\n\r\n",
    "content-length:",
    "WARC-Segment-Number: 1\r\n",
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.0 404 X\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "Content-Encoding: gzip\r\n",
    "Content-Encoding: br\r\n",
    "Content-Encoding: deflate\r\n",
    "Content-Type: text/html; charset=utf-16\r\n",
    "FFFFFFFFFFFFFFFF\r\n",
    "3\r\nabc\r\n",
    "0\r\n\r\n",
    "\0",
    "é",
];

fn pieces() -> Vec<Vec<u8>> {
    let mut pieces = PIECES.map(|piece| piece.as_bytes().to_vec()).to_vec();
    for whole in records() {
        // As often as all the pieces together.
        pieces.extend(vec![whole; PIECES.len() / records().len()]);
    }
    // What follows is a payload, up to its length.
    for length in [9, 99, 200] {
        let response = format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: d\r\n\
             Content-Type: application/http\r\nContent-Length: {length}\r\n\r\n\
             HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
        );
        pieces.push(response.clone().into_bytes());
        let chunked = response + "Transfer-Encoding: chunked\r\n\r\n";
        pieces.push(chunked.into_bytes());
    }
    pieces.push(b"\xFF".to_vec());
    pieces
}

/// Hands out a few bytes at a time.
struct Trickle(Cursor<Vec<u8>>);

impl Read for Trickle {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(7);
        self.0.read(&mut buffer[..most])
    }
}

fn check_warc(bytes: &[u8]) {
    for leaves_out_broken in [false, true] {
        check_reading(bytes, leaves_out_broken);
    }
}

fn check_reading(bytes: &[u8], leaves_out_broken: bool) {
    let open = |from: Box<dyn Read + Send>| {
        let documents = WarcDocuments::new("a.wet".to_owned(), from, Html::Main, Ids::Any);
        documents.leaving_out_broken(leaves_out_broken)
    };
    // Every record begins with this, and what begins otherwise is the last. If it is left out, the next record follows.
    let records = bytes.windows(5).filter(|window| window == b"WARC/").count();
    let most = if leaves_out_broken {
        2 * records + 1
    } else {
        records + 1
    };
    let mut documents = open(Box::new(Cursor::new(bytes.to_vec())));
    let mut seen = Vec::new();
    let mut ended = false;
    for result in documents.by_ref() {
        assert!(!ended, "something follows the end");
        seen.push(result.map_err(|error| {
            ended = !error.is_bad_record();
            let message = error.to_string();
            assert_printable(&message);
            message
        }));
    }
    assert!(seen.len() <= most);
    assert!(documents.other_records().total() <= most as u64);
    let read: Vec<_> = seen
        .iter()
        .flatten()
        .map(|(document, _)| document.clone())
        .collect();
    assert_within_limits(&read);

    let trickled = open(Box::new(Trickle(Cursor::new(bytes.to_vec()))));
    let trickled: Vec<_> = trickled
        .map(|result| result.map_err(|error| error.to_string()))
        .collect();
    assert_eq!(seen, trickled);
}

#[test]
fn spliced_records() {
    proptest!(cases(), |(Bytes(bytes) in spliced(pieces(), 24))| check_warc(&bytes));
}

#[test]
fn damaged_files() {
    let whole = Just(records().concat());
    proptest!(cases(), |(Bytes(bytes) in damaged(whole, pieces()))| check_warc(&bytes));
}
