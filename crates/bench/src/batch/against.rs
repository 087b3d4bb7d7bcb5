//! Work that is measured by turns with other work, so that noise meets both, and figures are ratios of one run.

use std::borrow::Cow;
use std::fs::File;
use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use simshard_input::{Ids, parts};
use simshard_simhash::TextRecipe;

use super::{Settings, script::Script, text};
use crate::figure;

/// Each work is done this often.
const ROUNDS: usize = 5;

/// Characters of the made-up texts of a script.
const CHARACTERS: usize = 4_000_000;

#[derive(Serialize)]
struct JsonFigure {
    case: &'static str,
    recipe: String,
    megabytes_per_second: f64,
    read_megabytes_per_second: f64,
    /// The first rate against the second.
    against_reading: f64,
}

/// A line as `hash` reads it: with what it needs, and no copy where no escape asks for one.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    text: Cow<'a, str>,
}

/// A recipe over JSON lines, against reading them with `serde_json` and doing nothing with them.
pub(super) fn json(settings: &Settings) -> anyhow::Result<()> {
    let texts = text::collect(&settings.texts, settings.max_mib)?;
    let (mut hashing, mut reading) = (0.0, 0.0);
    for _ in 0..ROUNDS {
        reading += seconds(|| read(texts.path()))?;
        hashing += seconds(|| {
            let recipe = settings.recipe.into();
            Ok(parts(
                &texts.options(),
                Ids::Any,
                recipe,
                None,
                &mut |_| {},
            )?)
        })?;
    }
    let rate = |seconds: f64| texts.bytes as f64 / 1e6 * ROUNDS as f64 / seconds;
    let figure = JsonFigure {
        case: "hash_json",
        recipe: settings.recipe.to_string(),
        megabytes_per_second: rate(hashing),
        read_megabytes_per_second: rate(reading),
        against_reading: reading / hashing,
    };
    figure::print(&figure, settings.json, || {
        format!(
            "hash_json        {:8.1} MB/s  {:.2} x reading alone, {}",
            figure.megabytes_per_second, figure.against_reading, figure.recipe
        )
    })
}

/// Reads every line, and returns the bytes of ids and texts.
fn read(path: &Path) -> anyhow::Result<usize> {
    let mut lines = BufReader::with_capacity(1 << 20, File::open(path)?);
    let (mut line, mut bytes) = (Vec::new(), 0);
    while lines.read_until(b'\n', &mut line)? > 0 {
        let read: Line<'_> = serde_json::from_slice(&line)?;
        bytes += read.id.len() + read.text.len();
        line.clear();
    }
    Ok(bytes)
}

#[derive(Serialize)]
struct ScriptsFigure {
    case: &'static str,
    recipe: String,
    ascii_megabytes_per_second: f64,
    cyrillic_megabytes_per_second: f64,
    chinese_megabytes_per_second: f64,
    /// These rates against that of ASCII.
    cyrillic_against_ascii: f64,
    chinese_against_ascii: f64,
}

/// A recipe over made-up texts in memory, of three scripts by turns.
pub(super) fn scripts(settings: &Settings) -> anyhow::Result<()> {
    let scripts = [Script::Ascii, Script::Cyrillic, Script::Chinese];
    let texts = scripts.map(|script| script.texts(CHARACTERS, settings.seed));
    let mut spent = [0.0; 3];
    for _ in 0..ROUNDS {
        for (texts, spent) in texts.iter().zip(&mut spent) {
            *spent += seconds(|| Ok(hash(settings.recipe, texts)))?;
        }
    }
    let rate = |script: usize| {
        let bytes: usize = texts[script].iter().map(String::len).sum();
        bytes as f64 / 1e6 * ROUNDS as f64 / spent[script]
    };
    let [ascii, cyrillic, chinese] = [rate(0), rate(1), rate(2)];
    let figure = ScriptsFigure {
        case: "scripts",
        recipe: settings.recipe.to_string(),
        ascii_megabytes_per_second: ascii,
        cyrillic_megabytes_per_second: cyrillic,
        chinese_megabytes_per_second: chinese,
        cyrillic_against_ascii: cyrillic / ascii,
        chinese_against_ascii: chinese / ascii,
    };
    figure::print(&figure, settings.json, || {
        format!(
            "scripts          {ascii:8.1} MB/s of ASCII, {cyrillic:.1} of Cyrillic, {chinese:.1} of Chinese, {}",
            figure.recipe
        )
    })
}

fn hash(recipe: TextRecipe, texts: &[String]) -> usize {
    let hashed = texts
        .iter()
        .filter(|text| recipe.fingerprint(text).is_some());
    hashed.count()
}

fn seconds<T>(work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<f64> {
    let start = Instant::now();
    black_box(work()?);
    Ok(start.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_line_is_read_with_its_escapes() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"{\"id\":\"a\",\"text\":\"b\\nc\"}\n{\"id\":\"\",\"text\":\"\xc3\xa9\"}\n")
            .unwrap();
        assert_eq!(read(file.path()).unwrap(), 1 + 3 + 2);
    }
}
