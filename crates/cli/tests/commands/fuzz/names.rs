//! What is given as an argument or in a request: names, numbers and the like.

use bolero::check;
use simshard_cli::args::Blocks;
use simshard_cluster::CorpusName;
use simshard_simhash::{Fingerprint, Recipe};
use simshard_topology::{CorpusUid, NodeId};

use super::cases;
use super::splice::SplicedText;

#[test]
fn recipes() {
    let names = SplicedText {
        pieces: &[
            "words-v1",
            "words-v2",
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
        ],
        most: 3,
    };
    check!()
        .with_iterations(cases())
        .with_generator(names)
        .for_each(|name| match name.parse::<Recipe>() {
            Ok(recipe) => assert_eq!(recipe.to_string(), *name),
            Err(error) => assert_eq!(error.name, *name),
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
    let numbers = SplicedText {
        pieces: NUMBERS,
        most: 4,
    };
    check!()
        .with_iterations(cases())
        .with_generator(numbers)
        .for_each(|text| {
            let are_digits = text.bytes().all(|byte| byte.is_ascii_digit());
            let expected = text.parse().ok().filter(|_| are_digits).map(Fingerprint);
            assert_eq!(text.parse().ok(), expected);
        });
}

#[test]
fn blocks() {
    let numbers = SplicedText {
        pieces: NUMBERS,
        most: 3,
    };
    check!()
        .with_iterations(cases())
        .with_generator(numbers)
        .for_each(|text| match text.parse::<Blocks>() {
            Ok(Blocks::Auto) => assert_eq!(text, "auto"),
            Ok(Blocks::Fixed(blocks)) => assert_eq!(text.parse(), Ok(blocks)),
            Err(_) => assert!(text.parse::<u32>().is_err()),
        });
}

#[test]
fn nodes_and_corpora() {
    let names = SplicedText {
        pieces: &[
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
        ],
        most: 8,
    };
    check!()
        .with_iterations(cases())
        .with_generator(names)
        .for_each(|name| {
            if let Ok(node) = NodeId::new(name) {
                assert_eq!(node.as_str(), name);
            }
            if let Ok(corpus) = CorpusName::new(name.as_str()) {
                assert_eq!(corpus.to_string(), *name);
            }
            if let Ok(uid) = name.parse::<CorpusUid>() {
                assert_eq!(uid.to_string(), name.to_ascii_lowercase());
            }
        });
}
