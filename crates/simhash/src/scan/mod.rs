//! The instructions of particular processors: the only place for `unsafe`.

mod level;
mod prefetch;

#[allow(unused_imports, reason = "its kernels come next")]
pub(crate) use level::Level;
pub(crate) use prefetch::prefetch;
