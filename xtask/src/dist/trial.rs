//! An archive is tried where there is nothing but what it holds: `tests/python/bare_root.py`.

use std::path::Path;
use std::process::Command;

use super::Target;
use crate::process;
use crate::workspace::Workspace;

/// Emulators of a processor, by their names in Debian.
const EMULATORS: [&str; 2] = ["qemu-aarch64-static", "qemu-aarch64"];

/// Tries an archive, or says why it cannot be tried here.
pub(super) fn run(workspace: &Workspace, archive: &Path, target: Target) -> anyhow::Result<()> {
    let mut script = Command::new("python3");
    workspace.at_root(&mut script);
    script
        .arg("tests/python/bare_root.py")
        .arg("--archive")
        .arg(archive);
    if target.processor() != std::env::consts::ARCH {
        let runs = |name: &&str| process::succeeds(Command::new(name).arg("--version"));
        let emulator = EMULATORS.into_iter().find(runs);
        let Some(emulator) = emulator.filter(|_| target == Target::Aarch64) else {
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
