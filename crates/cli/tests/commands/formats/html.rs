//! Pages of HTML as crawls hold them: in several character sets and designs, broken and hostile.

use encoding_rs::{Encoding, GB18030, KOI8_R, SHIFT_JIS, UTF_8, WINDOWS_1252};

use super::*;

const FRENCH: &str = "Le renard brun et rapide saute par-dessus le chien paresseux, puis il s'enfuit \
    dans la forêt. Personne au village ne l'a revu depuis cet été-là, bien que le chien aboie encore \
    après les arbres chaque soir où le vent se lève. Les enfants racontent qu'il habite désormais près \
    de la rivière, sous les racines d'un vieux chêne, et qu'il ne craint plus ni les hommes ni l'hiver.";
const JAPANESE: &str = "素早い茶色の狐がのろまな犬を飛び越えて森の中へ走り去っていった。その夏から村で狐を見た者は\
    いないが、風の強い夜には犬が今でも木々に向かって吠えている。子供たちは狐が川のそばの古い樫の木の根元に\
    住んでいると話し、もう人も冬も恐れてはいないのだという。";
const CHINESE: &str = "本店新到一批春季茶叶，全部采自海拔一千米以上的山区，由当地农户手工炒制。欢迎广大顾客前来\
    品尝选购，购买满两百元即可免费送货上门，数量有限，售完为止。";
const RUSSIAN: &str = "Расписание электричек на воскресенье изменено из-за ремонта путей: поезда до вокзала \
    отправляются на двадцать минут позже обычного, а некоторые из них следуют без остановок.";

/// A page whose header, navigation and sidebar are those of a site.
fn old_site(text: &str) -> String {
    let links: String = (0..40)
        .map(|n| format!("<a href=/{n}>Rubrique {n} du site</a> | "))
        .collect();
    format!(
        "<html><title>Ancien site</title><body><table><tr><td>{links}</td><td><p>{text}</p></td></tr></table>\
         <div class=footer>Tous droits réservés. Reproduction interdite sans accord écrit de l'éditeur.</div>"
    )
}

/// Another site, whose markup is broken.
fn new_site(text: &str) -> String {
    let teasers: String = (0..9)
        .map(|n| {
            format!("<li><a href=/{n}>An unrelated article, number {n}, with a long headline</a>")
        })
        .collect();
    format!(
        "<!DOCTYPE html><script>var a = '<p>';</script><header><nav><ul>{teasers}</nav></header>\
         <main><b><i></b><p>{text}<ul>{teasers}</main></div></span><aside>Subscribe now!</aside>"
    )
}

fn encoded(encoding: &'static Encoding, page: &str) -> Vec<u8> {
    let (bytes, _, unmappable) = encoding.encode(page);
    assert!(!unmappable, "{page}");
    bytes.into_owned()
}

fn crawl() -> Vec<Vec<u8>> {
    let meta = |name| format!("<meta charset={name}>");
    let edited = FRENCH
        .replace("enfants", "anciens")
        .replace('é', "&eacute;");
    vec![
        response(
            "http://fr.old/",
            "text/html",
            encoded(WINDOWS_1252, &old_site(FRENCH)),
        ),
        response("http://logo/", "image/png", "PNG"),
        response(
            "http://zh/",
            "text/html",
            encoded(GB18030, &(meta("gb18030") + CHINESE)),
        ),
        response(
            "http://fr.new/",
            "text/html; charset=utf-8",
            encoded(UTF_8, &new_site(&edited)),
        ),
        response(
            "http://ja.old/",
            "text/html; charset=shift_jis",
            encoded(SHIFT_JIS, &old_site(JAPANESE).replace('é', "&eacute;")),
        ),
        response(
            "http://ru/",
            "text/html",
            encoded(KOI8_R, &(meta("koi8-r") + RUSSIAN)),
        ),
        response(
            "http://ja.new/",
            "application/xhtml+xml",
            encoded(UTF_8, &new_site(JAPANESE)),
        ),
    ]
}

