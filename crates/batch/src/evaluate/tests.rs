//! Evaluations of made-up texts, held against comparing everything with everything.

use std::collections::BTreeSet;
use std::fs;

use fastrand::Rng;
use indicatif::ProgressBar;
use simshard_input::Format;
use simshard_simhash::{Degenerate, Layout, Recipe, word_runs};

use super::*;

const SILENT: Progress = Progress {
    bar: |_, _| ProgressBar::hidden(),
    spinner: |_| ProgressBar::hidden(),
};

/// Texts of numbered words, each an edit of one before it or a new one. Those of one word are equal
/// word for word.
fn made_up(count: usize) -> Vec<String> {
    let mut rng = Rng::with_seed(5);
    let mut texts: Vec<Vec<u32>> = Vec::new();
    for _ in 0..count {
        let mut words: Vec<u32> = match texts.len() {
            0 => vec![1],
            some if rng.u8(..10) < 7 => texts[rng.usize(..some)].clone(),
            _ => (0..rng.usize(3..150)).map(|_| rng.u32(..500)).collect(),
        };
        for _ in 0..rng.usize(..4) {
            let place = rng.usize(..words.len());
            words[place] = rng.u32(..500);
        }
        texts.push(words);
    }
    let text = |words: &Vec<u32>| words.iter().map(|word| format!("w{word} ")).collect();
    texts.iter().map(text).collect()
}

struct Scene {
    folder: tempfile::TempDir,
    job: Evaluate,
}

impl Scene {
    fn of(texts: &[String]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("texts");
        fs::write(&path, texts.join("\n")).unwrap();
        let recipes = ["words-v3", "leonsim-3", "textdedup-3"];
        let recipes = recipes.map(|name| name.parse::<Recipe>().unwrap().for_texts().unwrap());
        let job = Evaluate {
            input: InputOptions {
                format: Some(Format::Lines),
                ..InputOptions::walking(vec![path])
            },
            recipes: recipes.to_vec(),
            sample: 0,
            truth: "jaccard:3:0.8".parse().unwrap(),
            labels: None,
            threads: 2,
        };
        Self { folder, job }
    }

    fn evaluate(&self) -> Evaluation {
        evaluate(&self.job, SILENT).unwrap()
    }
}

/// The similarity of two texts by the definition, in runs of 3 words.
fn similarity(a: &str, b: &str) -> f64 {
    let window = simshard_simhash::Window::new(3).unwrap();
    let [a, b] = [a, b].map(|text| word_runs(text, window).into_iter().collect::<BTreeSet<_>>());
    a.intersection(&b).count() as f64 / a.union(&b).count() as f64
}

#[test]
fn figures_equal_those_of_comparing_all_texts() {
    let all = made_up(400);
    let found = Scene::of(&all).evaluate();
    let mut seen = BTreeSet::new();
    let texts: Vec<&String> = all.iter().filter(|text| seen.insert(*text)).collect();
    assert_eq!(found.texts as usize, texts.len());
    assert_eq!(found.repeated as usize, all.len() - texts.len());
    for figures in &found.recipes {
        let fingerprints: Vec<_> = texts
            .iter()
            .map(|text| figures.recipe.fingerprint(text))
            .collect();
        let mut expected = vec![([Quality::default(); 4], 0, 0); figures.rows.len()];
        let length = |text: &str| match text.split(' ').count() - 1 {
            0..50 => 0,
            50..300 => 1,
            _ => panic!("no text is as long"),
        };
        let is_degenerate: Vec<bool> = texts
            .iter()
            .map(|text| Degenerate::of(text).is_some())
            .collect();
        for (place, a) in texts.iter().enumerate() {
            for (other, b) in texts.iter().enumerate().take(place) {
                let similarity = similarity(a, b);
                let pair = fingerprints[place].zip(fingerprints[other]);
                let distance = pair.map_or(u32::MAX, |(a, b)| a.distance(b));
                let shorter = length(a).min(length(b));
                for (row, (by_length, unlike, degenerate)) in (0..).zip(&mut expected) {
                    let quality = &mut by_length[shorter];
                    let (is_near, is_true) = (distance <= row, similarity >= 0.8);
                    quality.true_pairs += u64::from(is_true);
                    quality.found += u64::from(is_near);
                    quality.found_true += u64::from(is_near && is_true);
                    *unlike += u64::from(is_near && similarity < 0.5);
                    let has_degenerate = is_degenerate[place] || is_degenerate[other];
                    *degenerate += u64::from(is_near && has_degenerate);
                }
            }
        }
        let rows: Vec<_> = figures
            .rows
            .iter()
            .map(|row| (row.by_length, row.unlike, row.degenerate))
            .collect();
        assert_eq!(rows, expected, "{}", figures.recipe);
        let [short, middling, ..] = expected[3].0;
        let sum = |figure: fn(&Quality) -> u64| figure(&short) + figure(&middling);
        let all = Quality {
            found: sum(|one| one.found),
            found_true: sum(|one| one.found_true),
            true_pairs: sum(|one| one.true_pairs),
            only_true: false,
        };
        assert_eq!(figures.rows[3].all, all);
        assert!(short.found_true > 0 && middling.found_true > 0 && expected[3].2 > 0);
    }
}

