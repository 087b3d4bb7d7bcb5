//! The requirements of a command on its input.

use simshard_simhash::{Recipe, TextRecipe};

use crate::format::Format;
use crate::ids::Ids;

/// The requirements of a command on its input.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Which ids will do.
    pub ids: Ids,
    /// When the input is checked.
    pub check: Check,
    /// The format where neither the caller nor the paths say one.
    pub preferred_format: Format,
    /// The recipe: it says whether objects carry texts or features, unless the caller does.
    pub recipe: Recipe,
}

/// When the input is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// All of it before the first document is handed out. A command asks for this if it cannot take
    /// back what it has done with the documents before a bad line. Not where bad lines are skipped.
    BeforeUse,
    /// As it is read, once: for a command that has done nothing before its end.
    AsRead,
}

impl Needs {
    /// Those of a command that sends documents to a router.
    pub const CLIENT: Self = Self {
        ids: Ids::Any,
        check: Check::BeforeUse,
        preferred_format: Format::Lines,
        recipe: Recipe::Text(TextRecipe::WordsV1),
    };
}
