//! The report of a batch command: one HTML page that needs nothing else.
//!
//! [`page`] is a pure function of a [`Report`], and [`evaluation_page`] of an evaluation: no clock, no files, no
//! network. The page carries its style, draws its charts as SVG beside the numbers that they show, and runs no script. Ids, paths
//! and reasons are text from outside: they pass through the templates' escaping, and their control
//! characters are spelled out.
//!
//! # Invariants
//! - H1: whatever the text from outside, it adds no element and no attribute to the page.
//! - H2: the page asks nothing of the network and runs no script, and says so to the browser.
//! - H3: the page has at most 2 MB, however much the report holds.

mod bars;
mod content;
mod difference;
mod evaluation;
mod layout;

mod numbers;
mod scale;
mod section;
mod sections;
mod summary;
#[cfg(test)]
mod tests;
mod text;

pub use content::Report;
pub use evaluation::evaluation_page;
pub use layout::page;

pub use crate::statistics::{
    ClusterSample, DocumentSample, HeavyPrefix, MemberSample, PairSample, SpecialFingerprint, Why,
};
pub use crate::texts::Excerpt;