#[test]
fn examples_are_the_nearest_unlike_and_the_farthest_true_pairs() {
    let found = Scene::of(&made_up(400)).evaluate();
    for figures in &found.recipes {
        assert!(figures.junk.iter().all(|one| one.similarity < 0.5));
        assert!(figures.missed.iter().all(|one| one.similarity >= 0.8));
        let distances = |examples: &[Example]| {
            examples
                .iter()
                .filter_map(|one| one.distance)
                .collect::<Vec<_>>()
        };
        assert!(distances(&figures.junk).is_sorted());
        assert!(distances(&figures.missed).iter().rev().is_sorted());
        let first_unlike = figures.rows.iter().find(|row| row.unlike > 0);
        let nearest = figures.junk.first().and_then(|one| one.distance);
        assert_eq!(
            nearest,
            first_unlike.map(|row| row.distance),
            "{}",
            figures.recipe
        );
    }
}

#[test]
fn labels_alone_say_which_pairs_count() {
    let texts = made_up(300);
    let mut scene = Scene::of(&texts);
    let recipe = scene.job.recipes[0];
    let distance = |a: usize, b: usize| {
        let [a, b] = [a, b].map(|place| recipe.fingerprint(&texts[place]).unwrap());
        a.distance(b)
    };
    let pairs = (1..300).flat_map(|place| [(place - 1, place), (0, place)]);
    let pairs: BTreeSet<_> = pairs.collect();
    let is_true = |a: usize, b: usize| (a + b).is_multiple_of(3);
    let lines = pairs
        .iter()
        .map(|&(a, b)| format!("{}\t{}\t{}\n", a + 1, b + 1, u8::from(is_true(a, b))));
    let text = lines.collect::<String>() + "1\tnone\t1\n";
    let with_mark = format!("\u{FEFF}{text}");
    assert_eq!(Labels::parse(&with_mark), Labels::parse(&text));
    scene.job.labels = Some(Labels::parse(&text).unwrap());
    let found = scene.evaluate();
    assert_eq!(found.unknown_labels, 1);
    let near: Vec<_> = pairs
        .iter()
        .filter(|&&(a, b)| distance(a, b) <= 3)
        .collect();
    let quality = found.recipes[0].rows[3].all;
    assert_eq!(quality.found as usize, near.len());
    let both = near.iter().filter(|&&&(a, b)| is_true(a, b)).count();
    assert_eq!(quality.found_true as usize, both);
    assert_eq!(
        found.true_pairs as usize,
        pairs.iter().filter(|&&(a, b)| is_true(a, b)).count()
    );
}

#[test]
fn labels_of_true_pairs_alone_measure_no_precision() {
    let mut scene = Scene::of(&made_up(300));
    let pairs: String = (1..300)
        .map(|place| format!("{place}\t{}\t1\n", place + 1))
        .collect();
    scene.job.labels = Some(Labels::parse(&pairs).unwrap());
    let found = scene.evaluate();
    assert!(!found.measures_precision());
    for row in found.recipes.iter().flat_map(|one| &one.rows) {
        assert_eq!((row.all.precision(), row.all.f1()), (None, None));
        assert!(row.all.recall().is_some());
    }
    let of = |want: &str| Suggestion::of(&found, Some(want.parse().unwrap()), 1e8);
    assert_eq!(Suggestion::of(&found, None, 1e8), None);
    assert_eq!(of("precision=0.01"), None);
    assert_eq!(of("recall=0.01,precision=0.01"), None);
    assert!(of("recall=0.01").is_some());

    // Only one that no recipe finds is known, so the largest distance is best.
    scene.job.labels = Some(Labels::parse(&(pairs + "1\t300\t0\n")).unwrap());
    let found = scene.evaluate();
    assert!(found.measures_precision());
    let best = Suggestion::of(&found, None, 1e8).unwrap();
    assert!(best.layout.table_count() <= MOST_TABLES, "{best:?}");
}

