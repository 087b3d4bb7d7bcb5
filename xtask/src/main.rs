//! Developer commands, run as `cargo xtask <verb>`.
//!
//! `test` and `lint` only read the sources; `fix` writes them, `bench` writes docs/benchmarks.md,
//! `quality` docs/quality.md and `files` docs/real-files.md. `dist` builds the archives of a release.
//! Whatever a verb needs and does not find is installed by `tools`, which says so first.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bench;
mod commands;
mod cross;
mod dist;
mod process;
mod report;
mod steps;
mod tools;
mod workspace;

/// Developer commands of Simshard.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Test(commands::test::Arguments),
    Lint(commands::lint::Arguments),
    Fix(commands::fix::Arguments),
    Bench(commands::bench::Arguments),
    Quality(commands::quality::Arguments),
    Files(commands::files::Arguments),
    Dist(commands::dist::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().verb {
        Verb::Test(arguments) => commands::test::run(&arguments),
        Verb::Lint(arguments) => commands::lint::run(&arguments),
        Verb::Fix(arguments) => commands::fix::run(&arguments),
        Verb::Bench(arguments) => commands::bench::run(&arguments),
        Verb::Quality(arguments) => commands::quality::run(&arguments),
        Verb::Files(arguments) => commands::files::run(&arguments),
        Verb::Dist(arguments) => commands::dist::run(&arguments),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
