//! The recipes of words, and their fast ways against the recipes read aloud.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::super::words_v1::{self, fingerprint};
use super::super::{words_v2, words_v3};
use super::classes::Classes;
use super::*;
use crate::{Fingerprint, TextRecipe};

/// Pieces that meet each other at every kind of word boundary.
const PIECES: [&str; 92] = [
    "、",
    "。",
    "“",
    "’",
    "‘",
    "№",
    "…",
    "—",
    "ﾊ",
    "Ｗｉ",
    "，",
    "．",
    "：９",
    "Ⱥ",
    "K",
    "Жук",
    "ＷＯ",
    "²",
    "Ⓜ",
    "©",
    "が",
    "ー",
    "ﾞ",
    "·",
    "‿",
    "\u{202f}",
    "𠀀",
    "٬",
    "a",
    "B",
    "word",
    "Word",
    "don't",
    "3.14",
    "1,000",
    "a.b",
    "a:b",
    "x_y",
    "_",
    "__",
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
    "हिन्दी",
    "\u{93e}",
    "العربية",
    "٣",
    "שמ\"ל",
    "ש",
    "🙂",
    "👩\u{200d}🚀",
    "\u{200d}",
    "Ⓜ",
    "🇩🇪",
    "🇩",
    "\u{ad}",
    "\u{a0}",
    "\u{2003}",
    "\u{3000}",
    "’",
    "\u{2028}",
    "q\u{307}\u{323}",
    "\u{1112}\u{1161}\u{11ab}",
    "\u{212b}",
    "\u{958}",
];

fn any_mixture(most: usize) -> impl Strategy<Value = String> {
    let pieces = prop::collection::vec(prop::sample::select(&PIECES[..]), 0..most);
    pieces.prop_map(|pieces| pieces.concat())
}

/// ASCII dense in everything that the rules look at.
fn any_ascii(most: usize) -> impl Strategy<Value = String> {
    let bytes = prop::sample::select(&b"aZq09_'.:,; -\n\"@[`{/"[..]);
    let bytes = prop::collection::vec(bytes, 0..most);
    bytes.prop_map(|bytes| bytes.into_iter().map(char::from).collect())
}

/// The windows of `words-v2` that are hashed each in its own way, and the longest.
const WINDOWS: [u8; 6] = [1, 2, 3, 4, 5, 255];

fn check(text: &str) -> Result<(), TestCaseError> {
    let expected = TextRecipe::WordsV1.fingerprint_by_definition(text);
    for level in Level::available() {
        let made = Some(words_v1::fingerprint_at(level, text));
        prop_assert_eq!(made, expected, "{:?} {:?}", level, text);
    }
    let expected = TextRecipe::WordsV3.fingerprint_by_definition(text);
    for level in Level::available() {
        let made = words_v3::fingerprint_at(level, text);
        prop_assert_eq!(made, expected, "words-v3 {:?} {:?}", level, text);
    }
    for window in WINDOWS.map(|size| Window::new(size).unwrap()) {
        let expected = TextRecipe::WordsV2(window).fingerprint_by_definition(text);
        for level in Level::available() {
            let made = words_v2::fingerprint_at(level, text, window);
            prop_assert_eq!(made, expected, "{} {:?} {:?}", window, level, text);
        }
    }
    Ok(())
}

fn words(text: &str) -> Vec<&str> {
    text.unicode_words().collect()
}

