//! An archive is tried where there is nothing but what it holds: `tests/python/bare_root.py`.

use std::path::Path;
use std::process::Command;

use crate::cross::Target;
use crate::process;
use crate::tools::emulator::{self, EMULATORS};
use crate::workspace::Workspace;

/// Tries an archive, or says why it cannot be tried here.
pub(super) fn run(workspace: &Workspace, archive: &Path, target: Target) -> anyhow::Result<()> {
    let mut script = Command::new("python3");
    workspace.at_root(&mut script);
    script
        .arg("tests/python/bare_root.py")
        .arg("--archive")
        .arg(archive);
    if target.processor() != std::env::consts::ARCH {
        let Some(emulator) = emulator::found(target) else {
            let emulated = match target {
                Target::Aarch64 => format!(", nor {} to stand in for it", EMULATORS[0]),
                Target::X86_64 => String::new(),
            };
            println!(
                "{} was not tried: this machine has no {} processor{emulated}",
                archive.display(),
                target.processor(),
            );
            return Ok(());
        };
        script.args(["--emulator", emulator]);
    }
    process::run(&mut script)
}
