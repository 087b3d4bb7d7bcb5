//! SVG and MathML in a page: their scripts, styles and titles are read as markup, and may end themselves.

use super::*;

#[test]
fn what_ends_itself_in_svg_does_not_swallow_the_page() {
    for name in [
        "style",
        "script",
        "title",
        "textarea",
        "iframe",
        "noscript",
        "xmp",
        "noembed",
        "plaintext",
    ] {
        for page in [
            format!("<p>a</p><svg><{name}/></svg><p>b</p>"),
            format!("<p>a</p><svg><{name} id=x /><path d='M0 0'/></svg><p>b</p>"),
            format!("<p>a</p><svg><g><g/><{name}/><{name}>x</{name}></g></svg><p>b</p>"),
            format!("<p>a</p><svg><{name}>x</svg><p>b</p>"),
            format!("<p>a</p><math><{name}/></math><p>b</p>"),
        ] {
            assert_eq!(all(&page), "a\nb", "{page}");
            assert_eq!(main(&page), "a\nb", "{page}");
        }
    }
}

/// HT2.
#[test]
fn what_ends_itself_in_html_stays_open() {
    for name in ["style", "script", "textarea", "noscript"] {
        for (page, text) in [
            (
                format!("<p>a</p><{name}/><p>x</p></{name}><p>b</p>"),
                "a\nb",
            ),
            // An element of SVG that holds HTML.
            (
                format!("<p>a</p><svg><foreignObject><{name}/></svg>x</{name}></svg><p>b"),
                "a\nb",
            ),
            (
                format!("<p>a</p><math><mtext><{name}/></mtext></math>x"),
                "a",
            ),
        ] {
            assert_eq!(all(&page), text, "{page}");
        }
    }
}

/// HT2.
#[test]
fn svg_is_hidden_whatever_it_holds() {
    for svg in [
        "<svg><style>a > b { x }</style><text>x</text></svg>",
        "<svg><script>if (a < b) x('<g>')</script>x</svg>",
        "<svg><style><![CDATA[ a > b { x } ]]></style>x</svg>",
        "<svg><title>x<b>x</b></title>x</svg>",
        "<svg><desc><p>x</p><style>x</style></desc>x</svg>",
        "<svg><foreignObject><div>x<svg><g>x</g></svg>x</div></foreignObject>x</svg>",
        "<svg><foreignObject><ul><li>x<li>x</ul></foreignObject>x</svg>",
        "<svg><g><td>x<td>x</g>x</svg>",
        "<SVG><STYLE/><TEXT>x</TEXT></SVG>",
    ] {
        let page = format!("<p>a</p>{svg}<p>b</p>");
        assert_eq!(all(&page), "a\nb", "{svg}");
    }
}

#[test]
fn a_tag_of_html_ends_svg_that_was_left_open() {
    for (page, text) in [
        ("a<svg><g>x<p>b", "a\nb"),
        ("a<svg><style>x<div>b</div>c", "a\nb\nc"),
        ("a<svg>x</p>b", "a\nb"),
        ("a<svg>x<br>b", "a b"),
        ("<div>a<svg><g>x</div>b", "a\nb"),
        ("a<svg><title>x<p>x</p></title>x</svg><p>b", "a\nb"),
        ("a<svg><desc>x<svg><g>x<p>x</p></desc>x</svg><p>b", "a\nb"),
    ] {
        assert_eq!(all(page), text, "{page}");
    }
}

#[test]
fn cdata_is_text_in_mathml() {
    let page = "<p>a <math><ms><![CDATA[b < c]]></ms></math>";
    assert_eq!(all(page), "a b < c");
    assert_eq!(all("<p>a <math><ms>b</ms></math><![CDATA[c]]>"), "a b");
}

#[test]
fn a_formula_is_a_part_of_its_line_and_its_source_is_left_out() {
    let formula = "<math><semantics><mrow><mi>x</mi><mo>=</mo><mfrac><mn>1</mn><mn>2</mn></mfrac></mrow>\
                   <annotation encoding='application/x-tex'>x=\\frac12</annotation></semantics></math>";
    let page = format!("<p>The value {formula}is <b>new</b>.</p><p>b</p>");
    assert_eq!(all(&page), "The value x = 1 2 is new.\nb");
    // As MathJax draws it.
    let drawn = "<p>Let <mjx-container><mjx-math>x</mjx-math></mjx-container> be new.";
    assert_eq!(all(drawn), "Let x be new.");
    // Elsewhere it is an element like any other.
    assert_eq!(all("<annotation>a</annotation>b"), "a\nb");
}
