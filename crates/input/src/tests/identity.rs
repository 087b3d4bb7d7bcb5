//! What makes an input another one.

use std::fs::{File, FileTimes};
use std::time::{Duration, UNIX_EPOCH};

use super::*;
use crate::{InputIdentity, Position};

fn of(args: &InputOptions) -> InputIdentity {
    InputIdentity::of(args, Needs::CLIENT).unwrap()
}

fn modified(path: &PathBuf, seconds: u64) {
    let time = UNIX_EPOCH + Duration::from_secs(seconds);
    let file = File::options().write(true).open(path).unwrap();
    file.set_times(FileTimes::new().set_modified(time)).unwrap();
}

#[test]
fn an_input_that_was_not_touched_is_the_same() {
    let folder = Folder::new();
    folder.write("a.tsv", "a\t1\n");
    folder.write("deep/b.tsv", "b\t2\n");
    let pattern = folder.path().join("**/*.tsv");
    for (format, path) in [(Format::Files, folder.path()), (Format::Tsv, pattern)] {
        let args = args(format, &[path]);
        let identity = of(&args);
        assert_eq!(of(&args), identity);
        assert!(of(&args).differences(&identity).is_empty());
        let json = serde_json::to_string(&identity).unwrap();
        assert_eq!(
            serde_json::from_str::<InputIdentity>(&json).unwrap(),
            identity
        );
    }
}

#[test]
fn every_change_to_the_files_shows() {
    let folder = Folder::new();
    let a = folder.write("a", "one\n");
    let b = folder.write("b", "two\n");
    let args = args(Format::Files, &[folder.path()]);
    let touched = "a file was modified, renamed or replaced";
    let mut before = of(&args);
    let mut expect = |what: &str, shown: &[&str]| {
        let now = of(&args);
        assert_eq!(now.differences(&before), shown, "{what}");
        assert_ne!(now, before, "{what}");
        before = now;
    };
    modified(&a, 1);
    expect("another time", &[touched]);
    fs::rename(&b, folder.path().join("c")).unwrap();
    expect("another name", &[touched]);
    folder.write("deep/d", "");
    expect("one more", &["files 2 then, 3 now"]);
    fs::remove_file(&a).unwrap();
    expect("one less", &["files 3 then, 2 now", "bytes 8 then, 4 now"]);
    folder.write("c", "longer\n");
    expect("longer", &["bytes 4 then, 7 now"]);
}

#[test]
fn every_argument_that_says_how_it_is_read_shows() {
    let folder = Folder::new();
    let path = folder.write("a.jsonl", "");
    let other = folder.write("b.jsonl", "");
    let same = args(Format::Jsonl, std::slice::from_ref(&path));
    let before = of(&same);
    let named = || Some("n".to_owned());
    let change = |change: &dyn Fn(&mut InputOptions), shown: &str| {
        let mut changed = same.clone();
        change(&mut changed);
        assert_eq!(of(&changed).differences(&before), [shown]);
    };
    let inputs = format!("input {} then, {} now", path.display(), other.display());
    change(&|args| args.paths = vec![other.clone()], &inputs);
    change(
        &|args| args.format = Some(Format::Lines),
        "--format jsonl then, lines now",
    );
    change(
        &|args| args.id_field = named(),
        "--id-field not given then, n now",
    );
    change(
        &|args| args.text_fields = named().into_iter().collect(),
        "--text-field not given then, n now",
    );
    change(
        &|args| args.fingerprint_field = named(),
        "--fingerprint-field not given then, n now",
    );
    let table = args(Format::Csv, std::slice::from_ref(&path));
    let separated = InputOptions {
        separator: Some(crate::Separator::TAB),
        ..table.clone()
    };
    let differences = of(&separated).differences(&of(&table));
    assert_eq!(differences, ["--separator not given then, tab now"]);
    change(
        &|args| args.features_field = named(),
        "--features-field not given then, n now",
    );
    change(
        &|args| args.html = Some(crate::Html::All),
        "--html not given then, all now",
    );
    change(
        &|args| args.skip_bad_lines = true,
        "--skip-bad-lines false then, true now",
    );
    // A format that is suggested is as one that is given.
    let suggested = InputOptions {
        format: None,
        ..same
    };
    assert_eq!(of(&suggested), before);
}

#[test]
fn the_order_of_files_counts() {
    let folder = Folder::new();
    let a = folder.write("a.tsv", "a\t1\n");
    let b = folder.write("b.tsv", "b\t2\n");
    let one = of(&args(Format::Tsv, &[a.clone(), b.clone()]));
    assert_ne!(of(&args(Format::Tsv, &[b, a])), one);
}

#[test]
fn what_can_be_read_only_once_has_no_identity() {
    let pipe = PathBuf::from("/dev/null");
    for (paths, shown) in [
        (vec![], "standard input"),
        (vec![PathBuf::from("-")], "standard input"),
        (vec![pipe], "/dev/null"),
    ] {
        let refused = InputIdentity::of(&args(Format::Lines, &paths), Needs::CLIENT);
        let message = refused.unwrap_err().to_string();
        assert!(
            message.contains(&format!("and {shown} cannot")),
            "{message}"
        );
    }
}

fn position(text: &str, count: u64) -> Position {
    let input = open_bytes(&args(Format::Tsv, &[]), text.as_bytes()).unwrap();
    Position::after(count, &mut input.documents()).unwrap()
}

#[test]
fn a_position_knows_the_documents_before_it_and_no_others() {
    let two = position("a\t1\nb\t2\nc\t3\n", 2);
    assert_eq!(two.documents, 2);
    assert_eq!(position("a\t1\nb\t2\nx\t9\n", 2), two);
    for other in [
        "b\t2\na\t1\n",
        "a\t1\nb\t3\n",
        "a\t1\nB\t2\n",
        "a\t1\n\u{e4}\t2\n",
    ] {
        let position = position(other, 2);
        assert_eq!(position.documents, 2);
        assert_ne!(position, two, "{other:?}");
    }
    assert_eq!(position("a\t1\n", 2).documents, 1, "there are no more");
}
