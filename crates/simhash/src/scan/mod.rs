//! The instructions of particular processors: the only place for `unsafe`.

mod prefetch;

pub(crate) use prefetch::prefetch;
