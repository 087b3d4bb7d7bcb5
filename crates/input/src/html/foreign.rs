//! SVG and MathML in a page. Their tags can end themselves, and their scripts, styles and titles are markup. Some of
//! their elements hold HTML again, and some tags of HTML end what was left open of them.

/// The language whose rules hold for an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Html,
    Svg,
    MathMl,
}

impl Language {
    /// That of an element of this name in HTML.
    pub(super) fn in_html(name: &[u8]) -> Self {
        match name {
            b"svg" => Self::Svg,
            b"math" => Self::MathMl,
            _ => Self::Html,
        }
    }

    /// Whether its element of this name holds HTML. The standard calls these integration points.
    pub(super) fn holds_html(self, name: &[u8]) -> bool {
        match self {
            Self::Html => true,
            Self::Svg => matches!(name, b"foreignobject" | b"desc" | b"title"),
            Self::MathMl => matches!(name, b"mi" | b"mo" | b"mn" | b"ms" | b"mtext"),
        }
    }
}

/// Whether a start tag ends the SVG or MathML that is open.
pub(super) fn ends_foreign(name: &[u8]) -> bool {
    matches!(
        name,
        b"b" | b"big"
            | b"blockquote"
            | b"body"
            | b"br"
            | b"center"
            | b"code"
            | b"dd"
            | b"div"
            | b"dl"
            | b"dt"
            | b"em"
            | b"embed"
            | b"h1"
            | b"h2"
            | b"h3"
            | b"h4"
            | b"h5"
            | b"h6"
            | b"head"
            | b"hr"
            | b"i"
            | b"img"
            | b"li"
            | b"listing"
            | b"menu"
            | b"meta"
            | b"nobr"
            | b"ol"
            | b"p"
            | b"pre"
            | b"ruby"
            | b"s"
            | b"small"
            | b"span"
            | b"strong"
            | b"strike"
            | b"sub"
            | b"sup"
            | b"table"
            | b"tt"
            | b"u"
            | b"ul"
            | b"var"
    )
}
