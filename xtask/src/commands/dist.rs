//! `cargo xtask dist`: builds the archives of a release, and tries them without Rust.

use std::process::ExitCode;

use anyhow::ensure;
use clap::ValueEnum;

use crate::cross::Target;
use crate::dist;
use crate::tools;
use crate::workspace::Workspace;

/// Build the archives of a release into target/dist, and try them in a root that holds nothing else
///
/// The programs are static: they need no libraries of the system. The same sources, compiler and tools
/// are meant to give the same bytes. Installs a C compiler for other machines into target/tools/dist, saying so first.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Build for these processors only; may be given several times
    #[arg(long, value_name = "TARGET", value_enum)]
    target: Vec<Target>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::locate(false)?;
    let targets = chosen(&arguments.target);
    let mut missing = Vec::new();
    let mut ready = Vec::new();
    for target in targets {
        match tools::standard_library(&workspace, target.triple()) {
            Ok(()) => ready.push(target),
            Err(error) => missing.push(format!("no archive for {}: {error:#}", target.triple())),
        }
    }
    let compiler = tools::cross_compiler(&workspace)?;
    let mut archives = Vec::new();
    for target in ready {
        archives.push(dist::archive(&workspace, &compiler, target)?);
    }
    dist::write_checksums(&workspace, &archives)?;
    for archive in &archives {
        println!("{}", archive.display());
    }
    ensure!(missing.is_empty(), "{}", missing.join("\n"));
    Ok(ExitCode::SUCCESS)
}

/// The wanted targets, each once, or all.
fn chosen(only: &[Target]) -> Vec<Target> {
    let all = Target::value_variants().iter().copied();
    all.filter(|target| only.is_empty() || only.contains(target))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_targets_are_built_unless_some_are_named() {
        assert_eq!(chosen(&[]), Target::value_variants());
        assert_eq!(
            chosen(&[Target::Aarch64, Target::Aarch64]),
            [Target::Aarch64]
        );
    }
}
