//! What `text` prints: the texts that the other commands fingerprint.

use super::*;

const PROSE: &str = "A page tells of a fox that runs through the deep dark wood behind the old mill, where \
    none has seen it since the summer.";

/// A page whose main text is the prose.
fn page_of(prose: &str) -> String {
    format!(
        "<!DOCTYPE html><nav><a href=/>Home</a></nav><main><p>{prose}</p></main><footer>Imprint"
    )
}

#[test]
fn the_text_of_one_document_is_printed_as_it_is() {
    let folder = Folder::new();
    let page = folder.write("page.html", page_of(PROSE).as_bytes());
    let notes = folder.write("notes", b"one\n\n two");
    let raw = page_of(PROSE);
    for (args, expected) in [
        (&[&*page][..], PROSE),
        (
            &[&page, "--html", "all"],
            &format!("Home\n{PROSE}\nImprint"),
        ),
        (&[&page, "--html", "raw"], &raw),
        (&["--format", "files", &notes], "one\n\n two"),
    ] {
        let printed = succeed(&[&["text"][..], args].concat(), b"");
        assert_eq!(printed, format!("{expected}\n"), "{args:?}");
    }
    assert_eq!(succeed(&["text"], b"one line\n"), "one line\n");
    assert_eq!(succeed(&["text"], b""), "");
}

#[test]
fn several_texts_stand_below_their_ids() {
    let lines = "{\"id\": \"a\", \"title\": \"T\", \"text\": \"x\"}\n\
                 {\"id\": \"b\\n\", \"title\": \"U\", \"text\": \"y\\n\"}\n\
                 {\"id\": \"c\", \"title\": \"\", \"text\": \"\"}\n";
    let args = ["text", "--format", "jsonl"];
    let printed = succeed(&args, lines.as_bytes());
    let expected = "==> a <==\nx\n\n==> b\\n <==\ny\n\n==> c <==\n\n";
    assert_eq!(printed, expected);
    let fields = ["--text-field", "title", "--text-field", "text"];
    let few = [&args[..], &fields, &["-n", "2"]].concat();
    let printed = succeed(&few, lines.as_bytes());
    assert_eq!(printed, "==> a <==\nT\nx\n\n==> b\\n <==\nU\ny\n");
    let one = [&args[..], &["-n", "1"]].concat();
    assert_eq!(succeed(&one, lines.as_bytes()), "x\n");
    let json = [&args[..], &["--json"]].concat();
    let expected = "{\"id\":\"a\",\"text\":\"x\"}\n{\"id\":\"b\\n\",\"text\":\"y\\n\"}\n{\"id\":\"c\",\"text\":\"\"}\n";
    assert_eq!(succeed(&json, lines.as_bytes()), expected);
}

#[test]
fn the_json_of_texts_has_the_fingerprints_of_the_input() {
    let folder = Folder::new();
    let records = [
        response("http://a/", "text/html", page_of(PROSE)),
        response("http://logo/", "image/png", "PNG"),
        response("http://b/", "text/plain", FOX),
        response("http://c/", "text/html", page_of("too short")),
    ];
    let warc = folder.write("crawl.warc.gz", &gzip(&records));
    let output = run(BINARY, ["text", &warc, "--json", "--min-words", "5"], "");
    let skipped = "skipped 1 other record (image/png: 1), 1 short text\n";
    assert_eq!(log(&output), skipped);
    let texts = folder.write("texts.jsonl", &output.stdout);
    let of_texts = succeed(&["hash", &texts], b"");
    let of_pages = succeed(&["hash", &warc, "--min-words", "5"], b"");
    assert_eq!(of_texts.lines().count(), 3);
    assert_eq!(of_texts, of_pages);
}

#[test]
fn what_comes_before_a_bad_line_is_printed_and_documents_without_texts_are_refused() {
    let lines = "{\"id\": 1, \"text\": \"x\"}\n{\"id\": 2}\n";
    let output = run(BINARY, ["text", "--format", "jsonl"], lines);
    assert_eq!(output.status.code(), Some(2));
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(printed, "==> 1 <==\nx\n");
    assert!(
        log(&output).starts_with("error: <stdin>:2: "),
        "{}",
        log(&output)
    );
    for (args, what) in [
        ("--format hashes", "fingerprints"),
        ("--format jsonl --features-field words", "features"),
    ] {
        let output = run(BINARY, ["text"].into_iter().chain(args.split(' ')), "");
        assert_eq!(output.status.code(), Some(2), "{args}");
        let said = format!("error: these documents carry {what}, and no texts\n");
        assert_eq!(log(&output), said);
    }
}
