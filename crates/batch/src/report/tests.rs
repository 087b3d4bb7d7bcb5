//! The page as a browser's tokenizer reads it: its structure, its sections, hostile text, extremes.

use std::cmp::Reverse;
use std::time::Duration;

use html5gum::{DefaultEmitter, StartTag, Token, Tokenizer};
use proptest::prelude::*;
use simshard_simhash::Fingerprint;

use super::*;

/// Elements that have no end tag.
const VOID: [&str; 2] = ["meta", "link"];

/// A page's tags and the text between them, in order.
struct Parsed {
    tags: Vec<(String, Vec<(String, String)>)>,
    text: String,
}

impl Parsed {
    /// Reads a page. Fails if the standard finds an error in it, or a tag is not closed where it
    /// should be.
    fn of(page: &str) -> Self {
        let mut parsed = Self {
            tags: Vec::new(),
            text: String::new(),
        };
        let mut open: Vec<String> = Vec::new();
        let tokens = Tokenizer::new_with_emitter(page, DefaultEmitter::default());
        for token in tokens {
            match token.unwrap() {
                Token::StartTag(tag) => {
                    let name = utf8(&tag.name);
                    if !VOID.contains(&name.as_str()) {
                        open.push(name.clone());
                    }
                    parsed.tags.push((name, attributes(&tag)));
                }
                Token::EndTag(tag) => {
                    assert_eq!(open.pop().as_deref(), Some(utf8(&tag.name).as_str()));
                }
                Token::String(text) => parsed.text += &utf8(&text),
                Token::Doctype(doctype) => assert_eq!(utf8(&doctype.name), "html"),
                Token::Comment(comment) => panic!("a comment: {comment:?}"),
                Token::Error(error) => panic!("an error: {}", error.value),
            }
        }
        assert_eq!(open, Vec::<String>::new(), "these are never closed");
        parsed
    }

    /// Every tag with the names of its attributes.
    fn shape(&self) -> Vec<String> {
        let shape = self.tags.iter().map(|(name, attributes)| {
            let names: Vec<&str> = attributes.iter().map(|(name, _)| name.as_str()).collect();
            format!("{name} {}", names.join(" "))
        });
        shape.collect()
    }

    /// The values of an attribute, wherever it stands.
    fn values(&self, attribute: &str) -> Vec<&str> {
        let attributes = self.tags.iter().flat_map(|(_, attributes)| attributes);
        let wanted = attributes.filter(|(name, _)| name == attribute);
        wanted.map(|(_, value)| value.as_str()).collect()
    }

    fn has_section(&self, id: &str) -> bool {
        self.values("id").contains(&id)
    }
}