proptest! {
    #[test]
    fn mixed_scripts_hash_as_the_recipe_reads(text in any_mixture(60)) {
        check(&text)?;
    }

    #[test]
    fn any_text_hashes_as_the_recipe_reads(text in "\\PC{0,80}") {
        check(&text)?;
    }

    #[test]
    fn ascii_hashes_as_the_recipe_reads(text in "[ -~\n]{0,200}", dense in any_ascii(300)) {
        check(&text)?;
        check(&dense)?;
    }

    #[test]
    fn cut_texts_have_the_words_of_the_whole(text in any_mixture(12)) {
        for at in (1..text.len()).filter(|&at| ascii::is_cut(&text, at)) {
            let (before, after) = text.split_at(at);
            let parts = [words(before), words(after)].concat();
            prop_assert_eq!(parts, words(&text), "{:?} {:?}", before, after);
        }
        let classes = Classes::get();
        for (at, character) in text.char_indices().skip(1) {
            let (before, after) = text.split_at(at);
            let is_blank = before.ends_with(char::is_whitespace);
            if wide::is_cut(classes.of(character), is_blank) {
                let parts = [words(before), words(after)].concat();
                prop_assert_eq!(parts, words(&text), "{:?} {:?}", before, after);
            }
        }
    }

    #[test]
    fn common_scripts_hash_as_the_recipe_reads(text in any_common(120)) {
        check(&text)?;
    }
}

/// Characters of scripts that the table knows, and now and then another.
fn any_common(most: usize) -> impl Strategy<Value = String> {
    let character = prop_oneof![
        4 => prop::sample::select("абвЖЁӃñÀΣω .,:;'_7»—\"".chars().collect::<Vec<_>>()),
        4 => prop::sample::select("漢字ひらカター。、，．９Ａｂ 한글…\u{3000}".chars().collect::<Vec<_>>()),
        2 => (0..0x3100_u32).prop_filter_map("a character", char::from_u32),
        1 => (0xac00..0x11_0000_u32).prop_filter_map("a character", char::from_u32),
    ];
    prop::collection::vec(character, 0..most).prop_map(|text| text.into_iter().collect())
}

/// The hashes of all words, as the library and the standard library say.
fn hashes_slowly(text: &str) -> Vec<u64> {
    let mut lowered = String::new();
    words(text)
        .into_iter()
        .map(|word| hash_word(word, &mut lowered))
        .collect()
}

fn hashes(text: &str) -> Vec<u64> {
    let mut all = Vec::new();
    for_each_word(Level::best(), text, |words| all.extend_from_slice(words));
    all
}

/// Every character in every place that a rule looks at: alone, twice, and between characters of each class.
#[test]
fn every_character_is_of_its_class() {
    let many = [
        "a", "1", "ア", "_", "漢", "é", " ", "\n", "a.", "1,", "a:", "-", "\"", "\u{301}", "ж’",
    ];
    for character in '\0'..=char::MAX {
        // The table ends with the Basic Multilingual Plane.
        let around = if character > '\u{ffff}' {
            &many[..1]
        } else {
            &many[..]
        };
        let mut text = String::new();
        for around in around {
            let end: String = around.chars().rev().collect();
            text.extend([*around, &character.to_string()[..], &end]);
            text.extend([
                character, character, '.', character, ',', character, '\'', character,
            ]);
        }
        assert_eq!(hashes(&text), hashes_slowly(&text), "{character:?}");
    }
}

