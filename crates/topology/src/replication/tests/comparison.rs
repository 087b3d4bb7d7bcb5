//! What a learner may compare with its source.

use super::world::{Config, World};

/// How a learner compares what it had with what a source has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Comparison {
    /// Later states are sent unasked.
    pub(super) until: u64,
    /// Whether another element in the range differs.
    pub(super) others_differ: bool,
    /// Whether another element was set aside that may not stay, so that all is written once more.
    pub(super) others_go: bool,
}

impl Comparison {
    /// All is sent.
    pub(super) const WHOLE: Self = Self {
        until: 0,
        others_differ: false,
        others_go: false,
    };
}

/// All comparisons that may be tried.
pub(super) fn comparisons(config: &Config, world: &World) -> impl Iterator<Item = Comparison> {
    let written = world
        .writers
        .iter()
        .map(|writer| writer.write.state().version.0);
    let mut versions: Vec<u64> = vec![0];
    if config.in_parts {
        versions.extend(written);
        versions.push(u64::MAX);
    }
    let others = if config.in_parts { 4 } else { 1 };
    versions.into_iter().flat_map(move |until| {
        (0..others).map(move |bits| Comparison {
            until,
            others_differ: bits & 1 != 0,
            others_go: bits & 2 != 0,
        })
    })
}
