//! Explanations of the recipes for their users.

use super::{Recipe, Takes, TextRecipe, Window};

/// A recipe in full, a sentence or two an aspect, each on one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Its exact name.
    pub name: String,
    /// Its input.
    pub takes: Takes,
    /// A summary in one line.
    pub summary: &'static str,
    /// The first split of a document, and the treatment of case and punctuation.
    pub tokens: String,
    /// The hashed features.
    pub features: String,
    /// How it is hashed.
    pub hash: &'static str,
    /// The value of a bit when as many features have it as lack it.
    pub ties: &'static str,
    /// The treatment of documents with few features or none.
    pub empty: String,
    /// Whether the meaning of the name can change.
    pub version: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// When to choose it.
    pub choose: &'static str,
}

const TIES: &str = "0: a bit is 1 if strictly more of the weight has it than lacks it";
const MD5_LAST: &str = "the last 8 bytes of MD5 of the UTF-8 bytes, big-endian";
const WORDS: &str = "words by the default boundaries of UAX #29, without those that hold no letter \
                     or number, each character lower-cased";
const FROZEN: &str = "frozen under this name";
const UNICODE: &str = "frozen under this name; letters and cases as of Unicode 17.0";

impl Recipe {
    /// The recipe in full.
    #[must_use]
    pub fn explanation(self) -> Explanation {
        match self {
            Self::Features => features(),
            Self::Text(recipe) => match recipe {
                TextRecipe::WordsV3 => words_v3(),
                TextRecipe::WordsV2(window) => words_v2(recipe, window),
                TextRecipe::WordsV1 => words_v1(),
                TextRecipe::Leonsim3 => leonsim(recipe, 3),
                TextRecipe::Leonsim4 => leonsim(recipe, 4),
                TextRecipe::MozShingle(window) => moz_shingle(recipe, window),
                TextRecipe::JenkinsWindow(window) => jenkins_window(recipe, window),
                TextRecipe::JenkinsWindowCompat(window) => jenkins_window_compat(recipe, window),
                TextRecipe::TextDedup(window) => text_dedup(recipe, window),
            },
        }
    }

    /// An explanation with what the type knows.
    fn begin(self) -> Explanation {
        Explanation {
            name: self.to_string(),
            takes: self.takes(),
            summary: self.summary(),
            tokens: String::new(),
            features: String::new(),
            hash: "",
            ties: TIES,
            empty: String::new(),
            version: FROZEN,
            source: "",
            choose: "",
        }
    }
}

fn words_v3() -> Explanation {
    Explanation {
        features:
            "each word, once, for bits 0, 4, 8 and so on; each 2 consecutive words, once, for \
                   the others"
                .to_owned(),
        hash: "XXH3-64 of each word; of these hashes, one or two, as little-endian bytes, XXH3-64 again",
        empty: "no words give no fingerprint; 1 word is a run too".to_owned(),
        choose: "documents in any script; at distance d, 1 - d/32 is about a quarter of the Jaccard \
                 similarity of two texts by words, and three quarters of that by runs",
        ..words_v2(TextRecipe::WordsV3, Window::TWO)
    }
}

fn words_v2(recipe: TextRecipe, window: Window) -> Explanation {
    Explanation {
        tokens: format!("the text in NFC, cut into {WORDS}"),
        features: format!("each {window} consecutive words, once"),
        hash: "XXH3-64 of each word, and XXH3-64 of a run's word hashes as little-endian bytes",
        ties: "none: a bit is the lowest bit of the least hash in one of 64 bins",
        empty: format!("no words give no fingerprint; fewer than {window} words are one feature"),
        version: UNICODE,
        source: "this project; Fast Similarity Sketching (Dahlgaard, Knudsen, Thorup, FOCS 2017), \
                 cut to one bit",
        choose: match window {
            Window::TWO => {
                "corpora that have it, and documents where words-v3 finds too much that is unlike; two \
                 texts at distance d have a Jaccard similarity of about 1 - d/32"
            }
            _ => {
                "documents in any script; the longer the runs, the fewer edited texts and the fewer \
                 unlike ones it finds: words-v2-3 suits distance 6 with 8 blocks"
            }
        },
        ..Recipe::Text(recipe).begin()
    }
}

fn words_v1() -> Explanation {
    Explanation {
        tokens: WORDS.to_owned(),
        features: "each 4 consecutive words, as often as they occur".to_owned(),
        hash: "XXH3-64 of each word, and XXH3-64 of the 4 word hashes as 32 little-endian bytes",
        empty: "no words give 0; 1 to 3 words are one feature".to_owned(),
        version: UNICODE,
        source: "this project",
        choose: "corpora that have it; for new ones words-v3 is better: words-v1 misses most \
                 edited texts",
        ..Recipe::Text(TextRecipe::WordsV1).begin()
    }
}

