//! `cargo xtask bench`: measures every promise on this machine and writes `docs/benchmarks.md`.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, bail};

use crate::bench::{self, Machine, Measured, Programs, Row};
use crate::process;
use crate::tools;
use crate::workspace::Workspace;

/// The page that is written, from the root.
const PAGE: &str = "docs/benchmarks.md";

/// Measure what the project promises of speed and memory, and write docs/benchmarks.md
///
/// Takes about ten minutes and wants a machine that does nothing else. Installs FAISS into
/// target/tools/faiss, saying so first. With --only the page is printed, not written.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Runs of every row; heavy rows get half as many, at least one
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..))]
    runs: u8,
    /// Measure only this row, and print the page instead of writing it; may be given several times
    #[arg(long, value_name = "ROW")]
    only: Vec<String>,
    /// Print the names of the rows
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.list {
        for row in bench::rows() {
            println!("{:32} {}", row.name, row.what);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let chosen = chosen(&arguments.only)?;
    let workspace = Workspace::locate(false)?;
    let faiss = tools::faiss(&workspace)?;
    let build = "build --release --package simshard-cli --all-features";
    process::run(workspace.cargo().args(build.split(' ')))?;
    let programs = Programs::new(&workspace, faiss)?;
    programs.check()?;
    let measured = measure(chosen, &programs, arguments.runs.into())?;

    let path = workspace.root().join(PAGE);
    let before = fs::read_to_string(&path).unwrap_or_default();
    let page = bench::page(&Machine::this(), &measured, bench::notes_of(&before));
    if arguments.only.is_empty() {
        fs::write(&path, &page).with_context(|| format!("cannot write {}", path.display()))?;
    }
    println!("\n{page}");
    Ok(ExitCode::SUCCESS)
}

fn measure(rows: Vec<Row>, programs: &Programs, runs: usize) -> anyhow::Result<Vec<Measured>> {
    let mut measured = Vec::new();
    for row in rows {
        println!("\n== {} ==", row.name);
        let runs = if row.is_heavy { runs.div_ceil(2) } else { runs };
        measured.push(row.measure(programs, runs)?);
    }
    Ok(measured)
}

/// The named rows, or all.
fn chosen(names: &[String]) -> anyhow::Result<Vec<Row>> {
    let rows = bench::rows();
    for name in names {
        if rows.iter().all(|row| row.name != name) {
            bail!("there is no row {name}: --list prints their names");
        }
    }
    let is_chosen = |row: &Row| names.is_empty() || names.iter().any(|name| name == row.name);
    Ok(rows.into_iter().filter(is_chosen).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rows_are_measured_unless_some_are_named() {
        assert_eq!(chosen(&[]).unwrap().len(), bench::rows().len());
        let faiss = chosen(&["faiss".to_owned()]).unwrap();
        assert_eq!(faiss.len(), 1);
        assert!(chosen(&["fast".to_owned()]).is_err());
    }
}
