//! HT1: pages made to cost time, memory or the stack.

use std::time::{Duration, Instant};

use super::*;

/// A million elements deep takes well below a second where time is linear, and hours where it is not.
const LONG: Duration = Duration::from_secs(60);

fn assert_bounded(name: &str, markup: &str) {
    let start = Instant::now();
    for html in [Html::Main, Html::All] {
        let text = html.text(markup);
        assert!(text.len() <= markup.len(), "{name}");
    }
    let took = start.elapsed();
    assert!(took < LONG, "{name} took {took:?}");
}

/// How often a piece of markup is repeated.
const DEEP: usize = 1_000_000;

#[test]
fn a_million_elements_in_each_other_are_read_in_linear_time() {
    for (name, markup) in [
        ("div", "<div>".repeat(DEEP) + "x"),
        ("div p", "<div><p>x ".repeat(DEEP)),
        ("closed", "<div>".repeat(DEEP) + &"</div>".repeat(DEEP)),
        (
            "closed by others",
            "<div>".repeat(DEEP) + &"</b>".repeat(DEEP),
        ),
        ("crossed", "<b><i></b></i>".repeat(DEEP)),
        ("table", "<table><tr><td>".repeat(DEEP) + "x"),
        (
            "article",
            "<article>".repeat(DEEP) + "x" + &"</article>".repeat(DEEP),
        ),
        ("template", "<template>".repeat(DEEP) + "x"),
        ("nav in aside", "<nav><aside>".repeat(DEEP) + "x"),
        // Each seems to be beside the main content, and holds all that follow.
        ("comments by class", "<div class=comment><p>x".repeat(DEEP)),
        ("hidden", "<p hidden>".repeat(DEEP) + "x"),
        (
            "hidden, closed by others",
            "<p hidden>".repeat(DEEP) + &"</b>".repeat(DEEP),
        ),
        ("links", "<a href=x>x".repeat(DEEP)),
        ("headings", "<h1>x".repeat(DEEP)),
        ("end tags", "</p>".repeat(DEEP)),
        ("comments", "<!--".repeat(DEEP)),
        ("scripts", "<script>".repeat(DEEP)),
        ("references", "&#".repeat(DEEP)),
        ("svg", "<svg><title>".repeat(DEEP) + "x"),
        ("svg that ends itself", "<svg><style/>".repeat(DEEP) + "x"),
        ("svg ended by html", "<svg><g><p>".repeat(DEEP)),
        (
            "svg ended by html after svg",
            "<svg>".repeat(DEEP) + &"</p><svg>".repeat(DEEP),
        ),
        (
            "ends of what is not open in svg",
            format!("<svg>{}{}", "<g>".repeat(DEEP), "</a>".repeat(DEEP)),
        ),
        (
            "attributes",
            format!("<p {}>x", "a=b class=c ".repeat(DEEP)),
        ),
        ("quotes", "<a \"".repeat(DEEP)),
        // Each end tag looks for its element in vain, past all the others.
        (
            "ends of what is open elsewhere",
            format!("<p><table>{}{}", "<b>".repeat(DEEP), "</p>".repeat(DEEP)),
        ),
        (
            "ends of what is not open",
            format!("{}{}", "<b>".repeat(DEEP), "</i>".repeat(DEEP)),
        ),
    ] {
        assert_bounded(name, &markup);
    }
}

#[test]
fn xhtml_is_read_in_linear_time() {
    let xml = |markup: &str| "<?xml?>".to_owned() + &markup.repeat(DEEP);
    for (name, markup) in [
        ("cdata", xml("<![CDATA[")),
        ("cdata that ends once", xml("<![CDATA[") + "]]>"),
        ("what ends itself", xml("<main><p hidden/><script/>")),
    ] {
        assert_bounded(name, &markup);
    }
}

#[test]
fn a_header_of_many_character_sets_is_read_in_linear_time() {
    let header = "charset=".repeat(500_000);
    let start = Instant::now();
    assert_eq!(decoded(b"a", Some(header.as_bytes())).markup, "a");
    let took = start.elapsed();
    assert!(took < LONG, "took {took:?}");
}

/// HT2.
#[test]
fn hidden_elements_are_left_out_at_any_depth() {
    for depth in [0, 1, 100] {
        for hidden in [
            "<script>x</script>",
            "<style>x</style>",
            "<p hidden>x<i hidden>x</i>x</p>",
            "<b hidden>x<div hidden>x</div>x</b>",
        ] {
            let deep = "<div class=comment><p>a</p>".repeat(depth);
            let expected = "a\n".repeat(depth) + "b";
            assert_eq!(
                all(&format!("{deep}{hidden}<p>b")),
                expected,
                "{depth} {hidden}"
            );
        }
    }
    let start = "<div hidden><i hidden>".repeat(DEEP);
    let page = start + "x" + &"</i>x</div>".repeat(DEEP) + "b";
    assert_bounded("hidden in others", &page);
    assert_eq!(all(&page), "b");
}

/// Each heading of prose is a run of its own, and all blocks before it are headings.
#[test]
fn pages_of_headings_alone_are_read_in_linear_time() {
    let headings = format!("<h1>{}</h1>{}", "x".repeat(70), "<h1>x</h1>".repeat(7));
    for runs in [125_000, 250_000] {
        let markup = headings.repeat(runs);
        assert_bounded(&format!("{runs} runs of headings"), &markup);
        assert_eq!(main(&markup).lines().count(), runs * 8 - 7);
    }
}

#[test]
fn one_huge_tag_is_read_in_linear_time() {
    let bytes = match std::env::var_os("SIMSHARD_LONG") {
        Some(_) => 100 << 20,
        None => 10 << 20,
    };
    let long = "a".repeat(bytes);
    for (name, markup) in [
        ("name", format!("<{long}")),
        ("closed name", format!("<{long}>x</{long}>")),
        ("value", format!("<p class='{long}'>x")),
        ("style", format!("<p style='{long}'>x")),
        ("word", long),
    ] {
        assert_bounded(name, &markup);
    }
}

#[test]
fn a_block_is_held_only_where_there_is_text() {
    let deep = Page::new(&"<nav><article>".repeat(100_000), false);
    assert!(deep.blocks.is_empty() && deep.holders.is_empty() && deep.regions.is_empty());
    let same = Page::new(&("<div>".repeat(100_000) + "<p>a<p>b"), false);
    assert_eq!((same.blocks.len(), same.holders.len()), (2, 1));
    let flat = Page::new(&"<p> </p>".repeat(100_000), false);
    assert!(flat.blocks.is_empty());
}
