//! The promised figures, one row each, and their measurements.
//!
//! A promise stays as it was made, whether it is met or not.

mod batch;
mod cluster;
mod engine;
mod engines;
mod failures;
mod python;
mod reshaping;
mod secured;

use std::time::Instant;

use anyhow::{Context, ensure};

use super::figures::Programs;
pub(super) use cluster::grown;

/// Fingerprints of the large sets.
const MILLION: &str = "1000000";

/// A promised figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Target {
    pub(crate) fn is_met_by(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
        }
    }
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Millions a second.
    Millions,
    /// Items a second.
    PerSecond,
    Seconds,
    Milliseconds,
    Gigabytes,
    Bytes,
    MegabytesASecond,
    /// A number of things.
    Count,
    /// One figure divided by another of the same runs.
    Times,
}

/// One promise.
#[derive(Clone, Copy)]
pub(crate) struct Promise {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    target: Target,
    /// Levels of instructions of which another figure is promised.
    levels: &'static [(&'static str, Target)],
    pub(crate) unit: Unit,
}

impl Promise {
    /// With other targets at these levels.
    const fn at_levels(self, levels: &'static [(&'static str, Target)]) -> Self {
        Self { levels, ..self }
    }

    /// What is promised at a level of instructions.
    pub(crate) fn target(&self, level: &str) -> Target {
        let other = self.levels.iter().find(|(name, _)| *name == level);
        other.map_or(self.target, |&(_, target)| target)
    }
}

/// A row and what each run gave.
pub(crate) struct Measured {
    pub(crate) row: Promise,
    pub(crate) values: Vec<f64>,
    /// How long a run took, with the rows that it shares.
    pub(crate) seconds: f64,
}

impl Measured {
    /// The middle value, or the mean of the two in the middle.
    pub(crate) fn median(&self) -> f64 {
        let mut values = self.values.clone();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        if values.len().is_multiple_of(2) {
            return f64::midpoint(values[middle - 1], values[middle]);
        }
        values[middle]
    }
}

/// What is measured in one go. All but the first takes long, and an option asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// Corpora in one process, files, and a cluster of nodes that stay.
    Steady,
    /// Clusters with replicas: nodes fail, and shards move.
    Replicas,
    /// A cluster that grows.
    Scaling,
    /// Jobs on distributed engines.
    Engines,
}

/// The rows that a run gives a value each.
pub(crate) struct Case {
    pub(crate) rows: Vec<Promise>,
    /// Heavy cases run fewer times.
    is_heavy: bool,
    /// When it is measured without being named.
    pub(crate) group: Group,
    measure: fn(&Programs) -> anyhow::Result<Vec<f64>>,
}

impl Case {
    fn light(rows: &[Promise], measure: fn(&Programs) -> anyhow::Result<Vec<f64>>) -> Self {
        Self {
            rows: rows.to_vec(),
            is_heavy: false,
            group: Group::Steady,
            measure,
        }
    }

    fn heavy(rows: &[Promise], measure: fn(&Programs) -> anyhow::Result<Vec<f64>>) -> Self {
        Self {
            is_heavy: true,
            ..Self::light(rows, measure)
        }
    }

    fn of_scaling(rows: &[Promise], measure: fn(&Programs) -> anyhow::Result<Vec<f64>>) -> Self {
        Self {
            group: Group::Scaling,
            ..Self::heavy(rows, measure)
        }
    }

    /// Measures `runs` times, a heavy case half as many.
    pub(crate) fn measure(self, programs: &Programs, runs: usize) -> anyhow::Result<Vec<Measured>> {
        let runs = if self.is_heavy {
            runs.div_ceil(2)
        } else {
            runs
        };
        ensure!(runs > 0, "a benchmark needs a run");
        let measured = |&row| Measured {
            row,
            values: Vec::new(),
            seconds: 0.0,
        };
        let mut measured: Vec<Measured> = self.rows.iter().map(measured).collect();
        let started = Instant::now();
        for _ in 0..runs {
            let values = (self.measure)(programs).with_context(|| self.names())?;
            ensure!(values.len() == measured.len(), "not a value for each row");
            for (one, value) in measured.iter_mut().zip(values) {
                one.values.push(value);
            }
        }
        let seconds = started.elapsed().as_secs_f64() / runs as f64;
        for one in &mut measured {
            one.seconds = seconds;
        }
        Ok(measured)
    }

    /// The names of its rows.
    pub(crate) fn names(&self) -> String {
        let names: Vec<_> = self.rows.iter().map(|row| row.name).collect();
        names.join(", ")
    }
}

/// Every promise, in the order of the page.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = engine::cases();
    cases.extend(batch::cases());
    cases.extend(cluster::cases());
    cases.extend(secured::cases());
    cases.extend(python::cases());
    let of_replicas = cluster::replica_cases().into_iter();
    let of_replicas = of_replicas.chain(failures::cases());
    let of_replicas = of_replicas.chain(reshaping::cases());
    cases.extend(of_replicas.map(|case| Case {
        group: Group::Replicas,
        ..case
    }));
    let of_engines = engines::cases().into_iter();
    cases.extend(of_engines.map(|case| Case {
        group: Group::Engines,
        ..case
    }));
    cases
}

const fn row(name: &'static str, what: &'static str, target: Target, unit: Unit) -> Promise {
    Promise {
        name,
        what,
        target,
        levels: &[],
        unit,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_row_has_a_name_of_its_own() {
        let rows: Vec<Promise> = cases().into_iter().flat_map(|case| case.rows).collect();
        let names: HashSet<_> = rows.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), rows.len());
    }

    #[test]
    fn bounds_include_themselves() {
        assert!(Target::AtLeast(2.0).is_met_by(2.0));
        assert!(!Target::AtLeast(2.0).is_met_by(1.9));
        assert!(Target::AtMost(2.0).is_met_by(2.0));
        assert!(!Target::AtMost(2.0).is_met_by(2.1));
    }

    #[test]
    fn a_level_may_have_a_target_of_its_own() {
        const WIDER: &[(&str, Target)] = &[("avx512bw", Target::AtLeast(4.0))];
        let row = row("a", "b", Target::AtLeast(3.0), Unit::Times).at_levels(WIDER);
        assert_eq!(row.target("avx2"), Target::AtLeast(3.0));
        assert_eq!(row.target("avx512bw"), Target::AtLeast(4.0));
    }

    #[test]
    fn the_median_is_the_middle_of_what_was_measured() {
        let row = cases()[0].rows[0];
        let median = |values: &[f64]| {
            Measured {
                row,
                values: values.to_vec(),
                seconds: 0.0,
            }
            .median()
        };
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
