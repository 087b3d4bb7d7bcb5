//! What turning pages into text promises, rule by rule.

mod charset;
mod foreign;
mod hostile;
mod main_content;
mod xhtml;

use super::*;

fn all(markup: &str) -> String {
    Html::All.text(markup).into_owned()
}

fn main(markup: &str) -> String {
    Html::Main.text(markup).into_owned()
}

#[test]
fn words_are_parted_where_a_reader_sees_them_parted() {
    for (markup, text) in [
        ("<b>H</b>ello <i>wor<wbr>ld</i>", "Hello world"),
        ("<p>one<p>two<div>three</div>four", "one\ntwo\nthree\nfour"),
        ("one<br>two<img>three", "one twothree"),
        ("<table><tr><td>a</td><td>b</td></tr><tr><td>c", "a b\nc"),
        ("<ul><li>a<li>b</ul>", "a\nb"),
        ("  one \n\t two\u{A0}\u{3000}three  ", "one two three"),
        ("a<!-- b --> c", "a c"),
        ("a<x-unknown>b", "a\nb"),
        ("a <a href=x><svg><path/></svg>b</a> c", "a b c"),
        ("a<select><option>x<option>y</select>b", "a b"),
        ("a <button><div><nav>x</nav></div></button>b", "a b"),
        ("", ""),
        ("<p> </p>", ""),
    ] {
        assert_eq!(all(markup), text, "{markup}");
    }
}

#[test]
fn entities_are_decoded() {
    let markup =
        "&lt;p&gt; &amp;amp; &eacute;&#233;&#xe9; &#x1F600; &notin; &AMP &nbsp;| &nonsense; &#0;";
    let text = "<p> &amp; ééé 😀 ∉ & | &nonsense; \u{FFFD}";
    assert_eq!(all(markup), text);
}

/// HT2.
#[test]
fn invisible_content_is_left_out() {
    for markup in [
        "<script>if (a < b) x('</p>')</script>",
        "<SCRIPT><!-- <script>x</script> --></SCRIPT>",
        "<style>p { x }</style>",
        "<template><p>x<template>x</template>x</p></template>",
        "<noscript><p>x</p></noscript>",
        "<title>x</title>",
        "<noembed><p>x</p></noembed>",
        "<textarea>x</textarea>",
        "<select><option>x<option>x</select>",
        "<svg><text>x</text></svg>",
        "<svg><text>x</text><a/></svg>",
        "<p hidden>x</p>",
        "<div hidden><div>x</div>x</div>",
        "<div style='color: red; Display :none'>x</div>",
        "<i aria-hidden=true>x</i>",
        "<div hidden class=sidebar>x</div>",
        "<div class=sidebar hidden>x</div>",
        "<script class=sidebar>x</script>",
        "<!-- x -->",
        "<!-- x ",
        "<p title=x>",
    ] {
        let page = format!("<p>a</p>{markup}<p>b</p>");
        let expected = if markup.ends_with("x ") { "a" } else { "a\nb" };
        assert_eq!(all(&page), expected, "{markup}");
    }
    let long = format!("<p style='--a: {}; DISPLAY: None'>x</p>b", "a".repeat(1000));
    assert_eq!(all(&long), "b");
    assert_eq!(all("<input hidden>a<svg/>b<body hidden>c"), "a b\nc");
}

/// As in lists of questions, whose answers they show.
#[test]
fn a_button_is_text_where_a_heading_begins_with_it() {
    for (markup, text) in [
        (
            "<h3><button>How long?</button></h3><p>A day.",
            "How long?\nA day.",
        ),
        (
            "<h3> <b><button>How <i>long</i>?</button></b></h3>A day.",
            "How long?\nA day.",
        ),
        (
            "<h3>Delivery <button>Copy</button></h3>A day.",
            "Delivery\nA day.",
        ),
        ("<h3></h3><button>Copy</button>A day.", "A day."),
    ] {
        assert_eq!(all(markup), text, "{markup}");
    }
}

/// HT2.
#[test]
fn nuls_are_left_out_and_part_no_words() {
    assert_eq!(all("a\0b"), "ab");
    assert_eq!(main("<p>a\0b<scr\0ipt>x</script>"), "ab");
    assert_eq!(Html::Raw.text("a\0b"), "a\0b");
}

#[test]
fn cdata_is_text_in_xhtml_and_a_comment_in_html() {
    let body = "<p>a<![CDATA[ <b> & ]]>c</p>";
    assert_eq!(all(&format!("<?xml version='1.0'?>{body}")), "a <b> & c");
    assert_eq!(all("<p>a<![CDATA[b]]>c</p>"), "ac");
    assert_eq!(all("<script>//<![CDATA[\nx\n//]]></script>a"), "a");
}

#[test]
fn raw_is_the_markup() {
    let markup = "<p>&amp;<script>x";
    assert_eq!(Html::Raw.text(markup), markup);
}

#[test]
fn elements_end_where_the_standard_ends_them() {
    let a = "<p>before the place, in some words</p>";
    let b = "<p>after the place, in others</p>";
    let all = |middle: &str| Html::All.text(&format!("{a}{middle}{b}")).into_owned();
    let expected = "before the place, in some words\nafter the place, in others";
    for hidden in [
        "<p hidden>x",
        "<p hidden>x<p hidden>y",
        "<ul><li hidden>x</ul>",
        "<ul><li hidden>x<ul><li>y<li>z</ul></ul>",
        "<div><span hidden>x</div>",
        "<div><b hidden><i>x</div>",
        "<dl><dt hidden>x<dd hidden>y</dl>",
        "<table><tr><td hidden>x</table>",
        "<table><td hidden>x<tr hidden><td>y</table>",
        "<table><colgroup hidden><tr hidden><td>y</table>",
        "<table hidden><tr><td><table><tr><td>x</table>y</table>",
        "<div hidden>x</span>y</p>z</div>",
        "<p hidden><span>x</p>",
        "<svg><path/><path/><g>x</svg>",
        "<div hidden><ul><li>x</div>",
        "<div hidden><table><tr><td>x</div>y</table>z</div>",
        "</div></p></ul>",
    ] {
        let text = all(hidden);
        let text = text.replace("\n\n", "\n");
        assert_eq!(text, expected, "{hidden}");
    }
    for (page, text) in [
        ("<dialog><p>a</dialog><p>b", "b"),
        ("<div><button>m</div><p>b", "b"),
        ("<p>a<button>m<p>n</button>b", "a b"),
        ("<button>A<button>B</button>rest", "rest"),
        ("<table><tr><td><button>A<td>b</table>", "b"),
    ] {
        assert_eq!(Html::All.text(page), text, "{page}");
    }
    for (shown, line) in [
        ("<ul><li hidden>x<li>y</ul>", "y"),
        ("<dl><dt hidden>x<dd>y</dl>", "y"),
        ("<table><tr><td hidden>x<td>y</table>", "y"),
        ("<table><tr hidden><td>x<tr><td>y</table>", "y"),
        (
            "<table><tbody hidden><tr><td>x<tbody><tr><td>y</table>",
            "y",
        ),
        ("<div><li hidden>x</div>y", "y"),
    ] {
        let expected = expected.replace('\n', &format!("\n{line}\n"));
        assert_eq!(all(shown), expected, "{shown}");
    }
}
