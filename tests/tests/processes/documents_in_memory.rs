//! What documents take in a process without a data directory, which keeps their ids in memory.

use std::fmt::Write;
use std::time::{Duration, Instant};

use simshard_runtime::system::anonymous_memory_of;
use simshard_testkit::{Process, binary, run};

/// Most bytes of memory of a document whose id has 29 bytes, tables and process included.
const MOST_BYTES: u64 = 230;

const DOCUMENTS: u64 = 1_000_000;

/// The allocator has given back by then what it does not use.
const LONG: Duration = Duration::from_secs(30);

#[test]
fn a_document_with_an_id_of_29_bytes_takes_at_most_230_bytes() {
    let process = Process::serve(binary(), ["serve", "--listen", "127.0.0.1:0"]);
    let url = process.url();
    let create = [
        "corpus",
        "create",
        "pages",
        "--blocks",
        "5",
        "--distance",
        "3",
    ];
    let created = run(binary(), [&create[..], &["--router", url]].concat(), "");
    assert!(created.status.success());
    let mut lines = String::new();
    for number in 0..DOCUMENTS {
        let fingerprint = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        writeln!(lines, "https://example.org/{number:09}\t{fingerprint}").unwrap();
    }
    let insert = [
        "insert", "--format", "tsv", "--corpus", "pages", "--router", url,
    ];
    assert!(run(binary(), insert, &lines).status.success());
    let start = Instant::now();
    let mut bytes = u64::MAX;
    while bytes > MOST_BYTES * DOCUMENTS {
        assert!(start.elapsed() < LONG, "{} bytes each", bytes / DOCUMENTS);
        bytes = anonymous_memory_of(process.id()).unwrap();
    }
    println!("{} bytes each", bytes / DOCUMENTS);
}
