//! Every text recipe over texts of any characters, against the recipe read aloud.
//!
//! A few thousand cases each, or a million with `SIMSHARD_LONG`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod level;

use md5::{Digest, Md5};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use simshard_simhash::{Fingerprint, Recipe, TextRecipe, Window, compute};
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};
use unicode_segmentation::UnicodeSegmentation;
use xxhash_rust::xxh3::xxh3_64;

/// Pieces that meet at every kind of boundary between words, tokens and characters.
const PIECES: &[&str] = &[
    "a",
    "B",
    "word",
    "don't",
    "3.14",
    "1,000",
    "a.b",
    "x_y",
    "_",
    "'",
    ".",
    ",",
    ":",
    ";",
    "\"",
    "7",
    "-",
    "(",
    " ",
    " ",
    "  ",
    "\t",
    "\r",
    "\n",
    "\r\n",
    "\x0b",
    "\0",
    "\x7f",
    "é",
    "E\u{301}",
    "\u{301}",
    "ß",
    "ẞ",
    "İ",
    "Σ",
    "ΟΔΟΣ",
    "жук",
    "你好",
    "ひらカタ",
    "한글",
    "\u{1112}\u{1161}",
    "हिन्दी",
    "\u{93e}",
    "العربية",
    "٣",
    "שמ\"ל",
    "🙂",
    "👩\u{200d}🚀",
    "\u{200d}",
    "Ⓜ",
    "🇩🇪",
    "🇩",
    "\u{ad}",
    "\u{a0}",
    "\u{2003}",
    "\u{feff}",
    "\u{2028}",
    "𐐀",
    "\u{e0001}",
    "\u{10FFFF}",
    "the quick brown fox jumps over the lazy dog. ",
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-",
];

fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        12 => select(PIECES).prop_map(str::to_owned),
        3 => character().prop_map(String::from),
        1 => (select(PIECES), 0..90_usize).prop_map(|(piece, times)| piece.repeat(times)),
    ];
    vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Any character, the first of them often.
fn character() -> impl Strategy<Value = char> {
    (any::<u32>(), 0..22_u32).prop_map(|(any, bits)| {
        let code = any & ((1 << bits) - 1);
        char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
    })
}

fn cases() -> ProptestConfig {
    ProptestConfig::with_cases(match std::env::var_os("SIMSHARD_LONG") {
        Some(_) => 1_000_000,
        None => 3_000,
    })
}

fn for_each_text(recipe: TextRecipe, test: impl Fn(&str)) {
    level::take();
    assert!(Recipe::LISTED.contains(&recipe.into()), "{recipe}");
    proptest!(cases(), |(text in texts())| test(&text));
}

fn run(recipe: TextRecipe, slowly: fn(&str, TextRecipe) -> Option<Fingerprint>) {
    for_each_text(recipe, |text| {
        let fast = recipe.fingerprint(text);
        if let Some(expected) = slowly(text, recipe) {
            assert_eq!(fast, Some(expected), "{recipe}");
        }
    });
}

fn run_by_definition(recipe: TextRecipe) {
    for_each_text(recipe, |text| {
        let expected = recipe.fingerprint_by_definition(text);
        assert_eq!(recipe.fingerprint(text), expected, "{recipe}");
    });
}

fn md5(bytes: &[u8]) -> u128 {
    let digest: [u8; 16] = Md5::digest(bytes).into();
    u128::from_be_bytes(digest)
}

/// The runs of `width` neighbours; all of them, where there are fewer.
fn runs_or_all<T>(of: &[T], width: usize) -> impl Iterator<Item = &[T]> {
    of.windows(width.min(of.len()).max(1))
}

fn words_slowly(text: &str, _: TextRecipe) -> Option<Fingerprint> {
    let words = text.split_word_bounds();
    let words = words.filter(|piece| piece.contains(char::is_alphanumeric));
    let hashes: Vec<[u8; 8]> = words
        .map(|word| {
            let lowered: String = word.chars().flat_map(char::to_lowercase).collect();
            xxh3_64(lowered.as_bytes()).to_le_bytes()
        })
        .collect();
    Some(compute(
        runs_or_all(&hashes, 4).map(|run| xxh3_64(run.as_flattened())),
    ))
}

