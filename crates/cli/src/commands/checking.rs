//! Opening a command's input, with a sign of life while all of it is checked.

use std::io::{self, IsTerminal};

use simshard_input::{Input, InputError, InputOptions, Needs};

use crate::progress;

/// Opens and checks the input.
pub(super) fn open(options: &InputOptions) -> Result<Input, InputError> {
    // A spinner would write over what a user types.
    let typed = options.reads_stdin() && io::stdin().is_terminal();
    let _spinner = (!typed).then(|| progress::spinner("checking the input"));
    Input::open(options, Needs::CLIENT)
}
