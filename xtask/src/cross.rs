//! Building for other processors, and running what was built for them here.

use std::process::Command;

use clap::ValueEnum;

use crate::tools::PythonTools;
use crate::workspace::Workspace;

/// Pages of 64 KiB, the largest that kernels of this processor have. jemalloc refuses larger ones than it was built
/// for.
const ARM_PAGE: (&str, &str) = ("JEMALLOC_SYS_WITH_LG_PAGE", "16");

/// The processors that releases are for. The system is Linux with any C library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    /// 64-bit x86
    #[value(name = "x86_64-unknown-linux-musl")]
    X86_64,
    /// 64-bit ARM
    #[value(name = "aarch64-unknown-linux-musl")]
    Aarch64,
}

impl Target {
    /// Its name in Rust, of which the archive has its own.
    pub(crate) const fn triple(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-unknown-linux-musl",
            Self::Aarch64 => "aarch64-unknown-linux-musl",
        }
    }

    pub(crate) const fn processor(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// The variable that ends in `name` by which cargo, or a compiler that it starts, takes a setting for this target
    /// alone.
    pub(crate) fn variable(self, name: &str) -> String {
        let triple = self.triple().to_uppercase().replace('-', "_");
        format!("CARGO_TARGET_{triple}_{name}")
    }
}

/// The cargo of the cross compiler with its `verb`, which builds for a target at the root.
pub(crate) fn cargo(
    workspace: &Workspace,
    compiler: &PythonTools,
    target: Target,
    verb: &str,
) -> Command {
    let mut command = compiler.command("cargo-zigbuild");
    workspace.at_root(&mut command);
    command.args([verb, "--locked", "--target", target.triple()]);
    command.arg("--target-dir").arg(workspace.target());
    if target == Target::Aarch64 {
        let (name, value) = ARM_PAGE;
        command.env(name, value);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_for_a_target_have_its_name() {
        assert_eq!(
            Target::Aarch64.variable("RUNNER"),
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUNNER"
        );
    }
}