#[test]
fn near_duplicates_are_found_among_pages_of_several_character_sets() {
    let folder = Folder::new();
    let warc = folder.write("crawl.warc.gz", &gzip(&crawl()));
    for html in [&[][..], &["--html", "main"]] {
        let output = run(BINARY, [&["find-clusters", &warc], html].concat(), b"");
        assert_eq!(output.status.code(), Some(0), "{}", log(&output));
        let clusters = String::from_utf8_lossy(&output.stdout);
        let expected =
            "[\"http://ja.old/\", \"http://ja.new/\"]\n[\"http://fr.old/\", \"http://fr.new/\"]\n";
        assert_eq!(clusters, expected);
        let counted = "skipped 1 other record (image/png: 1)\n\
                       1 page without a declared character set, read as windows-1252\n";
        assert_eq!(said(&output), counted);
        let pairs = succeed(&[&["find-pairs", &warc], html].concat(), b"");
        assert_eq!(pairs.lines().count(), 2, "{pairs}");
    }
    // What surrounds the texts keeps them apart.
    for html in ["all", "raw"] {
        assert_eq!(succeed(&["find-clusters", "--html", html, &warc], b""), "");
    }
}

#[test]
fn every_page_is_read_in_its_character_set() {
    let hashes = succeed(&["hash", "--format", "warc"], &crawl().concat());
    for (uri, text) in [
        ("http://fr.old/", FRENCH),
        ("http://ja.new/", JAPANESE),
        ("http://zh/", CHINESE),
        ("http://ru/", RUSSIAN),
    ] {
        let line = format!("{uri}\t{}\n", fingerprint(text));
        assert!(hashes.contains(&line), "{line}{hashes}");
    }
}

#[test]
fn texts_that_look_like_pages_are_told_of_once_where_no_option_says_what_is_taken() {
    let pages = [FRENCH, RUSSIAN].map(|text| format!("<!DOCTYPE html>{}", old_site(text)));
    let lines: String = [FRENCH, &pages[0], &pages[1]]
        .map(|text| json!({"id": text.len(), "text": text}).to_string() + "\n")
        .concat();
    let rows = format!("id,text\n1,{FRENCH:?}\n2,{:?}\n", pages[1]);
    let hints = |args: &[&str], input: &str| {
        let output = run(BINARY, args, input);
        assert_eq!(output.status.code(), Some(0), "{}", log(&output));
        let hint = "the texts look like HTML: --html main takes their main text, and --html raw ";
        log(&output).matches(hint).count()
    };
    let folder = Folder::new();
    let kept = folder.path("kept.jsonl");
    let jsonl = ["hash", "--format", "jsonl"];
    assert_eq!(hints(&jsonl, &lines), 1);
    assert_eq!(hints(&["hash", "--format", "csv"], &rows), 1);
    let dedup = ["dedup", "--format", "jsonl", "--output", &kept];
    assert_eq!(hints(&dedup, &lines), 1);
    for html in ["main", "all", "raw"] {
        assert_eq!(hints(&[&jsonl[..], &["--html", html]].concat(), &lines), 0);
    }
    let first = lines.lines().next().unwrap();
    assert_eq!(hints(&jsonl, first), 0);
}

#[test]
fn hostile_pages_hide_no_near_duplicates() {
    let deep = |element: &str| element.repeat(1_000_000) + FRENCH;
    let attributes = format!("<p {}>{FRENCH}", "a=b ".repeat(2_000_000));
    let records = [
        response("deep", "text/html", deep("<div>")),
        response("deeper", "text/html", deep("<b><p>")),
        response("wide", "text/html", attributes),
        response(
            "unclosed",
            "text/html",
            format!("{FRENCH}<!--{}", "<".repeat(8_000_000)),
        ),
        response("tag", "text/html", "<".to_owned() + &"a".repeat(8_000_000)),
    ];
    let output = run(
        BINARY,
        ["find-clusters", "--format", "warc"],
        records.concat(),
    );
    assert_eq!(output.status.code(), Some(0), "{}", log(&output));
    let found = String::from_utf8_lossy(&output.stdout);
    assert_eq!(found, "[\"deep\", \"deeper\", \"wide\", \"unclosed\"]\n");
    assert_eq!(said(&output), "skipped 1 unhashable text\n");
}

/// It takes more than a record may, so it is left out as any text would be.
#[test]
fn a_tag_beyond_the_limit_is_a_bad_record() {
    let huge = response("huge", "text/html", "<".to_owned() + &"a".repeat(100 << 20));
    let warc = [huge, page("small", FOX)].concat();
    let args = ["hash", "--format", "warc", "--skip-bad-lines"];
    let output = run(BINARY, args, warc);
    assert_eq!(output.status.code(), Some(0), "{}", log(&output));
    let said = said(&output);
    assert!(
        said.starts_with("skipped 1 bad record\n  <stdin>: record "),
        "{said}"
    );
}