#[test]
fn labels_of_texts_without_words_are_counted() {
    let mut texts = made_up(200);
    texts[10] = "?!".to_owned();
    texts[20] = "...".to_owned();
    let mut scene = Scene::of(&texts);
    let pairs: String = (1..=200)
        .map(|place| format!("{place}\t{}\t1\n", place + 1))
        .collect();
    scene.job.labels = Some(Labels::parse(&(pairs + "11\tnone\t1\n")).unwrap());
    let found = scene.evaluate();
    assert_eq!((found.texts, found.wordless), (198, 2));
    // Two of each text, and the one with a text that is not there.
    assert_eq!((found.wordless_labels, found.unknown_labels), (5, 1));
    assert_eq!(found.true_pairs, 195);
}

#[test]
fn of_texts_with_one_id_labels_mean_the_first() {
    let mut texts = made_up(200);
    // The first of an id may be without words, or the second.
    texts[50] = "?!".to_owned();
    texts[160] = "...".to_owned();
    let mut scene = Scene::of(&texts);
    let path = scene.folder.path().join("texts.jsonl");
    let line = |place: usize, text: &String| {
        let line = serde_json::json!({ "id": (place % 100).to_string(), "text": text });
        format!("{line}\n")
    };
    let lines = texts
        .iter()
        .enumerate()
        .map(|(place, text)| line(place, text));
    fs::write(&path, lines.collect::<String>()).unwrap();
    scene.job.input.format = Some(Format::Jsonl);
    scene.job.input.paths = vec![path];
    let pairs: String = (1..100).map(|place| format!("0\t{place}\t1\n")).collect();
    scene.job.labels = Some(Labels::parse(&(pairs + "1\t2\t1\n1\t3\t1\n")).unwrap());
    let found = scene.evaluate();
    assert_eq!((found.texts, found.wordless), (99, 1));
    assert_eq!(found.wordless_labels, 1);
    let recipe = scene.job.recipes[0];
    let fingerprint = |place: usize| recipe.fingerprint(&texts[place]);
    let near = |a: usize, b: usize| {
        let both = fingerprint(a).zip(fingerprint(b));
        both.is_some_and(|(a, b)| a.distance(b) <= 10)
    };
    let of_others = usize::from(near(1, 2)) + usize::from(near(1, 3));
    let expected = (1..100).filter(|&place| near(0, place)).count() + of_others;
    assert_eq!(found.recipes[0].rows[10].all.found as usize, expected);
}

#[test]
fn a_large_input_is_drawn_from_with_its_neighbours() {
    let mut texts: Vec<String> = (0..20_000)
        .map(|text| {
            let words = (0..30).map(|word| format!("t{text}w{word} "));
            words.collect()
        })
        .collect();
    let edited: Vec<String> = texts
        .iter()
        .map(|text| text.clone() + "and an end")
        .collect();
    texts.extend(edited);
    let mut scene = Scene::of(&texts);
    scene.job.sample = 1000;
    let found = scene.evaluate();
    assert_eq!((found.texts, found.drawn_from), (1000, Some(40_000)));
    // Of two texts that are near, both are drawn, unless the last one did not fit.
    assert!(
        (450..=500).contains(&found.true_pairs),
        "{}",
        found.true_pairs
    );
    assert_eq!(found.json(), scene.evaluate().json());
}

