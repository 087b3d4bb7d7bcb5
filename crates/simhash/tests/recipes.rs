//! The frozen fingerprints of every recipe (`data/vectors.json`).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod level;

use md5::{Digest, Md5};
use serde_json::Value;
use simshard_simhash::{
    BitCounter, Fingerprint, Layout, Recipe, Tables, TextRecipe, Window, compute, features,
};

const VECTORS: &str = include_str!("data/vectors.json");

/// The cases of one group; it is an error to have none.
fn cases(group: &str) -> Vec<Value> {
    let vectors: Value = serde_json::from_str(VECTORS).expect("vectors.json is JSON");
    let cases = vectors[group]["cases"].as_array();
    let cases = cases.expect("every group has a list of cases");
    assert!(!cases.is_empty(), "{group}");
    cases.clone()
}

fn text<'a>(case: &'a Value, key: &str) -> &'a str {
    case[key].as_str().expect("a string")
}

fn fingerprint(case: &Value) -> Fingerprint {
    text(case, "fingerprint").parse().expect("a fingerprint")
}

/// The fingerprint of a text; null in the file stands for none.
fn maybe_fingerprint(case: &Value) -> Option<Fingerprint> {
    (!case["fingerprint"].is_null()).then(|| fingerprint(case))
}

/// Numbers that JSON cannot hold, as strings.
fn numbers(value: &Value) -> Vec<u64> {
    let strings = value.as_array().unwrap().iter();
    let numbers = strings.map(|number| number.as_str().unwrap().parse().unwrap());
    numbers.collect()
}

fn recipe(name: &str) -> TextRecipe {
    let recipe: Recipe = name.parse().unwrap();
    recipe.for_texts().unwrap()
}

fn meets_its_vectors(recipe: TextRecipe) {
    for case in cases(&recipe.to_string()) {
        let text = text(&case, "text");
        assert_eq!(
            recipe.fingerprint(text),
            maybe_fingerprint(&case),
            "{recipe} of {text:?}"
        );
    }
}

#[test]
fn every_listed_recipe_meets_its_vectors() {
    level::take();
    let listed = Recipe::LISTED.into_iter();
    let texts = listed.filter_map(|recipe| recipe.for_texts().ok());
    texts.for_each(meets_its_vectors);
}

#[test]
fn other_windows_meet_their_vectors() {
    level::take();
    for name in [
        "words-v2-1",
        "words-v2-3",
        "words-v2-255",
        "textdedup-1",
        "textdedup-5",
        "textdedup-9",
        "moz-shingle-2",
        "jenkins-window-7",
        "jenkins-window-7-compat",
        "jenkins-window-20",
    ] {
        meets_its_vectors(recipe(name));
    }
}

#[test]
fn features_meet_their_vectors() {
    level::take();
    for case in cases("features") {
        let pairs = case["features"].as_array().unwrap().iter();
        let features: Vec<(u64, u64)> = pairs
            .map(|pair| numbers(pair).try_into().unwrap())
            .map(|[hash, weight]: [u64; 2]| (hash, weight))
            .collect();
        assert_eq!(
            features::fingerprint(&features),
            Ok(fingerprint(&case)),
            "{case}"
        );
    }
}

/// One feature has its own hash for a fingerprint.
#[test]
fn moz_shingle_hashes_like_unsigned_hash() {
    level::take();
    for case in cases("moz unsigned_hash") {
        let made = recipe("moz-shingle-1").fingerprint(text(&case, "text"));
        assert_eq!(made, Some(fingerprint(&case)), "{case}");
    }
}

#[test]
fn jenkins_window_hashes_like_lookup3() {
    level::take();
    for case in cases("lookup3") {
        let of_seed_zero = case["pc"] == "00000000" && case["pb"] == "00000000";
        let text = text(&case, "text");
        if !of_seed_zero || text.is_empty() {
            continue;
        }
        let window = Window::new(u8::try_from(text.len()).unwrap()).unwrap();
        let word = |key| u64::from_str_radix(self::text(&case, key), 16).unwrap();
        let expected = Fingerprint(word("out_pc") << 32 | word("out_pb"));
        assert_eq!(
            TextRecipe::JenkinsWindow(window).fingerprint(text),
            Some(expected),
            "{case}"
        );
    }
}