fn utf8(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn attributes(tag: &StartTag<()>) -> Vec<(String, String)> {
    let attributes = tag.attributes.iter();
    attributes
        .map(|(name, value)| (utf8(name), utf8(value)))
        .collect()
}

/// A report with something in every section, this text wherever text comes from outside.
fn full(text: &str) -> Report {
    let text = text.to_owned();
    Report {
        command: "find-clusters",
        version: "1.2.3",
        inputs: vec![text.clone()],
        settings: vec![(text.clone(), text.clone())],
        documents: 1000,
        fingerprints: 900,
        pairs_by_distance: vec![5, 0, 7, 11],
        cluster_sizes: [(2, 9), (3, 1), (40, 1)].into(),
        largest_clusters: vec![ClusterSample {
            id: Reverse(Fingerprint(5)),
            size: 40,
            members: vec![MemberSample {
                id: text.clone(),
                fingerprint: Fingerprint(6),
                distance: 3,
                text: Some(excerpt(&text)),
            }],
        }],
        pairs: vec![PairSample {
            distance: 2,
            documents: [
                document(&text, &format!("{text} alpha")),
                document("b", &format!("{text} beta")),
            ],
        }],
        lengths: vec![(64, 5), (128, 900)],
        empty_texts: 7,
        too_little: None,
        heaviest_prefixes: vec![HeavyPrefix {
            prefix: 0xbeef,
            documents: 30,
        }],
        degenerate_fingerprints: vec![SpecialFingerprint {
            fingerprint: 0,
            documents: 30,
            samples: vec![text.clone()],
            why: Why::AllZero,
        }],
        crowded: vec![SpecialFingerprint {
            fingerprint: 77,
            documents: 31,
            samples: vec![text.clone()],
            why: Why::Crowded,
        }],
        timings: vec![(text.clone(), Duration::from_millis(250))],
        degenerate_texts: vec![(text.clone(), 2)],
        skipped: vec![(text, 3)],
        halved: 0,
    }
}

fn excerpt(text: &str) -> Excerpt {
    Excerpt {
        text: text.to_owned(),
        bytes: text.len() as u64,
    }
}

fn document(id: &str, text: &str) -> DocumentSample {
    DocumentSample {
        id: id.to_owned(),
        fingerprint: Fingerprint(5),
        text: Some(excerpt(text)),
    }
}

const SECTIONS: [&str; 13] = [
    "distances",
    "sizes",
    "largest",
    "pairs",
    "lengths",
    "prefixes",
    "crowded",
    "degenerate-fingerprints",
    "degenerate-texts",
    "timings",
    "skipped",
    "settings",
    "inputs",
];

#[test]
fn a_full_report_has_all_sections_and_links_to_each() {
    let page = Parsed::of(&page(&full("a")));
    let links: Vec<String> = SECTIONS.iter().map(|id| format!("#{id}")).collect();
    assert_eq!(page.values("href")[1..], links);
    for id in SECTIONS {
        assert!(page.has_section(id), "{id}");
    }
    let headings = page.tags.iter().filter(|(name, _)| name == "h1");
    assert_eq!(headings.count(), 1);
    for number in [
        "50 of 1\u{202f}000",
        "5.0\u{202f}%",
        "4\u{202f}000",
        "250\u{202f}ms",
    ] {
        assert!(page.text.contains(number), "{number}");
    }
}

#[test]
fn what_was_not_counted_has_no_section() {
    let report = Report {
        command: "find-pairs",
        documents: 5,
        fingerprints: 5,
        ..Report::default()
    };
    let page = Parsed::of(&page(&report));
    for id in SECTIONS {
        assert!(!page.has_section(id), "{id}");
    }
    assert!(page.text.contains("5 documents were read."));
}

#[test]
fn no_pairs_and_no_clusters_are_said() {
    let report = Report {
        documents: 5,
        pairs_by_distance: vec![0; 8],
        ..Report::default()
    };
    let pairs = Parsed::of(&page(&Report {
        command: "find-pairs",
        ..report.clone()
    }));
    assert!(pairs.text.contains("No two documents are near-duplicates"));
    assert!(
        pairs
            .text
            .contains("No two documents are within the distance of 7.")
    );
    assert!(!pairs.has_section("sizes"));

    let clusters = Parsed::of(&page(&Report {
        command: "find-clusters",
        ..report
    }));
    assert!(
        clusters
            .text
            .contains("No document has a near-duplicate: all can be kept.")
    );
    assert!(clusters.has_section("sizes"));
}

#[test]
fn that_two_texts_have_the_same_words_is_said_of_all_that_was_compared() {
    let text_of = |report: &Report| Parsed::of(&page(report)).text;
    let (all, some) = (
        "Both have the same words.",
        "Both have the same words as far as they are compared here.",
    );
    let mut report = full("a");
    assert!(!text_of(&report).contains("Both have"));
    for distance in [0, 2] {
        report.pairs[0].distance = distance;
        for (words, bytes, said) in [(3, 0, all), (3, 1, some), (9000, 0, some)] {
            let mut whole = excerpt(&"word ".repeat(words));
            report.pairs[0].documents[0].text = Some(whole.clone());
            whole.bytes += bytes;
            report.pairs[0].documents[1].text = Some(whole);
            assert!(
                text_of(&report).contains(said),
                "{words} words, {bytes} more bytes"
            );
        }
    }
}

/// H2: no script, no address, and a policy that forbids both.
#[test]
fn the_page_asks_for_nothing_and_runs_nothing() {
    let page = Parsed::of(&page(&full("a")));
    let foreign = ["script", "img", "iframe", "object", "embed", "form", "base"];
    assert!(
        !page
            .tags
            .iter()
            .any(|(name, _)| foreign.contains(&name.as_str()))
    );
    assert!(
        page.values("content")
            .iter()
            .any(|policy| policy.starts_with("default-src 'none'"))
    );
    assert_eq!(page.values("src"), [""; 0]);
    assert_eq!(page.values("style"), [""; 0]);
    assert_eq!(page.values("href")[0], "data:,");
    assert!(!page.text.contains("url(") && !page.text.contains("@import"));
}

#[test]
fn the_largest_numbers_have_a_page() {
    let report = Report {
        documents: u64::MAX,
        fingerprints: u64::MAX,
        pairs_by_distance: vec![u64::MAX; 8],
        cluster_sizes: [(0, 1), (1, 1), (2, u64::MAX), (u64::MAX, u64::MAX)].into(),
        timings: vec![
            ("a".to_owned(), Duration::MAX),
            ("b".to_owned(), Duration::MAX),
        ],
        ..full("a")
    };
    let page = Parsed::of(&page(&report));
    let all = (u128::from(u64::MAX) * 8).to_string();
    assert!(page.values("value").contains(&all.as_str()));
    assert!(page.text.contains("1.48\u{202f}×\u{202f}10²⁰"));
}

#[test]
fn numbers_that_are_none_have_a_page() {
    let mut report = full("a");
    report.documents = 0;
    report.timings = vec![("read".to_owned(), Duration::ZERO)];
    for documents in [0, 1, u64::MAX] {
        report.heaviest_prefixes[0].documents = documents;
        let page = Parsed::of(&page(&report));
        assert!(page.text.contains("There were no documents to compare."));
        assert!(!page.text.contains("NaN") && !page.has_section("timings"));
    }
}

#[test]
fn how_many_times_the_mean_a_prefix_holds_is_said_where_that_is_no_chance() {
    let heavy = |documents| Report {
        documents,
        ..full("a")
    };
    // 30 documents of one prefix: of a million, where the mean is 16, and of a few less.
    let large = Parsed::of(&page(&heavy(16 << 16)));
    assert!(large.text.contains("× mean") && large.text.contains("×1.88"));
    let small = Parsed::of(&page(&heavy((16 << 16) - 1)));
    assert!(!small.text.contains('×'), "{}", small.text);
    let few = Parsed::of(&page(&heavy(1000)));
    assert!(few.text.contains("3.0\u{202f}%") && !few.text.contains('×'));
}

#[test]
fn a_fingerprint_is_shown_in_decimal_as_everywhere_else() {
    let mut report = full("a");
    report.degenerate_fingerprints[0].fingerprint = 0xa81e_22c4_55d0_913b;
    let page = Parsed::of(&page(&report));
    assert!(page.text.contains("12114158274321879355"), "{}", page.text);
    assert!(!page.text.contains("a81e22c455d0913b"));
    let title = "a81e22c455d0913b in hexadecimal";
    assert!(page.values("title").contains(&title));
}

#[test]
fn one_cluster_of_a_billion_documents_has_one_bar() {
    let report = Report {
        command: "find-clusters",
        documents: 1_000_000_000,
        fingerprints: 1,
        cluster_sizes: [(1_000_000_000, 1)].into(),
        ..Report::default()
    };
    let page = Parsed::of(&page(&report));
    let bars = page.tags.iter().filter(|(name, _)| name == "rect");
    assert_eq!(bars.count(), 1);
    assert!(
        page.text
            .contains("999\u{202f}999\u{202f}999 of 1\u{202f}000\u{202f}000\u{202f}000")
    );
}

#[test]
fn what_texts_lack_that_a_recipe_makes_nothing_of_is_said() {
    let empty = SpecialFingerprint {
        why: Why::EmptyText,
        ..full("id").degenerate_fingerprints[0].clone()
    };
    let few = "fewer than 5 characters, which is too short for textdedup-3";
    for (too_little, said) in [(None, "no words"), (Some(few.to_owned()), few)] {
        let report = Report {
            too_little,
            degenerate_fingerprints: vec![empty.clone()],
            ..full("id")
        };
        let text = Parsed::of(&page(&report)).text;
        assert!(
            text.contains(&format!("7 texts have {said}. Nothing")),
            "{said}"
        );
        assert!(
            text.contains(&format!("these documents have {said}.")),
            "{said}"
        );
    }
}

/// H3: long lists and long texts are cut, and the page says how much is missing.
#[test]
fn the_page_stays_small_whatever_the_report_holds() {
    let text = "é".repeat(2_000);
    let one = full(&text);
    let report = Report {
        inputs: vec![text.clone(); 5000],
        settings: vec![(text.clone(), text.clone()); 1000],
        pairs_by_distance: vec![7; 10_000],
        cluster_sizes: (2..100_000).map(|size| (size, 1)).collect(),
        largest_clusters: vec![
            ClusterSample {
                members: vec![one.largest_clusters[0].members[0].clone(); 100],
                ..one.largest_clusters[0].clone()
            };
            200
        ],
        heaviest_prefixes: vec![one.heaviest_prefixes[0]; 65_536],
        degenerate_fingerprints: vec![
            SpecialFingerprint {
                samples: vec![text.clone(); 100],
                ..one.degenerate_fingerprints[0].clone()
            };
            200
        ],
        timings: vec![(text.clone(), Duration::from_secs(1)); 1000],
        pairs: vec![
            PairSample {
                documents: [
                    document(&text, &format!("{} ", "é".repeat(1000)).repeat(300)),
                    document(&text, &format!("{} ", "\u{1}".repeat(1000)).repeat(300)),
                ],
                ..one.pairs[0].clone()
            };
            200
        ],
        skipped: vec![(text, 1); 1000],
        ..one
    };
    let page = page(&report);
    assert!(page.len() <= 2_000_000, "{}", page.len());
    let page = Parsed::of(&page);
    assert!(page.text.contains("and 4\u{202f}9"));
    assert!(page.text.contains("… and 976 more characters"));
}

#[test]
fn the_reason_of_a_fingerprint_is_the_one_that_says_most() {
    assert_eq!(Why::of(0, Some(0)), Why::EmptyText);
    assert_eq!(Why::of(0, Some(7)), Why::AllZero);
    assert_eq!(Why::of(u64::MAX, None), Why::AllOne);
    assert_eq!(Why::of(7, None), Why::Crowded);
}

/// Any text, and texts made of what markup is made of.
fn hostile() -> impl Strategy<Value = String> {
    let marks = proptest::sample::select(vec![
        "<", ">", "\"", "'", "&", "=", "/", "!--", "-->", "script", "</bdi>", "<style>", "]]>",
        " onload=", "&#60;", "&lt", "\0", "\u{b}", "\u{202e}", "\r\n", "\u{ffff}", "é", " ",
    ]);
    prop_oneof![
        any::<String>(),
        prop::collection::vec(marks, 0..20).prop_map(|marks| marks.concat()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// H1: elements and attributes are those of the same report with harmless text, but for the
    /// marks around characters that are spelled out.
    #[test]
    fn text_from_outside_adds_no_markup(text in hostile()) {
        let shape = |text: &str| {
            let mut shape = Parsed::of(&page(&full(text))).shape();
            shape.retain(|tag| tag != "span class" && tag != "bdi ");
            shape
        };
        prop_assert_eq!(shape(&text), shape("harmless"));
    }

    /// H1: what can be seen of a text is on the page as it was given.
    #[test]
    fn text_from_outside_is_shown(text in "[ -~]{1,80}") {
        let page = Parsed::of(&page(&full(&text)));
        prop_assert!(page.text.contains(&text));
    }
}
