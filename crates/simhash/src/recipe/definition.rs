//! The text recipes read aloud: a list of words or runs, a list of hashes, and 64 sums or minima.
//!
//! Nothing here is quick. It is what the quick ways are held against, in tests and benchmarks, and
//! the shortest answer to what a recipe does.

use std::collections::BTreeSet;

use md5::{Digest, Md5};
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;
use xxhash_rust::xxh3::xxh3_64;

use super::{TextRecipe, Window, jenkins_window, leonsim, lookup3, textdedup};
use crate::Fingerprint;

/// The fingerprint of a text by the recipe's own words.
pub(super) fn fingerprint(recipe: TextRecipe, text: &str) -> Option<Fingerprint> {
    let hashes = match recipe {
        TextRecipe::WordsV3 => return words_v3(text),
        TextRecipe::WordsV2(window) => return words_v2(text, window),
        TextRecipe::TextDedup(_) if text.chars().count() < textdedup::FEWEST => return None,
        TextRecipe::TextDedup(window) => text_dedup(text, window),
        TextRecipe::WordsV1 => word_runs(text, 4),
        TextRecipe::Leonsim3 => leonsim(text, 3),
        TextRecipe::Leonsim4 => leonsim(text, 4),
        TextRecipe::MozShingle(window) => moz_shingle(text, window),
        TextRecipe::JenkinsWindow(window) => jenkins_window(text, window),
        TextRecipe::JenkinsWindowCompat(window) => jenkins_window_compat(text, window),
    };
    Some(majority(&hashes))
}

/// A bit is 1 if strictly more hashes have it than lack it.
fn majority(hashes: &[u64]) -> Fingerprint {
    let mut value = 0;
    for bit in 0..64 {
        let ones = hashes.iter().filter(|&hash| hash >> bit & 1 == 1).count();
        value |= u64::from(ones > hashes.len() - ones) << bit;
    }
    Fingerprint(value)
}

fn word_runs(text: &str, size: usize) -> Vec<u64> {
    let pieces = text.split_word_bounds();
    let words = pieces.filter(|piece| piece.contains(char::is_alphanumeric));
    let hash = |word: &str| {
        let lowered: String = word.chars().flat_map(char::to_lowercase).collect();
        xxh3_64(lowered.as_bytes()).to_le_bytes()
    };
    let hashes: Vec<[u8; 8]> = words.map(hash).collect();
    let runs = hashes.windows(hashes.len().clamp(1, size));
    runs.map(|run| xxh3_64(&run.concat())).collect()
}

fn words_v2(text: &str, window: Window) -> Option<Fingerprint> {
    let normalized: String = text.nfc().collect();
    let features = BTreeSet::from_iter(word_runs(&normalized, window.size()));
    if features.is_empty() {
        return None;
    }
    let mut bins: [Option<u64>; 64] = [None; 64];
    for round in 0..128 {
        let before = bins;
        for &feature in &features {
            let mixed = match round {
                0 => feature,
                _ => splitmix64(feature, round),
            };
            let bin = match round {
                0..64 => mixed >> 58,
                _ => round - 64,
            } as usize;
            let value = mixed % (1 << 58);
            if before[bin].is_none() {
                bins[bin] = Some(bins[bin].map_or(value, |least| least.min(value)));
            }
        }
    }
    let bits = bins.iter().flatten().map(|least| least % 2);
    Some(Fingerprint(
        bits.rev().fold(0, |value, bit| value * 2 + bit),
    ))
}

fn words_v3(text: &str) -> Option<Fingerprint> {
    let of_words = words_v2(text, Window::ONE)?;
    let of_runs = words_v2(text, Window::TWO)?;
    let mut value = 0;
    for bit in 0..64 {
        let from = if bit % 4 == 0 { of_words } else { of_runs };
        value |= from.0 & (1 << bit);
    }
    Some(Fingerprint(value))
}

/// SplitMix64's finalizer of feature + round times its constant, modulo 2^64.
fn splitmix64(feature: u64, round: u64) -> u64 {
    let sum = u128::from(feature) + u128::from(round) * 0x9E37_79B9_7F4A_7C15;
    let mut mixed = sum as u64;
    for (shift, factor) in [(30, 0xBF58_476D_1CE4_E5B9), (27, 0x94D0_49BB_1331_11EB)] {
        mixed = (mixed ^ mixed >> shift).wrapping_mul(factor);
    }
    mixed ^ mixed >> 31
}

fn text_dedup(text: &str, window: Window) -> Vec<u64> {
    let characters: Vec<char> = text.chars().collect();
    let runs = characters.windows(window.size().min(characters.len()));
    let lowered = runs.map(|run| run.iter().collect::<String>().to_lowercase());
    let distinct: BTreeSet<String> = lowered.collect();
    distinct.iter().map(|run| xxh3_64(run.as_bytes())).collect()
}

fn leonsim(text: &str, width: usize) -> Vec<u64> {
    let lowered = text.to_lowercase();
    let kept: Vec<char> = lowered
        .chars()
        .filter(|&one| leonsim::is_kept(one))
        .collect();
    if kept.len() <= width {
        return vec![md5(&kept.iter().collect::<String>()) as u64];
    }
    let runs = kept
        .windows(width)
        .map(|run| run.iter().collect::<String>());
    runs.map(|run| md5(&run) as u64).collect()
}

fn moz_shingle(text: &str, window: Window) -> Vec<u64> {
    let tokens: Vec<&str> = text.split(' ').collect();
    let shingles = tokens.windows(window.size()).map(|tokens| tokens.join(" "));
    shingles
        .map(|shingle| (md5(&shingle) >> 64) as u64)
        .collect()
}

fn md5(text: &str) -> u128 {
    u128::from_be_bytes(Md5::digest(text).into())
}

fn jenkins_window(text: &str, window: Window) -> Vec<u64> {
    match text.len() {
        0 => Vec::new(),
        length => byte_windows(text, window.size().min(length)),
    }
}

fn jenkins_window_compat(text: &str, window: Window) -> Vec<u64> {
    let mut hashes = byte_windows(text, window.size());
    hashes.pop();
    hashes
}

fn byte_windows(text: &str, size: usize) -> Vec<u64> {
    let windows = text.as_bytes().windows(size);
    let hashes = windows.map(|window| lookup3::hash(window, (0, 0)));
    hashes.map(jenkins_window::joined).collect()
}
