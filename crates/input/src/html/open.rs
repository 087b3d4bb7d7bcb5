//! The elements that are open at a place of a page: which of them a tag ends.
//!
//! Authors may leave out end tags, and often leave out others. So a start tag ends what cannot hold its element, as
//! `<li>` ends the item before it, and an end tag also ends what was left open in its element. The rules are those of
//! the HTML standard for the body of a page, without the repair of formatting that overlaps.

use super::elements::Role;

/// Elements that may be looked through for nothing in a page, before a tag looks at few.
const LOOKS: usize = 1 << 24;

/// The few.
const FEW_LOOKS: usize = 64;

/// How the standard treats an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Formatting, and whatever is not below.
    Inline,
    /// `option` and `optgroup`.
    Choice,
    Paragraph,
    /// A block that may stand between an item and its list: `div`, `address`.
    Loose,
    Block,
    List,
    Item,
    /// `dd` and `dt`.
    Term,
    Table,
    /// `tbody`, `caption`, and what else stands right in a table.
    RowGroup,
    Row,
    Cell,
    /// Nothing outside is ended from within.
    Boundary,
}

/// An open element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element {
    /// The hash of its name.
    name: u64,
    kind: Kind,
    /// Whether it is of SVG or MathML, where tags can end themselves.
    is_foreign: bool,
    pub(super) role: Option<Role>,
    /// The number of its region, if it is main.
    pub(super) region: usize,
}

/// All elements that are open, the outermost first.
#[derive(Debug, Default)]
pub(super) struct OpenElements {
    elements: Vec<Element>,
    /// Elements that were looked through for nothing.
    looks: usize,
}

impl OpenElements {
    /// How many elements stay open at a start tag.
    pub(super) fn kept_by_start(&mut self, name: &[u8]) -> usize {
        let ended = self.ended_by_start(name, kind(name));
        ended.unwrap_or(self.elements.len())
    }

    /// How many elements stay open at an end tag.
    pub(super) fn kept_by_end(&mut self, name: &[u8]) -> usize {
        // What follows them still belongs to the page.
        let ended = if matches!(name, b"html" | b"body") {
            None
        } else {
            let (kind, hash) = (kind(name), hash(name));
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
        region: usize,
    ) -> bool {
        let is_foreign = matches!(name, b"svg" | b"math")
            || self.elements.last().is_some_and(|last| last.is_foreign);
        if is_foreign && is_self_closing {
            return false;
        }
        self.elements.push(Element {
            name: hash(name),
            kind: kind(name),
            is_foreign,
            role,
            region,
        });
        true
    }

    /// From which element on a start tag ends all.
    fn ended_by_start(&mut self, name: &[u8], kind: Kind) -> Option<usize> {
        use Kind::{
            Block, Boundary, Cell, Choice, Inline, Item, List, Loose, Paragraph, Row, RowGroup,
            Table, Term,
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
            |element| matches!(element.kind, Table | RowGroup | Row | Cell | Boundary),
        )
    }

    /// The innermost element that is looked for, before one that bars the way.
    fn look(
        &mut self,
        is_it: impl Fn(&Element) -> bool,
        bars: impl Fn(&Element) -> bool,
    ) -> Option<usize> {
        let most = if self.looks < LOOKS {
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
        Block, Boundary, Cell, Choice, Inline, Item, List, Loose, Paragraph, Row, RowGroup, Table,
        Term,
    };
    match of {
        Inline | Choice => !matches!(open, Inline | Choice),
        Table => open == Boundary,
        RowGroup | Row | Cell => matches!(open, Table | Boundary),
        Item => matches!(open, List | Cell | Row | RowGroup | Table | Boundary),
        Paragraph | Loose | Block | List | Term | Boundary => {
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
        b"applet" | b"button" | b"html" | b"marquee" | b"object" | b"template" => Kind::Boundary,
        b"article" | b"aside" | b"blockquote" | b"body" | b"center" | b"details" | b"dir"
        | b"dl" | b"fieldset" | b"figcaption" | b"figure" | b"footer" | b"form" | b"h1" | b"h2"
        | b"h3" | b"h4" | b"h5" | b"h6" | b"head" | b"header" | b"hgroup" | b"iframe"
        | b"listing" | b"main" | b"nav" | b"noembed" | b"noframes" | b"noscript" | b"plaintext"
        | b"pre" | b"script" | b"search" | b"section" | b"select" | b"style" | b"summary"
        | b"textarea" | b"title" | b"xmp" => Kind::Block,
        _ => Kind::Inline,
    }
}

/// Whether a block cannot stand in a paragraph.
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

/// FNV-1a. Names that share a hash would only end each other.
fn hash(name: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    name.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
