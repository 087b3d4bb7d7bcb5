//! The programs that measure, and the JSON lines that they print.

use std::cell::OnceCell;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use wait4::Wait4;

use super::secrets;
use crate::process;
use crate::steps::package;
use crate::tools::{self, PythonTools};
use crate::workspace::Workspace;

/// Lines of the made-up files.
const MILLION: u64 = 1_000_000;
const DENSE: u64 = 100_000;

/// The environment variable by which `simshard` takes a lower level.
const LEVEL: &str = "SIMSHARD_CPU";

/// The figures of one case of a benchmark.
#[derive(Clone)]
pub(crate) struct Figure(Value);

impl Figure {
    /// A number of the figure.
    pub(super) fn number(&self, field: &str) -> anyhow::Result<f64> {
        let number = self.0[field].as_f64();
        number.with_context(|| format!("the figure has no number `{field}`: {}", self.0))
    }
}

/// The figures of the cases of one run.
pub(super) struct Figures(Vec<Figure>);

impl Figures {
    pub(super) fn of(&self, case: &str) -> anyhow::Result<&Figure> {
        let figure = self.all_of(case).next();
        figure.with_context(|| format!("no figure of the case {case}"))
    }

    /// All figures of a case, in order.
    pub(super) fn all_of(&self, case: &str) -> impl Iterator<Item = &Figure> {
        self.0.iter().filter(move |figure| figure.0["case"] == case)
    }
}

/// The cost of a run.
#[derive(Clone, Copy)]
pub(super) struct Cost {
    pub(super) seconds: f64,
    pub(super) peak_bytes: f64,
}

impl Cost {
    /// As the values of two rows.
    pub(super) fn seconds_and_gigabytes(self) -> Vec<f64> {
        vec![self.seconds, self.peak_bytes / 1e9]
    }
}

/// The release build of `simshard`, FAISS in a Python environment, and the Python package in another.
pub(crate) struct Programs<'a> {
    workspace: &'a Workspace,
    /// The level of instructions that they may use at most.
    level: Option<String>,
    /// Where made-up input and output lie.
    folder: PathBuf,
    /// The environment of the Python package and its wheel, built when it is first measured.
    package: OnceCell<(PythonTools, PathBuf)>,
}

impl<'a> Programs<'a> {
    /// Makes a fresh folder for data.
    pub(crate) fn new(workspace: &'a Workspace, level: Option<String>) -> anyhow::Result<Self> {
        let folder = workspace.bench_data();
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        Ok(Self {
            workspace,
            level,
            folder,
            package: OnceCell::new(),
        })
    }