/// Which characters the table knows must not shrink unseen: these texts leave the library nothing to do.
#[test]
fn the_table_has_what_common_scripts_need() {
    let texts = [
        "Съешь же ещё этих мягких французских булок, да выпей чаю — № 7 «ЁЛКА» …",
        "快速的棕色狐狸跳过了懒狗。他说：“你好，世界！”（１２３）",
        "いろはにほへと　ちりぬるを、カタカナー・ﾊﾝｶｸ",
        "다람쥐 헌 쳇바퀴에 타고파.",
        "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία",
        "Zażółć gęślą jaźń; l’été, straße, đường phố",
        "نص حكيم له سر قاطع، ٣",
    ];
    for text in texts {
        let mut wide = WideWords::new();
        let (length, words) = wide.hashes(text);
        assert_eq!(
            (length, words),
            (text.len(), &hashes_slowly(text)[..]),
            "{text}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn long_texts_hash_as_the_recipe_reads(
        mixed in any_mixture(2000),
        dense in any_ascii(5000),
        accent in 0..5000_usize,
    ) {
        check(&mixed)?;
        check(&dense)?;
        let (before, after) = dense.split_at(accent.min(dense.len()));
        check(&[before, "é", after].concat())?;
    }
}

/// Each rule that joins ASCII, and each that keeps it apart, astride every place of a block.
#[test]
fn every_rule_holds_across_the_borders_of_blocks() {
    let joined = [
        "a.b", "a'b", "a:b", "1.2", "1'2", "1,2", "1;2", "a1", "1a", "a_1", "_a", "1_",
    ];
    let apart = [
        "a,b", "a;b", "1:2", "a.1", "1.a", "a..b", "1,,2", "a-b", "_._", "_.a", "a\"b", "._.",
    ];
    for sample in joined.into_iter().chain(apart) {
        for pad in 50..70 {
            for filler in ["-", "a", "1", "_", " "] {
                let text = [&filler.repeat(pad), sample, " b.c 1.2"].concat();
                check(&text).unwrap();
            }
        }
    }
}

#[test]
fn words_longer_than_any_buffer_hash_as_the_recipe_reads() {
    for word in ["a", "A.", "1,", "_", "a_"] {
        for count in [17, 63, 64, 65, 500, 1023, 1024, 1025, 4000] {
            let long = word.repeat(count);
            check(&long).unwrap();
            check(&["one é two ", &long, " three é four five ", &long].concat()).unwrap();
        }
    }
}

#[test]
fn a_word_repeated_through_more_than_half_of_a_text_decides_its_fingerprint() {
    let spam = fingerprint("spam spam spam spam");
    let repeated = "spam ".repeat(40);
    for rest in ["", "one two three four five", "and something else entirely"] {
        assert_eq!(fingerprint(&[&repeated, rest].concat()), spam, "{rest}");
    }
    assert_ne!(fingerprint("spam spam spam spam one two three four"), spam);
}

#[test]
fn case_spacing_and_punctuation_do_not_matter() {
    let plain = fingerprint("the quick brown fox jumps over the lazy dog");
    let dressed = fingerprint("The QUICK brown fox — jumps\n\tover (the lazy) dog!");
    assert_eq!(plain, dressed);
}

#[test]
fn a_text_without_words_has_fingerprint_zero() {
    for text in ["", " \n", "?!… — 🙂"] {
        assert_eq!(fingerprint(text), Fingerprint(0), "{text:?}");
    }
}

#[test]
fn one_to_three_words_make_one_feature() {
    let hash = |word: &str| xxh3_64(word.as_bytes()).to_le_bytes();
    assert_eq!(fingerprint("One").0, xxh3_64(&hash("one")));
    let three = [hash("one"), hash("two"), hash("three")].concat();
    assert_eq!(fingerprint("one two three").0, xxh3_64(&three));
}

#[test]
fn lower_case_looks_at_no_neighbours() {
    assert_eq!(fingerprint("ΟΔΟΣ"), fingerprint("οδοσ"));
    assert_ne!(fingerprint("ΟΔΟΣ"), fingerprint("οδος"));
    assert_eq!(fingerprint("İ"), fingerprint("i\u{307}"));
}

/// Where the boundaries deviate from UAX #29; frozen, because stored fingerprints have them.
#[test]
fn an_emoji_behind_a_joiner_is_no_letter_and_keeps_the_mark_before_it() {
    let cut = |text| words(text).join("|");
    assert_eq!(cut("🙁\u{200d}Ⓜx"), "🙁\u{200d}Ⓜ|x");
    assert_eq!(cut("🙁\u{200d}Ⓜ'x"), "🙁\u{200d}Ⓜ|x");
    assert_eq!(cut("x'\u{200d}😏"), "x'\u{200d}😏");
    assert_eq!(cut("9.\u{200d}😏9"), "9.\u{200d}😏|9");
    assert_eq!(cut("🙁Ⓜx x'😏"), "Ⓜx|x");
}
