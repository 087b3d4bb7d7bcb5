//! Opening a command's input, with a sign of life while all of it is checked.

use std::io::{self, IsTerminal};

use crate::input::{Input, InputArgs, InputError, Needs};
use crate::progress;

/// Opens and checks the input.
pub(super) fn open(args: &InputArgs) -> Result<Input, InputError> {
    // A spinner would write over what somebody types.
    let typed = args.reads_stdin() && io::stdin().is_terminal();
    let _spinner = (!typed).then(|| progress::spinner("checking the input"));
    Input::open(args, Needs::CLIENT)
}
