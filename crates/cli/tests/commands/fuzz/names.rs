//! What is given as an argument or in a request: names, numbers and the like.

use proptest::prelude::*;
use simshard_cli::args::Blocks;
use simshard_cluster::CorpusName;
use simshard_simhash::{Fingerprint, Recipe};
use simshard_topology::{CorpusUid, NodeId};

use super::cases;
use super::splice::spliced_text;

#[test]
fn recipes() {
    let names = &[
        "words-v1",
        "words-v2",
        "words-v3",
        "textdedup-",
        "leonsim-3",
        "leonsim-",
        "moz-shingle-",
        "jenkins-window-",
        "-compat",
        "features",
        "0",
        "1",
        "5",
        "255",
        "256",
        "+",
        "-",
        " ",
        "٣",
    ];
    proptest!(cases(), |(name in spliced_text(names, 3))| {
        match name.parse::<Recipe>() {
            Ok(recipe) => assert_eq!(recipe.to_string(), name),
            Err(error) => assert_eq!(error.name, name),
        }
    });
}

const NUMBERS: &[&str] = &[
    "0",
    "7",
    "00",
    "18446744073709551615",
    "+",
    "-",
    ".",
    " ",
    "auto",
    "٣",
];

#[test]
fn fingerprints() {
    proptest!(cases(), |(text in spliced_text(NUMBERS, 4))| {
        let are_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let expected = text.parse().ok().filter(|_| are_digits).map(Fingerprint);
        assert_eq!(text.parse().ok(), expected);
    });
}

#[test]
fn blocks() {
    proptest!(cases(), |(text in spliced_text(NUMBERS, 3))| {
        match text.parse::<Blocks>() {
            Ok(Blocks::Auto) => assert_eq!(text, "auto"),
            Ok(Blocks::Fixed(blocks)) => assert_eq!(text.parse(), Ok(blocks)),
            Err(_) => assert!(text.parse::<u32>().is_err()),
        }
    });
}

#[test]
fn nodes_and_corpora() {
    let names = &[
        "a",
        "n1",
        "-",
        "_",
        ".",
        "/",
        "Z",
        "é",
        "\0",
        "67e55044-10b1-426f-9247-bb680e5fe0c8",
        "67e55044",
        "-10b1",
        "00000000",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ];
    proptest!(cases(), |(name in spliced_text(names, 8))| {
        if let Ok(node) = NodeId::new(&name) {
            assert_eq!(node.as_str(), name);
        }
        if let Ok(corpus) = CorpusName::new(name.as_str()) {
            assert_eq!(corpus.to_string(), name);
        }
        if let Ok(uid) = name.parse::<CorpusUid>() {
            assert_eq!(uid.to_string(), name.to_ascii_lowercase());
        }
    });
}
