//! Prints a report's page, for the test in a browser: `report_page (everything|extremes|nothing)
//! [ID]...`. The ids are those of documents, and may hold anything.

use std::cmp::Reverse;
use std::time::Duration;

use simshard_batch::report::{
    ClusterSample, DocumentSample, Excerpt, HeavyPrefix, MemberSample, PairSample, Report,
    SpecialFingerprint, Why, page,
};
use simshard_simhash::Fingerprint;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_default();
    let ids: Vec<String> = arguments.collect();
    let report = match kind.as_str() {
        "everything" => everything(&ids),
        "extremes" => extremes(&ids),
        "nothing" => nothing(),
        _ => anyhow::bail!("no page `{kind}`: name everything, extremes or nothing"),
    };
    println!("{}", page(&report));
    Ok(())
}

/// Some large clusters, these ids among their members.
fn clusters(ids: &[String]) -> Vec<ClusterSample> {
    let member = |number: u32| MemberSample {
        id: format!("https://www.example.org/articles/2024/{number}.html"),
        fingerprint: Fingerprint(number.into()),
        distance: number % 37,
        text: (number % 4 < 2).then(|| excerpt(&text(number.into(), 60))),
    };
    let clusters = (1..=8).map(|index| ClusterSample {
        id: Reverse(Fingerprint(index.into())),
        size: 9000 / u64::from(index * index),
        members: (index * 37..).take(4).map(member).collect(),
    });
    let mut clusters: Vec<_> = clusters.collect();
    for (id, cluster) in ids.iter().zip(&mut clusters) {
        cluster.members[1].id.clone_from(id);
    }
    clusters
}

/// A text of some words.
fn text(seed: u64, words: u64) -> String {
    const WORDS: [&str; 12] = [
        "the", "council", "said", "that", "a", "new", "bridge", "over", "the", "river", "will",
        "open",
    ];
    let words = (0..words).map(|word| WORDS[(word * (seed % 7 + 1) % 12) as usize]);
    words.collect::<Vec<_>>().join(" ")
}

fn excerpt(text: &str) -> Excerpt {
    Excerpt {
        text: text.to_owned(),
        bytes: text.len() as u64,
    }
}

/// Pairs of texts that differ here and there, these ids among their documents.
fn pairs(ids: &[String]) -> Vec<PairSample> {
    let document = |id: String, text: &str| DocumentSample {
        id,
        fingerprint: Fingerprint(5),
        text: Some(excerpt(text)),
    };
    let pairs = (0..10_u32).map(|number| {
        let path = |part: &str| format!("https://www.example.org/news/2024/{number}/{part}.html");
        let text = text(number.into(), 120);
        let other = match number {
            0 => text.clone(),
            1 => String::new(),
            _ => text.replacen("bridge", "tunnel", number as usize),
        };
        PairSample {
            distance: 3 - number / 3,
            documents: [
                document(path("first"), &text),
                document(path("second"), &other),
            ],
        }
    });
    let mut pairs: Vec<_> = pairs.collect();
    for (id, pair) in ids.iter().zip(&mut pairs) {
        pair.documents[0].id.clone_from(id);
        pair.documents[1].text = Some(excerpt(&format!("{} {id}", text(3, 120))));
    }
    // As where the input cannot be read again.
    pairs[9]
        .documents
        .iter_mut()
        .for_each(|document| document.text = None);
    pairs
}