#[test]
fn copies_take_no_room_in_a_sample() {
    let words = |text: usize| (0..30).map(move |word| format!("t{text}w{word} "));
    let once = (0..400).map(|text| words(text).collect::<String>());
    let edited = once.clone().map(|text| text + "and an end");
    let texts: Vec<String> = once.chain(edited).collect();
    // Each is there four times, in other cases and with other signs.
    let copies = |text: &String| {
        [
            text.clone(),
            text.to_uppercase(),
            format!("{text}!"),
            text.clone(),
        ]
    };
    let mut scene = Scene::of(&texts.iter().flat_map(copies).collect::<Vec<_>>());
    scene.job.sample = 300;
    let found = scene.evaluate();
    assert_eq!((found.texts, found.drawn_from), (300, Some(800)));
    assert_eq!(found.repeated, 2400);
    assert!(
        (145..=150).contains(&found.true_pairs),
        "{}",
        found.true_pairs
    );
    scene.job.sample = 0;
    let all = scene.evaluate();
    assert_eq!((all.texts, all.drawn_from, all.repeated), (800, None, 2400));
}

/// With `words-v3` texts of the same runs have one fingerprint, however often they repeat them.
#[test]
fn all_texts_of_a_drawn_fingerprint_are_read() {
    let family = |text: usize| {
        (0..9)
            .map(move |word| format!("t{text}w{word} "))
            .collect::<String>()
    };
    let once = (0..300).map(|text| family(text).repeat(4));
    let again = (0..300).map(|text| family(text).repeat(5));
    let texts: Vec<String> = once.chain(again).collect();
    let recipe = TextRecipe::default();
    assert_eq!(
        recipe.fingerprint(&texts[7]),
        recipe.fingerprint(&texts[307])
    );
    let mut scene = Scene::of(&texts);
    scene.job.sample = 300;
    let found = scene.evaluate();
    assert_eq!((found.texts, found.drawn_from), (300, Some(600)));
    assert_eq!(found.true_pairs, 150);
}

#[test]
fn few_true_pairs_and_fingerprints_are_refused() {
    let mut scene = Scene::of(&made_up(20));
    let error = evaluate(&scene.job, SILENT).unwrap_err();
    assert!(error.is_bad_input());
    assert!(matches!(error, EvaluateError::FewTruePairs(found) if found.texts > 0));
    let path = scene.folder.path().join("numbers.tsv");
    fs::write(&path, "a\t1\n").unwrap();
    scene.job.input.format = None;
    scene.job.input.paths = vec![path];
    assert!(matches!(
        evaluate(&scene.job, SILENT),
        Err(EvaluateError::NoTexts("fingerprints already"))
    ));
}

#[test]
fn the_suggestion_is_the_cheapest_that_will_do() {
    let found = Scene::of(&made_up(400)).evaluate();
    let of =
        |want: Option<&str>| Suggestion::of(&found, want.map(|want| want.parse().unwrap()), 1e6);
    let cheap = of(Some("recall=0.01")).unwrap();
    assert_eq!(
        (cheap.layout.distance(), cheap.layout.table_count()),
        (0, 1)
    );
    let all = of(Some("recall=0.99")).unwrap();
    assert!(all.layout.distance() > 0 && all.bytes_a_document > cheap.bytes_a_document);
    let command = all.command();
    assert!(
        command.starts_with("simshard corpus create crawl --recipe ")
            && command.ends_with(" --documents 1e6"),
        "{command}"
    );
    assert_eq!(of(Some("recall=1,precision=1")), None);
    let precise = of(Some("precision=0.01")).unwrap();
    let recall = |one: Suggestion| one.quality.recall().unwrap();
    assert!(precise.layout.distance() > 0 && recall(precise).high >= recall(all).value);
    let best = of(None).unwrap();
    let f1 = |recipe, distance: u32| {
        let figures = found
            .recipes
            .iter()
            .find(|one| one.recipe == recipe)
            .unwrap();
        figures.rows[distance as usize].all.f1().unwrap()
    };
    let rows = found.recipes.iter().flat_map(|one| {
        let rows = one.rows.iter();
        rows.map(|row| (row.distance, f1(one.recipe, row.distance)))
    });
    let rows: Vec<_> = rows.collect();
    let most = rows.iter().map(|(_, f1)| f1.value).fold(0.0, f64::max);
    assert!(f1(best.recipe, best.layout.distance()).high >= most);
    // What has fewer tables is surely worse.
    let tables = |distance| Layout::for_documents(1e6, distance).unwrap().table_count();
    let cheaper = rows
        .iter()
        .filter(|(distance, _)| tables(*distance) < best.layout.table_count());
    assert!(cheaper.clone().count() > 0);
    assert!(cheaper.into_iter().all(|(_, f1)| f1.high < most));
}
