//! The frozen fingerprints of every recipe (`data/vectors.json`).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use md5::{Digest, Md5};
use serde_json::Value;
use simshard_simhash::{BitCounter, Fingerprint, Recipe, compute};

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

#[test]
fn every_recipe_meets_its_vectors() {
    for recipe in Recipe::ALL {
        for case in cases(recipe.name()) {
            let text = text(&case, "text");
            assert_eq!(
                recipe.fingerprint(text),
                fingerprint(&case),
                "{recipe} of {text:?}"
            );
        }
    }
}

#[test]
fn leonsim_distances_are_those_of_the_python_package() {
    for case in cases("leonsim-4 distances") {
        let a = Recipe::Leonsim4.fingerprint(text(&case, "a"));
        let b = Recipe::Leonsim4.fingerprint(text(&case, "b"));
        assert_eq!(
            u64::from(a.distance(b)),
            case["distance"].as_u64().unwrap(),
            "{case}"
        );
    }
}

#[test]
fn a_counter_reproduces_the_token_lists_of_the_python_package() {
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
    for case in cases("compute") {
        let hashes: Vec<u64> = case["hashes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|hash| hash.as_str().unwrap().parse().unwrap())
            .collect();
        let times = usize::try_from(case["times"].as_u64().unwrap()).unwrap();
        assert_eq!(compute(hashes.repeat(times)), fingerprint(&case), "{case}");
    }
}

/// A newer Unicode moves some word boundaries, and with them fingerprints that are frozen.
#[test]
fn words_v1_follows_unicode_17() {
    assert_eq!(unicode_segmentation::UNICODE_VERSION, (17, 0, 0));
}