#[test]
fn the_worked_example_meets_in_its_tables_and_leads_with_its_bytes() {
    level::take();
    for case in cases("worked example") {
        let number = |key: &str| u32::try_from(case[key].as_u64().unwrap()).unwrap();
        let tables = Tables::new(Layout::new(number("blocks"), number("distance")).unwrap());
        let stored = fingerprint(&case);
        let query: Fingerprint = text(&case, "query").parse().unwrap();

        let difference = stored.0 ^ query.0;
        let sharing = tables
            .iter()
            .filter(|table| table.shares_prefix(difference));
        let names: Vec<String> = sharing
            .map(|table| table.to_string().replace(' ', ""))
            .collect();
        assert_eq!(Value::from(names), case["matching_tables"]);

        for (key, of) in [
            ("leading_bytes_fingerprint", stored),
            ("leading_bytes_query", query),
        ] {
            for (block, byte) in case[key].as_object().unwrap() {
                let table = tables
                    .iter()
                    .find(|table| table.to_string().starts_with(block));
                assert_eq!(
                    Some(u64::from(table.unwrap().leading_byte(of))),
                    byte.as_u64()
                );
            }
        }
    }
}

#[test]
fn tables_permute_as_defined() {
    level::take();
    for case in cases("permutations") {
        let number = |key: &str| u32::try_from(case[key].as_u64().unwrap()).unwrap();
        let tables = Tables::new(Layout::new(number("blocks"), number("distance")).unwrap());
        let hexadecimal = |value: &Value| u64::from_str_radix(value.as_str().unwrap(), 16).unwrap();
        let original = Fingerprint(hexadecimal(&case["fingerprint"]));
        let expected: Vec<u64> = case["permuted"]
            .as_array()
            .unwrap()
            .iter()
            .map(hexadecimal)
            .collect();
        let permuted: Vec<u64> = tables.iter().map(|table| table.permute(original)).collect();
        assert_eq!(permuted, expected, "{case}");
    }
}

#[test]
fn leonsim_distances_are_those_of_the_python_package() {
    level::take();
    for case in cases("leonsim-4 distances") {
        let a = TextRecipe::Leonsim4.fingerprint(text(&case, "a")).unwrap();
        let b = TextRecipe::Leonsim4.fingerprint(text(&case, "b")).unwrap();
        assert_eq!(
            u64::from(a.distance(b)),
            case["distance"].as_u64().unwrap(),
            "{case}"
        );
    }
}

#[test]
fn a_counter_reproduces_the_token_lists_of_the_python_package() {
    level::take();
    for case in cases("leonsim tokens") {
        let mut counter = BitCounter::new();
        for token in case["tokens"].as_array().unwrap() {
            let digest: [u8; 16] = Md5::digest(token.as_str().unwrap()).into();
            counter.add(u128::from_be_bytes(digest) as u64);
        }
        assert_eq!(counter.fingerprint(), fingerprint(&case), "{case}");
    }
}

#[test]
fn compute_meets_the_vectors_of_simhash_cpp() {
    level::take();
    for case in cases("compute") {
        let hashes = numbers(&case["hashes"]);
        let times = usize::try_from(case["times"].as_u64().unwrap()).unwrap();
        assert_eq!(compute(hashes.repeat(times)), fingerprint(&case), "{case}");
    }
}

/// A newer Unicode has more letters and case mappings and moves some word boundaries, and with
/// them fingerprints that are frozen: so the libraries are pinned, and the compiler is watched.
#[test]
fn recipes_follow_unicode_17() {
    level::take();
    assert_eq!(unicode_segmentation::UNICODE_VERSION, (17, 0, 0));
    assert_eq!(unicode_properties::UNICODE_VERSION, (17, 0, 0));
    assert_eq!(unicode_normalization::UNICODE_VERSION, (17, 0, 0));
    assert_eq!(char::UNICODE_VERSION, (17, 0, 0));
}

#[test]
fn lower_levels_pass_these_tests() {
    level::run_lower("lower_levels_pass_these_tests");
}