fn leonsim(recipe: TextRecipe, width: u8) -> Explanation {
    Explanation {
        tokens: "characters: the text lower-cased (final sigma included), without all that is no \
                 letter, number or underscore"
            .to_owned(),
        features: format!("each {width} consecutive characters, as often as they occur"),
        hash: MD5_LAST,
        empty: format!(
            "a text of fewer than {width} such characters is one feature, even if empty"
        ),
        version: UNICODE,
        source: match width {
            3 => "https://github.com/1e0ng/simhash 2.1, the script in its README",
            _ => "https://github.com/1e0ng/simhash 2.1, Simhash(text)",
        },
        choose: "fingerprints made by that Python package; short texts, as long ones of one \
                 language look alike",
        ..Recipe::Text(recipe).begin()
    }
}

fn moz_shingle(recipe: TextRecipe, window: Window) -> Explanation {
    Explanation {
        tokens: "what stands between single spaces, as it is: Python's text.split(' ')".to_owned(),
        features: format!("each {window} consecutive tokens, joined by a space"),
        hash: "the first 8 bytes of MD5 of the UTF-8 bytes, big-endian",
        empty: format!("fewer than {window} tokens give 0"),
        source: "https://github.com/seomoz/simhash-py 0.4, the script in its README",
        choose: "fingerprints made by that Python package; tokens with single spaces between, as \
                 indentation and other white space count like words",
        ..Recipe::Text(recipe).begin()
    }
}

fn jenkins_window(recipe: TextRecipe, window: Window) -> Explanation {
    Explanation {
        tokens: "bytes of the text's UTF-8, as it is".to_owned(),
        features: format!("each {window} consecutive bytes"),
        hash: "Bob Jenkins' lookup3 (hashlittle2, seeds 0): pc above, pb below",
        empty: format!(
            "the empty text gives 0; a text of fewer than {window} bytes is one feature"
        ),
        source: "https://github.com/ChenghaoMou/simhash, the last window of each text included",
        choose: "fingerprints meant that way; not for indented texts, such as code and HTML, which \
                 look alike by their spaces",
        ..Recipe::Text(recipe).begin()
    }
}

fn jenkins_window_compat(recipe: TextRecipe, window: Window) -> Explanation {
    Explanation {
        features: format!("each {window} consecutive bytes but the last such window"),
        empty: format!("texts of {window} bytes or fewer give 0"),
        source: "https://github.com/ChenghaoMou/simhash, which drops the last window of each text",
        choose: "fingerprints made by that program; not for indented texts, such as code and HTML, \
                 which look alike by their spaces",
        ..jenkins_window(recipe, window)
    }
}

fn text_dedup(recipe: TextRecipe, window: Window) -> Explanation {
    Explanation {
        tokens: "characters of the text, as it is".to_owned(),
        features: format!("each {window} consecutive characters, lower-cased, once"),
        hash: "XXH3-64 of the UTF-8 bytes",
        empty: format!(
            "fewer than 5 characters give no fingerprint; fewer than {window} are one feature"
        ),
        version: UNICODE,
        source: "https://github.com/ChenghaoMou/text-dedup 0.4.0, its SimHash with 64 bits",
        choose: "fingerprints made by that Python package; textdedup-3 misses over half of the \
                 edited texts at distance 3",
        ..Recipe::Text(recipe).begin()
    }
}

fn features() -> Explanation {
    Explanation {
        tokens: "none: documents come as features".to_owned(),
        features: "a list of 64-bit hashes, each with a weight, a whole number".to_owned(),
        hash: "yours",
        empty: "no features, or none with a weight, give 0".to_owned(),
        source: "Charikar, Similarity estimation techniques from rounding algorithms, STOC 2002",
        choose: "features that no recipe here knows: words with tf-idf weights, images, code trees",
        ..Recipe::Features.begin()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_aspect_of_every_recipe_is_one_line() {
        for recipe in Recipe::LISTED {
            let all = recipe.explanation();
            assert_eq!(all.name, recipe.to_string());
            let aspects = [
                &all.tokens,
                &all.features,
                all.hash,
                all.ties,
                &all.empty,
                all.version,
                all.source,
                all.choose,
            ];
            for aspect in aspects {
                assert!(!aspect.is_empty(), "{recipe}");
                assert!(
                    !aspect.contains(['\n', '\t']) && !aspect.contains("  "),
                    "{aspect}"
                );
            }
        }
    }

    #[test]
    fn windows_are_explained_with_their_size() {
        let recipe: Recipe = "jenkins-window-77-compat".parse().unwrap();
        assert_eq!(
            recipe.explanation().features,
            "each 77 consecutive bytes but the last such window"
        );
    }
}
