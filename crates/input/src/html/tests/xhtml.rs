//! XHTML: any tag may end itself, and CDATA sections are text.

use super::*;

const DECLARED: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

const DOCTYPE: &str = "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.1//EN\" \
                       \"http://www.w3.org/TR/xhtml11/DTD/xhtml11.dtd\">\n";

const PROSE: &str = "A fox runs through the deep dark wood behind the old mill, where none has seen it since the summer.";

/// A page as programs write it, with this at the end of its head and at the beginning of its body.
fn page(head: &str, body: &str) -> String {
    format!(
        "{DOCTYPE}<html xmlns=\"http://www.w3.org/1999/xhtml\" xml:lang=\"en\" lang=\"en\">\n<head>\n\
         <meta http-equiv=\"Content-Type\" content=\"application/xhtml+xml; charset=utf-8\" />\n\
         <link rel=\"stylesheet\" href=\"style.css\" type=\"text/css\" />\n{head}</head>\n\
         <body>\n{body}<div class=\"chapter\">\n<p>{PROSE}</p>\n</div>\n</body>\n</html>\n"
    )
}

/// The texts of a page that is known to be XHTML by its declaration, and by its type or name.
fn texts(page: &str) -> [String; 4] {
    let declared = format!("{DECLARED}{page}");
    let of = |html| Extraction {
        is_xhtml: true,
        ..Extraction::from(html)
    };
    [
        all(&declared),
        main(&declared),
        of(Html::All).text(page).into_owned(),
        of(Html::Main).text(page).into_owned(),
    ]
}

#[test]
fn what_ends_itself_does_not_swallow_the_page() {
    for head in [
        "<title/>\n",
        "<title />\n<script type=\"text/javascript\" src=\"jquery.js\" />\n",
        "<title>Chapter 1</title>\n<script src=\"a.js\"/><script src=\"b.js\"/>\n<style type=\"text/css\"/>\n",
        "<title>Chapter 1</title><noscript/>",
    ] {
        assert_eq!(texts(&page(head, "")), [PROSE; 4], "{head}");
    }
    for body in [
        "<div hidden=\"hidden\"/>\n",
        "<div style=\"display: none\" id=\"popup\"/>",
        "<div id=\"sidebar\"/>\n<nav/>\n<aside/>\n<header class=\"top\"/>",
        "<iframe src=\"x.html\" width=\"1\"/>\n<textarea rows=\"3\" name=\"q\"/><select name=\"s\"/>",
        "<template id=\"t\"/><button type=\"button\"/><video src=\"v.mp4\" controls=\"controls\"/>",
        "<p/>\n<a id=\"top\"/><a name=\"c1\" id=\"c1\"/><span class=\"pagebreak\" id=\"p12\"/><br/><hr />",
        "<svg xmlns=\"http://www.w3.org/2000/svg\"><title/><style/><g><path d=\"M0 0\"/></g></svg>",
        "<svg/><math xmlns=\"http://www.w3.org/1998/Math/MathML\"/>",
        "<script type=\"text/javascript\">//<![CDATA[\nif (a < b && c) x();\n//]]></script><script src=\"c.js\"/>",
    ] {
        assert_eq!(
            texts(&page("<title>Chapter 1</title>", body)),
            [PROSE; 4],
            "{body}"
        );
    }
}

/// In main content, links and headings count as such only where they are open.
#[test]
fn links_and_headings_that_end_themselves_hold_nothing() {
    for body in ["<p>Home</p><a href=\"#top\"/>", "<h2/><p>Home</p>"] {
        let whole = format!("Home\n{PROSE}");
        let expected = [whole.as_str(), PROSE, whole.as_str(), PROSE];
        assert_eq!(texts(&page("", body)), expected, "{body}");
    }
}

#[test]
fn elements_around_stay_open() {
    let body = "<div hidden=\"hidden\"><div/><p>x<span/>x</p><div><div/>x</div>x</div>";
    assert_eq!(texts(&page("", body)), [PROSE; 4]);
}

#[test]
fn cdata_is_text() {
    let body = "<pre><![CDATA[if a < b & c]]></pre>";
    let text = format!("if a < b & c\n{PROSE}");
    let [declared, _, typed, _] = texts(&page("<title/>", body));
    assert_eq!([&declared, &typed], [&text; 2]);
    assert_eq!(all(&page("<title>Chapter 1</title>", body)), PROSE);
}

/// HT2.
#[test]
fn an_end_tag_in_cdata_ends_no_script() {
    for body in [
        "<script><![CDATA[ x(\"<b>y</b></script>\"); z ]]></script>",
        "<script type=\"text/javascript\">//<![CDATA[\nx(\"</script>\"); y && z\n//]]></script>",
        "<script>\n<!--//--><![CDATA[//><!--\nx(\"</script>\")\n//--><!]]>\n</script>",
        "<style>/*<![CDATA[*/ p:after { content: \"</style>\" } x /*]]>*/</style>",
        "<script><![CDATA[</script>]]><![CDATA[</script> x]]></script>",
        "<!-- <![CDATA[ --><script><![CDATA[</script> x]]></script>",
        "<!--><script><![CDATA[</script> x]]></script>",
    ] {
        assert_eq!(texts(&page("<title>x</title>", body)), [PROSE; 4], "{body}");
    }
    // Sections of HTML are none, so the tag ends the script.
    assert_eq!(all("<script><![CDATA[</script>x]]></script>"), "x]]>");
}

#[test]
fn cdata_that_does_not_end_changes_nothing_before_it() {
    let whole = format!("{DECLARED}<p>a</p><p><![CDATA[b < c & d]]></p>");
    assert_eq!(all(&whole), "a\nb < c & d");
    for open in ["<![CDATA[e", "<!-- e", "<!-- <![CDATA[e]]>"] {
        let text = all(&format!("{whole}{open}"));
        assert!(text.starts_with("a\nb < c & d"), "{open}: {text}");
    }
    // The end of a section was written as text, as some programs do. The next section has one.
    let scripts = "<script><![CDATA[ a ]]&gt;</script><p>b</p><script><![CDATA[</script>c]]></script><p>d</p>";
    assert_eq!(all(&format!("{DECLARED}{scripts}")), "b\nd");
}

/// HT2.
#[test]
fn what_is_open_is_hidden_as_in_html() {
    for body in [
        "<script src=\"a.js\">x < y</script>",
        "<style>p &gt; a { x }</style>",
        "<div hidden=\"hidden\"><p>x</p></div>",
        "<iframe src=\"a.html\">x</iframe>",
        "<template><script/>x</template>",
    ] {
        assert_eq!(texts(&page("<title>x</title>", body)), [PROSE; 4], "{body}");
    }
}