fn leonsim_slowly(text: &str, recipe: TextRecipe) -> Option<Fingerprint> {
    let width = if recipe == TextRecipe::Leonsim3 { 3 } else { 4 };
    let is_kept = |character: &char| {
        let group = character.general_category_group();
        let is_named = [GeneralCategoryGroup::Letter, GeneralCategoryGroup::Number];
        *character == '_' || is_named.contains(&group)
    };
    let kept: Vec<char> = text.to_lowercase().chars().filter(is_kept).collect();
    let hash = |run: &[char]| md5(run.iter().collect::<String>().as_bytes()) as u64;
    Some(if kept.is_empty() {
        compute([hash(&[])])
    } else {
        compute(runs_or_all(&kept, width).map(hash))
    })
}

fn moz_slowly(text: &str, _: TextRecipe) -> Option<Fingerprint> {
    let tokens: Vec<&str> = text.split(' ').collect();
    let shingles = tokens.windows(4).map(|tokens| tokens.join(" "));
    Some(compute(
        shingles.map(|shingle| (md5(shingle.as_bytes()) >> 64) as u64),
    ))
}

/// One window's fingerprint is its hash, so a text of windows that are texts is its windows.
fn jenkins_slowly(text: &str, recipe: TextRecipe) -> Option<Fingerprint> {
    if !text.is_ascii() {
        return None;
    }
    let width = text.len().clamp(1, 5);
    let windows = (0..=text.len().checked_sub(width)?).map(|at| &text[at..at + width]);
    let hash = |window| recipe.fingerprint(window).unwrap().0;
    Some(compute(windows.map(hash)))
}

/// With another character after it, a text loses no window.
fn compat_slowly(text: &str, recipe: TextRecipe) -> Option<Fingerprint> {
    let window = Window::new(5).unwrap();
    let longer = format!("{text}x");
    assert_eq!(recipe, TextRecipe::JenkinsWindowCompat(window));
    if text.len() >= window.size() {
        let whole = TextRecipe::JenkinsWindow(window).fingerprint(text);
        assert_eq!(recipe.fingerprint(&longer), whole);
        return None;
    }
    Some(Fingerprint(0))
}

#[test]
fn words_v3() {
    run_by_definition(TextRecipe::WordsV3);
}

#[test]
fn words_v2() {
    run_by_definition(TextRecipe::WordsV2(Window::new(2).unwrap()));
}

#[test]
fn text_dedup() {
    run_by_definition(TextRecipe::TextDedup(Window::new(3).unwrap()));
}

#[test]
fn words_v1() {
    run(TextRecipe::WordsV1, words_slowly);
}

#[test]
fn leonsim_3() {
    run(TextRecipe::Leonsim3, leonsim_slowly);
}

#[test]
fn leonsim_4() {
    run(TextRecipe::Leonsim4, leonsim_slowly);
}

#[test]
fn moz_shingle() {
    run(TextRecipe::MozShingle(Window::new(4).unwrap()), moz_slowly);
}

#[test]
fn jenkins_window() {
    run(
        TextRecipe::JenkinsWindow(Window::new(5).unwrap()),
        jenkins_slowly,
    );
}

#[test]
fn jenkins_window_compat() {
    run(
        TextRecipe::JenkinsWindowCompat(Window::new(5).unwrap()),
        compat_slowly,
    );
}

/// A recipe that is listed and has no target here is an error.
#[test]
fn every_listed_text_recipe_has_a_target() {
    let texts = Recipe::LISTED
        .into_iter()
        .filter(|recipe| recipe.for_texts().is_ok());
    assert_eq!(texts.count(), 9);
}

#[test]
fn lower_levels_pass_these_tests() {
    level::run_lower("lower_levels_pass_these_tests");
}