    /// Has all answers checked by another method: at n = 100,000, and of every text.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        println!("\n== checking all answers at n = 100,000 ==");
        for data in ["random", "clustered", "skewed"] {
            for arguments in [
                "bench engine --n 100000 --queries 100000 --threads 2 --check --data",
                "bench batch --n 100000 --case all_pairs --case clusters --threads 2 --check --data",
            ] {
                process::run(self.simshard().args(arguments.split(' ')).arg(data))?;
            }
        }
        let arguments =
            "bench cluster --n 100000 --queries 100000 --requests 20000 --alone 500 --check";
        let mut cluster = self.simshard();
        cluster.args(arguments.split(' '));
        process::run(cluster.arg("--folder").arg(&self.folder))?;
        for recipe in ["words-v3", "words-v2", "words-v1", "leonsim-3"] {
            let arguments = "bench batch --case hash --threads 2 --check --recipe";
            process::run(self.simshard().args(arguments.split(' ')).arg(recipe))?;
        }
        Ok(())
    }

    /// What cases of `simshard bench cluster` measure, in one run.
    pub(super) fn cluster(&self, cases: &[&str]) -> anyhow::Result<Figures> {
        self.cluster_with(&[], cases)
    }

    /// The same with further arguments.
    pub(super) fn cluster_with(
        &self,
        arguments: &[&str],
        cases: &[&str],
    ) -> anyhow::Result<Figures> {
        let mut command = self.simshard();
        command.args(["bench", "cluster", "--json", "--folder"]);
        command.arg(&self.folder).args(arguments);
        for case in cases {
            command.args(["--case", case]);
        }
        figures_of(&mut command)
    }

    /// The same with TLS on all connections: between clients, the router and nodes.
    pub(super) fn cluster_with_tls(&self, cases: &[&str]) -> anyhow::Result<Figures> {
        let secrets = secrets::make(self.workspace, &self.folder)?;
        self.cluster_with(&["--secrets", &secrets], cases)
    }

    /// What a case of it measures, with the records of shards in etcd.
    fn cluster_in_etcd(&self, case: &str) -> anyhow::Result<Figures> {
        let etcd = tools::etcd(self.workspace)?;
        let etcd = etcd.to_str().context("the path of etcd is no text")?;
        self.cluster_with(&["--etcd", etcd], &[case])
    }

    /// Some fields of what that case measures.
    pub(super) fn fields_in_etcd(&self, case: &str, fields: &[&str]) -> anyhow::Result<Vec<f64>> {
        let figures = self.cluster_in_etcd(case)?;
        let figure = figures.of(case)?;
        fields.iter().map(|field| figure.number(field)).collect()
    }

    /// The megabytes of real text a second that a recipe goes through on one thread.
    pub(super) fn hash(&self, recipe: &str) -> anyhow::Result<f64> {
        self.hash_on(recipe, "1")
    }

    /// The same on this number of threads.
    pub(super) fn hash_on(&self, recipe: &str, threads: &str) -> anyhow::Result<f64> {
        let figure = self.bench("batch", &["--recipe", recipe, "--threads", threads], "hash")?;
        figure.number("megabytes_per_second")
    }

    /// The queries a second of `find_all_bulk` on one thread with plain code alone.
    pub(super) fn find_all_in_plain_code(&self) -> anyhow::Result<f64> {
        let mut command = self.simshard();
        command.env(LEVEL, "scalar");
        command.args(["bench", "engine", "--json", "--case", "find_all_bulk"]);
        figure_of(&mut command, "find_all_bulk")?.number("per_second")
    }

    /// What one case of `simshard bench engine` or `batch` measures.
    pub(super) fn bench(
        &self,
        what: &str,
        arguments: &[&str],
        case: &str,
    ) -> anyhow::Result<Figure> {
        let mut command = self.simshard();
        command.args(["bench", what, "--json", "--case", case]);
        command.args(arguments);
        figure_of(&mut command, case)
    }

    /// What `simshard bench engine` measures in one run: inserts, and one case more.
    pub(super) fn engine(&self, arguments: &[&str], case: &str) -> anyhow::Result<Figures> {
        let mut command = self.simshard();
        command.args(["bench", "engine", "--json", "--case", case]);
        figures_of(command.args(arguments))
    }

    /// What a case of `simshard bench batch` measures whose documents lie in the folder of all made-up data.
    pub(super) fn in_folder(&self, case: &str) -> anyhow::Result<Figure> {
        let mut command = self.simshard();
        command.args(["bench", "batch", "--json", "--case", case, "--folder"]);
        figure_of(command.arg(&self.folder), case)
    }

    fn simshard(&self) -> Command {
        let mut command = Command::new(self.workspace.program("release"));
        self.workspace.at_root(&mut command);
        if let Some(level) = &self.level {
            command.env(LEVEL, level);
        }
        command
    }

    /// The best level of instructions of this machine.
    pub(crate) fn best_level(&self) -> anyhow::Result<String> {
        let mut command = self.simshard();
        command.env_remove(LEVEL);
        level_of(command)
    }

    /// The level of instructions that the program uses. One that was asked for must be that.
    pub(crate) fn level(&self) -> anyhow::Result<String> {
        let level = level_of(self.simshard())?;
        match &self.level {
            Some(asked) if *asked != level => bail!(
                "this machine has no {asked}: its best level is {level}, and `simshard --help` names those below"
            ),
            Some(_) | None => Ok(level),
        }
    }

    /// What a case of `tests/python/package_speed.py` measures.
    pub(super) fn python(&self, arguments: &[&str], threads: &str) -> anyhow::Result<Figure> {
        let mut command = self.package()?.0.command("python");
        self.workspace.at_root(&mut command);
        if let Some(level) = &self.level {
            command.env(LEVEL, level);
        }
        command.env("RAYON_NUM_THREADS", threads);
        let command = command.arg("tests/python/package_speed.py").args(arguments);
        figure_of(command, arguments.first().copied().unwrap_or_default())
    }

    /// What a case of `tests/python/spark_speed.py` measures.
    pub(super) fn spark(&self, arguments: &[&str]) -> anyhow::Result<Figure> {
        let engines = package::with_engines(self.workspace, &self.package()?.1)?;
        let mut command = engines.command("python");
        self.workspace.at_root(&mut command);
        let command = command.arg("tests/python/spark_speed.py").args(arguments);
        figure_of(command, arguments.first().copied().unwrap_or_default())
    }

    /// The size of the Python package.
    pub(super) fn wheel_bytes(&self) -> anyhow::Result<f64> {
        Ok(fs::metadata(&self.package()?.1)?.len() as f64)
    }

    fn package(&self) -> anyhow::Result<&(PythonTools, PathBuf)> {
        if let Some(package) = self.package.get() {
            return Ok(package);
        }
        let built = package::installed(self.workspace, "release")?;
        Ok(self.package.get_or_init(|| built))
    }

    /// How many times as many queries a second the Python package has as the engine itself, on the same data.
    pub(super) fn times_python_finds(&self) -> anyhow::Result<f64> {
        let (folder, engine) = self.saved_search("python")?;
        let folder = folder.to_str().context("the folder's name is no text")?;
        let python = self.python(&["find_all_bulk", "--data", folder], "1")?;
        ensure!(
            python.number("matches")? == engine.number("matches")?,
            "Python found {} matches, simshard {}",
            python.number("matches")?,
            engine.number("matches")?
        );
        Ok(python.number("per_second")? / engine.number("per_second")?)
    }

    /// How fast the clients of Python and Rust are with one server.
    pub(super) fn python_client(&self) -> anyhow::Result<Figure> {
        let (folder, _) = self.saved_search("python")?;
        let program = self.workspace.program("release");
        let [folder, program] = [&folder, &program].map(|path| path.to_str());
        let folder = folder.context("the folder's name is no text")?;
        let program = program.context("the program's name is no text")?;
        self.python(&["client", "--data", folder, "--program", program], "2")
    }

    /// What the engine measures of a search, and the folder to which it saves the data.
    fn saved_search(&self, name: &str) -> anyhow::Result<(PathBuf, Figure)> {
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder)?;
        let mut command = self.simshard();
        command.args(["bench", "engine", "--json", "--case", "find_all_bulk"]);
        let figure = figure_of(command.arg("--save").arg(&folder), "find_all_bulk")?;
        Ok((folder, figure))
    }

    /// How many times as many queries a second as FAISS, on the same data, one after the other.
    pub(super) fn times_faiss(&self) -> anyhow::Result<f64> {
        let (folder, ours) = self.saved_search("faiss")?;
        let mut theirs = tools::faiss(self.workspace)?.command("python");
        self.workspace.at_root(&mut theirs);
        theirs.args(["tests/python/faiss_search.py", "--data"]);
        let theirs = figure_of(theirs.arg(&folder), "faiss_range_search")?;
        ensure!(
            ours.number("matches")? == theirs.number("matches")?,
            "FAISS found {} matches, simshard {}",
            theirs.number("matches")?,
            ours.number("matches")?
        );
        Ok(ours.number("per_second")? / theirs.number("per_second")?)
    }

    /// `find-pairs` of random numbers, from a text file to a file.
    pub(super) fn find_all_of_a_file(&self) -> anyhow::Result<Cost> {
        let mut state = 1_u64;
        let numbers = (0..MILLION).map(|_| random(&mut state));
        let input = self.numbers("million.txt", numbers)?;
        self.process("find-pairs", &input)
    }

    /// `find-clusters` of one fingerprint, many times over.
    pub(super) fn find_clusters_of_equals(&self) -> anyhow::Result<Cost> {
        let input = self.numbers("equals.txt", (0..DENSE).map(|_| 0x0123_4567_89ab_cdef))?;
        self.process("find-clusters", &input)
    }

    /// `find-clusters` of fingerprints with the same 47 leading bits.
    pub(super) fn find_clusters_of_one_prefix(&self) -> anyhow::Result<Cost> {
        // An odd factor goes through all values of 17 bits, in no order.
        let low = |i: u64| i.wrapping_mul(0x1_5a4d) & 0x1_ffff;
        let numbers = (0..DENSE).map(|i| 0x0123_4567_89aa_0000 | low(i));
        let input = self.numbers("prefix.txt", numbers)?;
        self.process("find-clusters", &input)
    }

    fn process(&self, verb: &str, input: &Path) -> anyhow::Result<Cost> {
        let output = self.folder.join("output.json");
        let mut command = self.simshard();
        command.arg(verb).arg("--input").arg(input);
        command.arg("--output").arg(&output);
        let start = Instant::now();
        let used = command.spawn()?.wait4()?;
        let seconds = start.elapsed().as_secs_f64();
        process::check(&command, used.status)?;
        ensure!(output.is_file(), "{verb} left no output");
        Ok(Cost {
            seconds,
            peak_bytes: used.rusage.maxrss as f64,
        })
    }

    /// A file of decimal numbers, made once.
    fn numbers(&self, name: &str, numbers: impl Iterator<Item = u64>) -> anyhow::Result<PathBuf> {
        let path = self.folder.join(name);
        if path.exists() {
            return Ok(path);
        }
        let mut file = BufWriter::new(fs::File::create(&path)?);
        for number in numbers {
            writeln!(file, "{number}")?;
        }
        file.flush()?;
        Ok(path)
    }
}