/// What a run over a middling set of real documents finds.
fn everything(ids: &[String]) -> Report {
    let prefixes = (0..20_u16).map(|index| HeavyPrefix {
        prefix: 0x3fa2_u16.wrapping_mul(index + 1),
        documents: 48_211 / u64::from(index + 3),
    });
    Report {
        command: "find-clusters",
        version: "0.1.0",
        inputs: (0..60)
            .map(|part| format!("crawl/part-{part:05}.jsonl.gz"))
            .chain(ids.iter().cloned())
            .collect(),
        settings: [
            ("recipe", "words-v1"),
            ("distance", "3"),
            ("blocks", "4, chosen from the number of documents"),
            ("threads", "2"),
            ("output", "clusters.tsv"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into(),
        documents: 1_250_000,
        fingerprints: 1_184_302,
        pairs_by_distance: vec![812_345, 1_204, 18_411, 61_782],
        cluster_sizes: (0..14)
            .map(|step| (2_u64.pow(step) + 1, 54_321 >> step))
            .collect(),
        largest_clusters: clusters(ids),
        pairs: pairs(ids),
        lengths: (0..14).map(|step| (32 << step, 400_000 >> step)).collect(),
        empty_texts: 3_207,
        too_little: None,
        heaviest_prefixes: prefixes.collect(),
        crowded: vec![special(0x77c3_01fe_9a04_d2b8, 9_000, Why::Crowded, ids)],
        degenerate_fingerprints: vec![
            special(0xa81e_22c4_55d0_913b, 3_204, Why::EmptyText, ids),
            special(0, 118, Why::AllZero, &["about.html".to_owned()]),
            special(u64::MAX, 1, Why::AllOne, &["broken.bin".to_owned()]),
        ],
        timings: [
            ("read and hash", 1_890),
            ("sort", 61),
            ("join", 38),
            ("cluster", 22),
            ("write", 240),
        ]
        .map(|(phase, time)| (phase.to_owned(), Duration::from_millis(time)))
        .into(),
        degenerate_texts: vec![
            ("few distinct runs".to_owned(), 4_021),
            ("mostly digits".to_owned(), 12),
        ],
        skipped: vec![
            ("empty text".to_owned(), 3),
            ("not UTF-8".to_owned(), 12_034),
        ],
        halved: 0,
    }
}

fn special(fingerprint: u64, documents: u64, why: Why, samples: &[String]) -> SpecialFingerprint {
    SpecialFingerprint {
        fingerprint,
        documents,
        samples: samples.to_vec(),
        why,
    }
}

/// The largest numbers, the longest lists.
fn extremes(ids: &[String]) -> Report {
    let id = "long-".repeat(204) + "id.";
    let cluster = |size: u64| ClusterSample {
        id: Reverse(Fingerprint(u64::MAX)),
        size,
        members: vec![
            MemberSample {
                id: id.clone(),
                fingerprint: Fingerprint(u64::MAX),
                distance: 64,
                text: Some(excerpt(&id)),
            };
            100
        ],
    };
    Report {
        command: "find-pairs",
        version: "0.1.0",
        inputs: vec![id.clone(); 5_000],
        settings: vec![(id.clone(), id.clone()); 3],
        documents: u64::MAX,
        fingerprints: u64::MAX,
        pairs_by_distance: vec![u64::MAX, 0, 1, 10, 1_000_000, u64::MAX, 3, u64::MAX / 2],
        cluster_sizes: [(2, u64::MAX), (1_000_000_000, 1), (u64::MAX, 1)].into(),
        largest_clusters: vec![cluster(u64::MAX), cluster(1_000_000_000)],
        pairs: vec![longest_pair(&id); 100],
        lengths: vec![(1, u64::MAX), (u64::MAX, 1)],
        empty_texts: u64::MAX,
        too_little: Some("fewer than 5 characters, which is too short for textdedup-3".to_owned()),
        crowded: vec![special(7, u64::MAX, Why::Crowded, ids)],
        heaviest_prefixes: vec![
            HeavyPrefix {
                prefix: u16::MAX,
                documents: u64::MAX,
            },
            HeavyPrefix {
                prefix: 0,
                documents: 1,
            },
        ],
        degenerate_fingerprints: vec![special(u64::MAX, u64::MAX, Why::AllOne, ids)],
        timings: vec![
            ("read".to_owned(), Duration::from_secs(u64::MAX / 4)),
            (id.clone(), Duration::from_nanos(1)),
        ],
        degenerate_texts: vec![(id.clone(), u64::MAX)],
        skipped: vec![(id, u64::MAX)],
        halved: 0,
    }
}

/// Texts of the longest words.
fn longest_pair(id: &str) -> PairSample {
    let document = |fingerprint, text: &str| DocumentSample {
        id: id.to_owned(),
        fingerprint: Fingerprint(fingerprint),
        text: Some(excerpt(text)),
    };
    PairSample {
        distance: 64,
        documents: [
            document(0, &format!("{id} ").repeat(400)),
            document(u64::MAX, id),
        ],
    }
}

/// A run that had nothing to find.
fn nothing() -> Report {
    Report {
        command: "find-clusters",
        version: "0.1.0",
        inputs: vec!["standard input".to_owned()],
        pairs_by_distance: vec![0; 4],
        ..Report::default()
    }
}
