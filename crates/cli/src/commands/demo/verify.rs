//! A linear scan over all pairs of files, and the comparison of every answer of the
//! cluster with it.

use anyhow::ensure;
use rayon::prelude::*;
use simshard_simhash::Fingerprint;

use super::search::NearFiles;
use super::walk::Files;
use crate::say;

/// The result of comparing answers with the linear scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    /// Other files near this one, found and expected.
    both: u64,
    missed: u64,
    extra: u64,
}

impl Tally {
    fn plus(self, other: Self) -> Self {
        Self {
            both: self.both + other.both,
            missed: self.missed + other.missed,
            extra: self.extra + other.extra,
        }
    }
}

/// Prints the last line of the demo.
pub(super) fn verify(files: &Files, answers: &NearFiles, distance: u32) -> anyhow::Result<()> {
    let tally = tally(&files.fingerprints, answers, distance);
    // Each pair is in the answers of both files.
    let pairs = tally.both / 2;
    let Tally { missed, extra, .. } = tally;
    say::print(format!(
        "verified: {pairs} pairs, {missed} missed, {extra} extra"
    ))?;
    ensure!(
        tally.missed == 0 && tally.extra == 0,
        "the answers are wrong"
    );
    Ok(())
}

fn tally(fingerprints: &[Fingerprint], answers: &NearFiles, distance: u32) -> Tally {
    assert_eq!(fingerprints.len(), answers.len(), "an answer for each file");
    let files = (0..fingerprints.len()).into_par_iter();
    files
        .map(|file| {
            let expected = linear_scan(fingerprints, fingerprints[file], distance);
            compare(file as u32, &expected, &answers[file])
        })
        .reduce(Tally::default, Tally::plus)
}

/// The files near a fingerprint with their distances, ascending.
fn linear_scan(all: &[Fingerprint], query: Fingerprint, distance: u32) -> Vec<(u32, u32)> {
    let near = |(number, other): (u32, &Fingerprint)| {
        let apart = query.distance(*other);
        (apart <= distance).then_some((number, apart))
    };
    (0..).zip(all).filter_map(near).collect()
}

/// Compares a sorted answer with the sorted truth. A repeated match is extra.
fn compare(file: u32, expected: &[(u32, u32)], found: &[(u32, u32)]) -> Tally {
    let mut tally = Tally::default();
    let (mut e, mut f) = (0, 0);
    loop {
        match (expected.get(e), found.get(f)) {
            (None, None) => return tally,
            (Some(wanted), Some(given)) if wanted == given => {
                tally.both += u64::from(wanted.0 != file);
                (e, f) = (e + 1, f + 1);
            }
            (Some(wanted), given) if given.is_none_or(|given| wanted < given) => {
                tally.missed += 1;
                e += 1;
            }
            _ => {
                tally.extra += 1;
                f += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [Fingerprint; 4] = [
        Fingerprint(0),
        Fingerprint(1),
        Fingerprint(0),
        Fingerprint(u64::MAX),
    ];

    fn truth() -> NearFiles {
        let scan = |&query| linear_scan(&FILES, query, 3);
        FILES.iter().map(scan).collect()
    }

    #[test]
    fn right_answers_pass() {
        let expected = Tally {
            both: 6,
            missed: 0,
            extra: 0,
        };
        assert_eq!(tally(&FILES, &truth(), 3), expected);
    }

    #[test]
    fn every_kind_of_wrong_answer_is_noticed() {
        let mut missing = truth();
        missing[0].pop();
        assert_eq!(
            tally(&FILES, &missing, 3),
            Tally {
                both: 5,
                missed: 1,
                extra: 0
            }
        );

        let mut repeated = truth();
        repeated[1].insert(0, (0, 1));
        assert_eq!(
            tally(&FILES, &repeated, 3),
            Tally {
                both: 6,
                missed: 0,
                extra: 1
            }
        );

        let mut foreign = truth();
        foreign[3].insert(0, (1, 3));
        assert_eq!(
            tally(&FILES, &foreign, 3),
            Tally {
                both: 6,
                missed: 0,
                extra: 1
            }
        );

        let mut misjudged = truth();
        misjudged[0][1].1 = 2;
        assert_eq!(
            tally(&FILES, &misjudged, 3),
            Tally {
                both: 5,
                missed: 1,
                extra: 1
            }
        );

        let mut lost_itself = truth();
        lost_itself[3].clear();
        assert_eq!(
            tally(&FILES, &lost_itself, 3),
            Tally {
                both: 6,
                missed: 1,
                extra: 0
            }
        );
    }
}
