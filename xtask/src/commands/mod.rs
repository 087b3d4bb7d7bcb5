//! The verbs, one file each.

pub(crate) mod bench;
pub(crate) mod dist;
pub(crate) mod files;
pub(crate) mod fix;
pub(crate) mod lint;
pub(crate) mod quality;
pub(crate) mod test;