/// SplitMix64: <https://prng.di.unimi.it/splitmix64.c>.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The level of instructions that a program uses.
fn level_of(mut simshard: Command) -> anyhow::Result<String> {
    simshard.args("bench engine --json --n 1000 --case insert_bulk".split(' '));
    let figure = figure_of(&mut simshard, "insert_bulk")?;
    let level = figure.0["level"].as_str();
    Ok(level.context("the figure has no level")?.to_owned())
}

/// The figure of one case among the JSON lines that a command prints.
fn figure_of(command: &mut Command, case: &str) -> anyhow::Result<Figure> {
    figures_of(command)?.of(case).cloned()
}

/// The JSON lines that a command prints.
fn figures_of(command: &mut Command) -> anyhow::Result<Figures> {
    let mut figures = Vec::new();
    let status = process::run_reading(command, |line| {
        figures.extend(serde_json::from_str(line).map(Figure).ok());
    })?;
    process::check(command, status)?;
    Ok(Figures(figures))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn one_case_is_picked_from_the_lines() {
        let script = r#"echo 'hello'; echo '{"case":"a","x":1}'; echo '{"case":"b","x":2.5}'"#;
        let figure = figure_of(&mut shell(script), "b").unwrap();
        assert_eq!(figure.number("x").unwrap(), 2.5);
        assert!(figure.number("y").is_err());
    }

    #[test]
    fn every_case_of_a_run_can_be_looked_at() {
        let script = r#"echo '{"case":"a","x":1}'; echo '{"case":"b","x":2}'"#;
        let figures = figures_of(&mut shell(script)).unwrap();
        assert_eq!(figures.of("b").unwrap().number("x").unwrap(), 2.0);
        assert_eq!(figures.of("a").unwrap().number("x").unwrap(), 1.0);
        assert!(figures.of("c").is_err());
    }

    #[test]
    fn a_missing_case_and_a_failed_command_are_errors() {
        assert!(figure_of(&mut shell("true"), "a").is_err());
        assert!(figure_of(&mut shell(r#"echo '{"case":"a"}'; exit 1"#), "a").is_err());
    }
}
