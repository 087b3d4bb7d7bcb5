//! The arguments that several commands share, and what they ask for in the words of the other crates.

mod batch;
mod input;
mod plan;
mod read;
mod write;

pub use batch::{BatchArgs, Blocks};
pub use input::InputArgs;
pub(crate) use plan::Plan;
pub use read::ReadArgs;
pub use write::WriteArgs;
