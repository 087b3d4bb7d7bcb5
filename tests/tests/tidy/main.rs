//! The rules of the house, as tests: what no compiler checks and every reader relies on.
//!
//! A rule is a function from what it inspects to the problems it sees, so each one is also shown
//! a bad sample that it must complain about.
//!
//! | module | rule |
//! |---|---|
//! | `crate_table` | the crates and the arrows between them are those of the design |
//! | `import_circles` | no import circle leads through files of different folders |
//! | `purity` | `simhash` and `topology` know no async, I/O, serde or clock |
//! | `shape` | every Rust file has a header; files and functions stay short |
//! | `unsafety` | `unsafe` stands only among the processor-specific scans, and on the allocator's settings |
//! | `leftovers` | nothing unfinished, no ignored test, no test that sleeps |
//! | `invariants` | every invariant with an id is named where it is tested, and listed on its page |
//! | `words` | nothing points outside the repository |
//! | `plain_words` | no text hides its subject, and the sentences of pages and comments are short |
//! | `documents` | the pages show the two commands, and their links lead to files and sections |
//! | `traces` | the functions that the page on routing follows a request through exist |

mod crate_table;
mod documents;
mod import_circles;
mod invariants;
mod leftovers;
mod plain_words;
mod purity;
mod repository;
mod rust_source;
mod shape;
mod traces;
mod unsafety;
mod words;

/// Fails with a list of all problems.
fn assert_none(problems: &[String]) {
    assert!(problems.is_empty(), "\n  {}\n", problems.join("\n  "));
}
