//! The input and output of a batch command, checked before anything is read.

use simshard_batch::{Output, OutputFormat};
use simshard_input::InputOptions;
use simshard_simhash::Recipe;

use super::{ReadArgs, WriteArgs};

/// Arguments that make sense, and an output that can be written.
pub(crate) struct Plan {
    /// The inputs, with patterns expanded.
    pub(crate) input: InputOptions,
    /// How texts become fingerprints.
    pub(crate) recipe: Recipe,
    /// How the result is written.
    pub(crate) format: OutputFormat,
    /// Where the result goes.
    pub(crate) output: Output,
}

impl Plan {
    /// Checks the arguments and opens the output; its format is `usual` unless they say one.
    pub(crate) fn new(
        reading: &ReadArgs,
        writing: &WriteArgs,
        usual: OutputFormat,
    ) -> anyhow::Result<Self> {
        let recipe = reading.effective_recipe()?;
        let format = writing.effective_format(usual)?;
        let input = reading.selection.options().expanded()?;
        let output = writing.open(format, &input.paths)?;
        Ok(Self {
            input,
            recipe,
            format,
            output,
        })
    }
}
