//! The steps of the verification, in order, and how a run goes through them.

use std::process::ExitCode;
use std::time::Instant;

use clap::ValueEnum;

use crate::process;
use crate::report::{self, StepOutcome, SummaryRow};
use crate::tools::Tools;
use crate::workspace::Workspace;
use files::Page;

mod aarch64;
mod alerts;
mod backup;
mod browser;
mod buf;
mod demo;
mod deny;
mod deploy;
mod earlier;
mod failures;
pub(crate) mod files;
mod js;
pub(crate) mod package;
mod room;
mod rust_tests;
mod scripts;

/// One thing to verify. They stand in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    /// Every Rust file is formatted
    Fmt,
    /// Clippy finds nothing to say about any target
    Clippy,
    /// The dependency tree has only the licences, versions and sources that deny.toml allows
    Deny,
    /// The protobuf interfaces pass buf's lints and are formatted
    Buf,
    /// Prometheus takes the configuration and the rules of deploy/, and each alert fires where it should
    Alerts,
    /// The Rust tests of all packages pass
    Tests,
    /// The demo finds all near-duplicates among files of this machine, checked by scan
    Demo,
    /// The examples of all pages print what the pages show: commands, Python and `buf curl`
    Examples,
    /// The HTML report shows what it should in a real browser, and asks nothing of the network
    Browser,
    /// 10,000 generated texts get the fingerprints that published implementations give them
    Recipes,
    /// Real archives and tables give what their page says, and the same texts as other readers
    Files,
    /// The Python package is built as a wheel and passes its tests, and the checks of its types and style
    Package,
    /// What is in deploy/ passes its checks, and the services of the Compose file run and answer as processes
    Deploy,
    /// A corpus is backed up to a store that speaks S3, and comes back into another cluster
    Backup,
    /// The JavaScript package is built, its types are right, and it passes its tests with a server
    Js,
    /// On 64-bit ARM, emulated, the demo finds what it should, and tests of the engine and the storage pass; only with
    /// `--long`, or if it is named
    Aarch64,
}

impl Step {
    /// The name on the command line and in the summary.
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Whether it is for long runs alone.
    pub(crate) const fn is_long(self) -> bool {
        matches!(self, Self::Aarch64)
    }

    fn verify(self, workspace: &Workspace, tools: &Tools) -> StepOutcome {
        match self {
            Self::Fmt => rust(workspace, tools, "fmt --all -- --check").into(),
            Self::Clippy => {
                // All targets are those that run by default, and the tests of processes do not.
                let parts = [
                    "--workspace --all-targets",
                    "--package simshard-tests --test processes",
                ];
                let clippy = |part| {
                    let arguments = format!("clippy {part} --all-features -- -D warnings");
                    rust(workspace, tools, &arguments)
                };
                parts
                    .into_iter()
                    .map(clippy)
                    .collect::<anyhow::Result<String>>()
                    .into()
            }
            Self::Deny => deny::verify(workspace).into(),
            Self::Buf => buf::verify(workspace, tools).into(),
            Self::Alerts => alerts::verify(workspace, tools).into(),
            Self::Tests => {
                let hosts = tools.hosts();
                let mut outcome = rust_tests::verify(workspace);
                // The tests that need what is missing fail too. The others do not wait for it.
                if let Err(error) = hosts {
                    outcome.failed += 1;
                    outcome.note += &format!(", {error:#}");
                }
                outcome
            }
            Self::Demo => demo::verify(workspace).into(),
            Self::Examples => {
                let curl = tools.curl();
                let examples = || scripts::run(workspace, tools, "page_examples.py");
                curl.and_then(|()| examples()).into()
            }
            Self::Browser => browser::verify(workspace, tools).into(),
            Self::Recipes => scripts::run(workspace, tools, "published_recipes.py").into(),
            Self::Files => files::read(workspace, Page::Checked).into(),
            Self::Package => package::verify(workspace).into(),
            Self::Deploy => deploy::verify(workspace, tools).into(),
            Self::Backup => backup::verify(workspace).into(),
            Self::Js => js::verify(workspace).into(),
            Self::Aarch64 => aarch64::verify(workspace),
        }
    }
}

/// Has cargo check something with rustfmt or clippy.
fn rust(workspace: &Workspace, tools: &Tools, arguments: &str) -> anyhow::Result<String> {
    tools.rust()?;
    process::run(workspace.cargo().args(arguments.split(' ')))?;
    Ok(String::new())
}

/// Runs all the given steps, whichever fail, and prints the summary.
pub(crate) fn run(workspace: &Workspace, steps: &[Step]) -> ExitCode {
    let tools = Tools::prepare(workspace, steps);
    let mut rows = Vec::new();
    for step in steps {
        println!("\n== {} ==", step.name());
        let (start, processor) = (Instant::now(), process::processor_time());
        let outcome = step.verify(workspace, &tools);
        if outcome.failed > 0 {
            println!("{} FAILED: {}", step.name(), outcome.note);
        }
        rows.push(SummaryRow {
            name: step.name(),
            time: start.elapsed(),
            processor: process::processor_time().and_then(|now| now.checked_sub(processor?)),
            outcome,
        });
    }
    println!("{}", report::summary(&rows));
    if report::all_passed(&rows) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
