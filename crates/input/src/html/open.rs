//! The elements that are open at a place of a page: which of them a tag ends.
//!
//! Authors may leave out end tags, and often leave out others. So a start tag ends what cannot hold its element, as
//! `<li>` ends the item before it. An end tag also ends what was left open in its element. The rules are those of the
//! HTML standard for the body of a page, without the repair of formatting that overlaps.

use super::elements::Role;
use super::foreign::{Language, ends_foreign};

/// Elements that may be looked through for nothing in a page, before a tag looks at few.
const MOST_LOOKS: usize = 1 << 24;

/// The few.
const FEW_LOOKS: usize = 64;

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// How the standard treats an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Formatting, and whatever is not below.
    Inline,
    /// `option` and `optgroup`.
    Choice,
    Paragraph,
    /// A block that may be between an item and its list: `div`, `address`.
    Loose,
    Block,
    List,
    Item,
    /// `dd` and `dt`.
    Term,
    Table,
    /// `tbody`, `caption`, and the other children of a table.
    RowGroup,
    Row,
    Cell,
    /// Paragraphs outside are not ended from within.
    Button,
    /// Nothing outside is ended from within.
    Boundary,
}

/// An open element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element {
    /// The hash of its name and language.
    name: u64,
    kind: Kind,
    language: Language,
    /// Whether the elements right in it are of HTML.
    holds_html: bool,
    pub(super) role: Option<Role>,
    /// The number of its first block; `None` for an inline element without a role.
    pub(super) first: Option<usize>,
}

/// All elements that are open, the outermost first.
#[derive(Debug, Default)]
pub(super) struct OpenElements {
    elements: Vec<Element>,
    /// Whether the last element that was pushed is of SVG or MathML, even one that ended itself.
    pub(super) is_last_pushed_foreign: bool,
    /// Elements that were looked through for nothing.
    looks: usize,
}

impl OpenElements {
    /// Whether the innermost element is of SVG or MathML.
    pub(super) fn is_foreign(&self) -> bool {
        let last = self.elements.last();
        last.is_some_and(|last| last.language != Language::Html)
    }

    /// How many elements stay open at a start tag that ends SVG and MathML, `None` if it does not.
    pub(super) fn kept_by_end_of_foreign(&self, name: &[u8]) -> Option<usize> {
        if self.holds_html() || !ends_foreign(name) {
            return None;
        }
        let holder = self.elements.iter().rposition(|element| element.holds_html);
        Some(holder.map_or(0, |at| at + 1))
    }

    /// How many elements stay open at a start tag.
    pub(super) fn kept_by_start(&mut self, name: &[u8]) -> usize {
        let ended = if self.holds_html() {
            self.ended_by_start(name, kind(name))
        } else {
            None
        };
        ended.unwrap_or(self.elements.len())
    }

    /// How many elements stay open at an end tag.
    pub(super) fn kept_by_end(&mut self, name: &[u8]) -> usize {
        if self.is_foreign() {
            let hash = hash(name, true);
            let is_html = |element: &Element| element.language == Language::Html;
            if let Some(ended) = self.look(|element| element.name == hash, is_html) {
                return ended;
            }
        }
        // What follows them still belongs to the page.
        let ended = if matches!(name, b"html" | b"body") {
            None
        } else {
            let (kind, hash) = (kind(name), hash(name, false));
            let bars = |element: &Element| is_barrier(kind, element.kind);
            self.look(|element| element.name == hash, bars)
        };
        ended.unwrap_or(self.elements.len())
    }

    /// Takes out the innermost element, if more are open than stay.
    pub(super) fn pop_beyond(&mut self, kept: usize) -> Option<Element> {
        if self.elements.len() > kept {
            self.elements.pop()
        } else {
            None
        }
    }

    /// Opens an element. One that ended itself is not open where its tag can do that.
    pub(super) fn push(
        &mut self,
        name: &[u8],
        is_self_closing: bool,
        role: Option<Role>,
        first: Option<usize>,
    ) -> bool {
        let language = self.language(name);
        let is_foreign = language != Language::Html;
        self.is_last_pushed_foreign = is_foreign;
        if is_foreign && is_self_closing {
            return false;
        }
        let holds_html = language.holds_html(name);
        self.elements.push(Element {
            name: hash(name, is_foreign),
            kind: match (is_foreign, holds_html) {
                (false, _) => kind(name),
                (true, true) => Kind::Boundary,
                (true, false) => Kind::Inline,
            },
            language,
            holds_html,
            role,
            first,
        });
        true
    }

    /// Whether an element that begins here holds another notation of a formula, which browsers do not show.
    pub(super) fn is_annotation(&self, name: &[u8]) -> bool {
        !self.holds_html() && matches!(name, b"annotation" | b"annotation-xml")
    }

    /// The language of an element that begins here.
    fn language(&self, name: &[u8]) -> Language {
        match self.elements.last() {
            Some(last) if !last.holds_html => last.language,
            Some(_) | None => Language::in_html(name),
        }
    }

    /// Whether elements that begin here are of HTML, except for `svg` and `math`.
    pub(super) fn holds_html(&self) -> bool {
        self.elements.last().is_none_or(|last| last.holds_html)
    }

