//! `cargo xtask bench`: measures every promise on this machine and writes `docs/benchmarks.md`, and what `simshard
//! size` estimates by.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};

use crate::bench::scaling::{self, Scaling};
use crate::bench::{self, Case, Group, Machine, Measured, Programs};
use crate::process;
use crate::tools;
use crate::workspace::Workspace;

/// The page that is written, from the root.
const PAGE: &str = "docs/benchmarks.md";

/// What `simshard size` estimates by, from the root.
const CONSTANTS: &str = "crates/cli/src/commands/size/measured.json";

/// Measure what the project promises of speed and memory, and write docs/benchmarks.md
///
/// Writes what `simshard size` estimates by too. Takes about ten minutes and wants a machine that does nothing else. Installs
/// FAISS into target/tools/faiss, saying so first. Each machine and level has a section of its own on the page. With --only
/// the section is printed, and written with --write: its other rows stay.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Runs of every row; heavy rows get half as many, rounded up
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..))]
    runs: u8,
    /// Measure only this row and those of the same run, and print the page instead of writing it;
    /// may be given several times
    #[arg(long, value_name = "ROW")]
    only: Vec<String>,
    /// Write the page although only some rows are measured
    #[arg(long, requires = "only")]
    write: bool,
    /// Let the program use no instructions beyond this level, such as avx2
    #[arg(long, value_name = "LEVEL")]
    level: Option<String>,
    /// Measure clusters with replicas instead, whose nodes fail and whose shards move, in about an hour
    #[arg(long, conflicts_with_all = ["only", "write", "scaling"])]
    replicas: bool,
    /// Measure jobs of the Python package on Spark instead, in about ten minutes; installs Spark, and Java
    #[arg(long, conflicts_with_all = ["only", "write", "scaling", "replicas"])]
    engines: bool,
    /// Measure how costs grow with a corpus instead, in about half an hour with 12 GB of memory; write docs/scaling.md, its
    /// picture, and one row of docs/benchmarks.md
    #[arg(long, value_name = "PART", value_enum, num_args = 0..=1, default_missing_value = "all", conflicts_with_all = ["only", "write"])]
    scaling: Option<scaling::Part>,
    /// Print the names of the rows
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.list {
        for row in bench::cases().iter().flat_map(|case| &case.rows) {
            println!("{:32} {}", row.name, row.what);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let group = match (arguments.replicas, arguments.engines) {
        (true, _) => Group::Replicas,
        (_, true) => Group::Engines,
        _ => Group::Steady,
    };
    let cases = chosen(group, &arguments.only)?;
    // Before the build, which is work as well.
    let machine = Machine::this();
    let workspace = Workspace::locate(false)?;
    if arguments.scaling.is_none() {
        tools::faiss(&workspace)?;
        tools::etcd(&workspace)?;
    }
    let build = "build --release --package simshard-cli --all-features";
    process::run(workspace.cargo().args(build.split(' ')))?;
    let programs = Programs::new(&workspace, arguments.level.clone())?;
    let level = programs.level()?;
    let is_limited = level != programs.best_level()?;
    let machine = machine.with_level(level, is_limited);
    let runs = arguments.runs.into();
    if let Some(part) = arguments.scaling {
        let measured = scaling::measure(&programs, runs, part)?;
        return write_scaling(&workspace, &machine, measured);
    }
    programs.check()?;
    let measured = measure(cases, &programs, runs)?;

    let before = fs::read_to_string(workspace.root().join(PAGE)).unwrap_or_default();
    let page = bench::page(&before, &machine, &measured);
    if arguments.only.is_empty() || arguments.write {
        write_rows(&workspace, &page)?;
    }
    println!("\n{page}");
    Ok(ExitCode::SUCCESS)
}

/// Writes how costs grow with a corpus: the page, the picture, and the row.
fn write_scaling(
    workspace: &Workspace,
    machine: &Machine,
    measured: Scaling,
) -> anyhow::Result<ExitCode> {
    let place = |page: &str| workspace.root().join(page);
    let before = |page: &str| fs::read_to_string(place(page)).unwrap_or_default();
    let page = before(scaling::PAGE);
    let curves = scaling::with_kept(&page, machine, measured.curves);
    let page = scaling::page(&page, machine, &curves);
    let picture = place("docs").join(scaling::picture(machine));
    fs::create_dir_all(picture.parent().context("a picture is in a folder")?)?;
    write(&picture, &scaling::svg(&curves)?)?;
    write(&place(scaling::PAGE), &page)?;
    if let Some(row) = measured.row {
        // What sizes are estimated by stays: nothing of it was measured.
        write(&place(PAGE), &bench::page(&before(PAGE), machine, &[row]))?;
    }
    println!("\n{page}");
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of rows, and what `simshard size` estimates by.
fn write_rows(workspace: &Workspace, page: &str) -> anyhow::Result<()> {
    write(&workspace.root().join(PAGE), page)?;
    let constants = bench::constants(page).context("not all rows were ever measured")?;
    let path = workspace.root().join(CONSTANTS);
    // The next run would build the program anew if this file were.
    let before = fs::read_to_string(&path).unwrap_or_default();
    if before != constants {
        write(&path, &constants)?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn measure(cases: Vec<Case>, programs: &Programs, runs: usize) -> anyhow::Result<Vec<Measured>> {
    let mut measured = Vec::new();
    for case in cases {
        println!("\n== {} ==", case.names());
        measured.extend(case.measure(programs, runs)?);
    }
    Ok(measured)
}

/// The cases with the named rows, or those of a group if none is named. Rows of one case are measured, and shown, together.
fn chosen(group: Group, names: &[String]) -> anyhow::Result<Vec<Case>> {
    let has = |case: &Case, name: &String| case.rows.iter().any(|row| row.name == name);
    let all = bench::cases();
    for name in names {
        if !all.iter().any(|case| has(case, name)) {
            bail!("there is no row {name}: --list prints their names");
        }
    }
    let is_chosen = |case: &Case| match names {
        [] => case.group == group,
        names => names.iter().any(|name| has(case, name)),
    };
    Ok(all.into_iter().filter(is_chosen).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rows_are_measured_unless_some_are_named() {
        let groups = [
            Group::Steady,
            Group::Replicas,
            Group::Scaling,
            Group::Engines,
        ];
        let of_groups = groups.map(|group| chosen(group, &[]).unwrap());
        for (cases, group) in of_groups.iter().zip(groups) {
            assert!(!cases.is_empty());
            assert!(cases.iter().all(|case| case.group == group));
        }
        assert_eq!(
            of_groups.map(|cases| cases.len()).iter().sum::<usize>(),
            bench::cases().len()
        );
        let named = |name: &str| chosen(Group::Steady, &[name.to_owned()]);
        let grown = named("cluster-insert-stream-50m").unwrap();
        assert_eq!(grown[0].group, Group::Scaling);
        assert_eq!(named("reshape-moved").unwrap()[0].group, Group::Replicas);
        assert_eq!(named("faiss").unwrap().len(), 1);
        assert!(named("fast").is_err());
    }

    #[test]
    fn rows_of_one_run_are_measured_once() {
        let both = ["pairs-100m", "pairs-100m-memory"].map(str::to_owned);
        let cases = chosen(Group::Steady, &both).unwrap();
        assert_eq!(cases.len(), 1);
        assert_eq!(cases[0].names(), "pairs-100m, pairs-100m-memory");
    }
}