    /// From which element on a start tag ends all.
    fn ended_by_start(&mut self, name: &[u8], kind: Kind) -> Option<usize> {
        use Kind::{
            Block, Boundary, Button, Cell, Choice, Inline, Item, List, Loose, Paragraph, Row,
            RowGroup, Table, Term,
        };
        let is_special = |kind| !matches!(kind, Inline | Choice);
        let own = match kind {
            Item | Term => self.look(
                |element| element.kind == kind,
                |element| is_special(element.kind) && !matches!(element.kind, Loose | Paragraph),
            ),
            Choice => self.look(
                |element| element.kind == Choice,
                |element| element.kind != Choice,
            ),
            Cell => self.look(
                |element| element.kind == Cell,
                |element| matches!(element.kind, Row | Table | Boundary),
            ),
            Button => self.look(
                |element| element.kind == Button,
                |element| is_barrier(Button, element.kind),
            ),
            Row | RowGroup => {
                let is_end = |element: &Element| {
                    element.kind == Table || (kind == Row && element.kind == RowGroup)
                };
                self.look(is_end, |element| element.kind == Boundary)
                    .map(|at| at + 1)
            }
            Inline | Paragraph | Loose | Block | List | Table | Boundary => None,
        };
        let ends_paragraph =
            matches!(kind, Item | Term | Paragraph | Loose | List | Table) || ends_paragraph(name);
        if own.is_some() || !ends_paragraph {
            return own;
        }
        self.look(
            |element| element.kind == Paragraph,
            |element| is_barrier(Paragraph, element.kind),
        )
    }

    /// The innermost element that is looked for, before one that bars the way.
    fn look(
        &mut self,
        is_it: impl Fn(&Element) -> bool,
        bars: impl Fn(&Element) -> bool,
    ) -> Option<usize> {
        let most = if self.looks < MOST_LOOKS {
            usize::MAX
        } else {
            FEW_LOOKS
        };
        for (looked, (at, element)) in self
            .elements
            .iter()
            .enumerate()
            .rev()
            .take(most)
            .enumerate()
        {
            if is_it(element) {
                return Some(at);
            }
            if bars(element) {
                self.looks += looked;
                return None;
            }
        }
        self.looks += self.elements.len().min(most);
        None
    }
}

/// Whether the end tag of one kind does not look beyond an open element of another.
fn is_barrier(of: Kind, open: Kind) -> bool {
    use Kind::{
        Block, Boundary, Button, Cell, Choice, Inline, Item, List, Loose, Paragraph, Row, RowGroup,
        Table, Term,
    };
    match of {
        Inline | Choice => !matches!(open, Inline | Choice),
        Table => open == Boundary,
        RowGroup | Row | Cell => matches!(open, Table | Boundary),
        Item => matches!(open, List | Cell | Row | RowGroup | Table | Boundary),
        Paragraph => matches!(open, Cell | Row | RowGroup | Table | Boundary | Button),
        Loose | Block | List | Term | Button | Boundary => {
            matches!(open, Cell | Row | RowGroup | Table | Boundary)
        }
    }
}

fn kind(name: &[u8]) -> Kind {
    match name {
        b"p" => Kind::Paragraph,
        b"div" | b"address" => Kind::Loose,
        b"ul" | b"ol" | b"menu" => Kind::List,
        b"li" => Kind::Item,
        b"dd" | b"dt" => Kind::Term,
        b"option" | b"optgroup" => Kind::Choice,
        b"table" => Kind::Table,
        b"tbody" | b"thead" | b"tfoot" | b"caption" | b"colgroup" => Kind::RowGroup,
        b"tr" => Kind::Row,
        b"td" | b"th" => Kind::Cell,
        b"button" => Kind::Button,
        b"applet" | b"html" | b"marquee" | b"object" | b"template" => Kind::Boundary,
        b"article" | b"aside" | b"blockquote" | b"body" | b"center" | b"details" | b"dialog"
        | b"dir" | b"dl" | b"fieldset" | b"figcaption" | b"figure" | b"footer" | b"form"
        | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" | b"head" | b"header" | b"hgroup"
        | b"iframe" | b"listing" | b"main" | b"nav" | b"noembed" | b"noframes" | b"noscript"
        | b"plaintext" | b"pre" | b"script" | b"search" | b"section" | b"select" | b"style"
        | b"summary" | b"textarea" | b"title" | b"xmp" => Kind::Block,
        _ => Kind::Inline,
    }
}

/// Whether a paragraph cannot hold a block of this name.
fn ends_paragraph(name: &[u8]) -> bool {
    matches!(
        name,
        b"article"
            | b"aside"
            | b"blockquote"
            | b"center"
            | b"details"
            | b"dialog"
            | b"dir"
            | b"dl"
            | b"fieldset"
            | b"figcaption"
            | b"figure"
            | b"footer"
            | b"form"
            | b"h1"
            | b"h2"
            | b"h3"
            | b"h4"
            | b"h5"
            | b"h6"
            | b"header"
            | b"hgroup"
            | b"hr"
            | b"listing"
            | b"main"
            | b"nav"
            | b"plaintext"
            | b"pre"
            | b"search"
            | b"section"
            | b"summary"
            | b"xmp"
    )
}

/// FNV-1a of a name, of HTML or of SVG and MathML. Elements that share a hash would only end each other.
fn hash(name: &[u8], is_foreign: bool) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    let first = if is_foreign { !FNV_OFFSET } else { FNV_OFFSET };
    name.iter().fold(first, step)
}
