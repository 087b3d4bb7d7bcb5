//! The text of a page in blocks, with what the elements around each say of it.
//!
//! One pass over the tokens.

use std::borrow::Cow;
use std::convert::Infallible;
use std::ops::Range;

use html5gum::emitters::callback::{Callback, CallbackEmitter, CallbackEvent};
use html5gum::{Emitter, ForwardingEmitter, Span, State, Tokenizer};
use memchr::memchr_iter;

use super::cdata;
use super::charset::without_nuls;
use super::elements::{Flow, Role, flow, is_void, level};
use super::open::OpenElements;
use super::tag::Tag;

/// The text of a page.
#[derive(Default)]
pub(super) struct Page {
    /// All its blocks, a line each.
    pub(super) text: String,
    pub(super) blocks: Vec<Block>,
    /// The elements that are marked as main.
    pub(super) regions: Vec<Range<usize>>,
    /// Elements that hold several blocks, the inner ones first, without inline elements that have no role. Of elements
    /// that hold the same blocks there is one.
    pub(super) holders: Vec<Range<usize>>,
    /// Elements that seem to be beside the main content by their class or id. Their blocks are not marked yet.
    pub(super) guessed_asides: Vec<Range<usize>>,
    /// Whether it is XHTML. There any tag can end itself, and CDATA sections are text as in SVG and MathML. Those of
    /// HTML are comments.
    is_xhtml: bool,
    open: OpenElements,
    roles: Roles,
    tag: Tag,
    is_in_link: bool,
    is_after_space: bool,
    weight: u32,
    linked: u32,
    heading: Option<u8>,
}

/// A block of text. Its weight is its characters without blanks; ideographs, kana and hangul weigh
/// 3, since they are words or syllables.
pub(super) struct Block {
    /// Where it ends in the text, after its line break.
    pub(super) end: usize,
    pub(super) weight: u32,
    /// How much of the weight is links.
    pub(super) linked: u32,
    /// Its level from 1 to 6, if it is a heading.
    pub(super) heading: Option<u8>,
    pub(super) is_aside: bool,
}

impl Block {
    /// Whether more than half of it is links.
    pub(super) fn is_mostly_linked(&self) -> bool {
        self.linked > self.weight / 2
    }
}

/// Open elements by role. Guessed asides are not counted: their blocks are marked later.
#[derive(Default)]
struct Roles {
    hidden: usize,
    aside: usize,
    main: usize,
}

impl Page {
    /// Reads a page, which is XHTML if it has an XML declaration, or if this says so.
    pub(super) fn new(markup: &str, is_xhtml: bool) -> Self {
        let markup = &*without_nuls(Cow::Borrowed(markup));
        let is_xhtml = is_xhtml || markup.trim_start().starts_with("<?xml");
        let markup = &*if is_xhtml {
            cdata::as_characters(markup)
        } else {
            Cow::Borrowed(markup)
        };
        let mut page = Self {
            text: String::with_capacity(markup.len() / 2),
            is_xhtml,
            ..Self::default()
        };
        let mut emitter = CallbackEmitter::new(&mut page);
        emitter.naively_switch_states(true);
        let Ok(()) = Tokenizer::new_with_emitter(markup, Tokens(emitter)).finish();
        page.end_block();
        page.leave_beyond(0);
        page
    }

    fn handle(&mut self, event: &CallbackEvent<'_>) {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag.begin(name);
            }
            CallbackEvent::AttributeName { name } => self.tag.begin_attribute(name),
            CallbackEvent::AttributeValue { value } => self.tag.note(value),
            CallbackEvent::CloseStartTag { self_closing } => {
                self.tag.ends_itself = self.is_xhtml && *self_closing;
                let tag = std::mem::take(&mut self.tag);
                self.start(&tag, *self_closing);
                self.tag = tag;
            }
            CallbackEvent::EndTag { name } => self.end(name),
            CallbackEvent::String { value } => self.push(value),
            CallbackEvent::Comment { .. }
            | CallbackEvent::Doctype { .. }
            | CallbackEvent::Error(_) => {}
        }
    }

    fn start(&mut self, tag: &Tag, is_self_closing: bool) {
        let name = tag.name.as_slice();
        self.end_foreign(name);
        let kept = self.open.kept_by_start(name);
        self.leave_beyond(kept);
        let flow = self.flow(name);
        self.part(flow);
        if flow == Flow::Heading && !self.is_hidden() {
            self.heading = level(name).into_iter().chain(self.heading).min();
        }
        if name == b"a" {
            self.is_in_link = tag.has_address;
        }
        if is_void(name) {
            return;
        }
        let begins_heading = self.heading.is_some() && self.weight == 0;
        let role = if self.open.is_annotation(name) {
            Some(Role::Hidden)
        } else {
            tag.role(flow, self.roles.main > 0, begins_heading)
        };
        if let Some(role) = role {
            self.enter(role);
        }
        let first = (flow != Flow::Inline || role.is_some()).then(|| self.next_block());
        if !self.open.push(name, is_self_closing, role, first) {
            self.leave(role);
            return;
        }
        if tag.ends_itself {
            self.end(name);
        }
    }

    /// Whether markup follows the last start tag, even one of raw text such as `script`. It is so behind tags of SVG and
    /// MathML, and those that ended themselves.
    fn is_before_markup(&self) -> bool {
        self.open.is_last_pushed_foreign || self.tag.ends_itself
    }

    /// Leaves SVG and MathML at a tag that ends them.
    fn end_foreign(&mut self, name: &[u8]) {
        if let Some(kept) = self.open.kept_by_end_of_foreign(name) {
            self.leave_beyond(kept);
        }
    }

    fn enter(&mut self, role: Role) {
        if role != Role::Hidden && !self.is_hidden() {
            self.end_block();
        }
        if let Some(open) = self.roles.of(role) {
            *open += 1;
        }
    }

    fn leave(&mut self, role: Option<Role>) {
        let Some(role) = role else { return };
        if role != Role::Hidden && !self.is_hidden() {
            self.end_block();
        }
        if let Some(open) = self.roles.of(role) {
            *open -= 1;
        }
    }

    fn end(&mut self, name: &[u8]) {
        if matches!(name, b"p" | b"br") {
            self.end_foreign(name);
        }
        let kept = self.open.kept_by_end(name);
        self.leave_beyond(kept);
        let flow = self.flow(name);
        self.part(flow);
        if flow == Flow::Heading && !self.is_hidden() {
            self.heading = None;
        }
        if name == b"a" {
            self.is_in_link = false;
        }
    }

    /// Leaves the innermost elements, until this many stay open.
    fn leave_beyond(&mut self, kept: usize) {
        while let Some(element) = self.open.pop_beyond(kept) {
            self.leave(element.role);
            if let Some(first) = element.first {
                self.note_holder(first, element.role);
            }
        }
    }

    /// The number of the block that follows the one being read.
    fn next_block(&self) -> usize {
        self.blocks.len() + usize::from(self.weight > 0)
    }

    /// Notes the blocks of an element that ends, the one that is being read among them.
    fn note_holder(&mut self, first: usize, role: Option<Role>) {
        let blocks = first..self.next_block();
        match role {
            Some(Role::Main) if !blocks.is_empty() => self.regions.push(blocks.clone()),
            Some(Role::GuessedAside) => self.guessed_asides.push(blocks.clone()),
            _ => {}
        }
        if blocks.len() > 1 && self.holders.last() != Some(&blocks) {
            self.holders.push(blocks);
        }
    }

    /// Parts the text at a tag. What is hidden parts no text around it.
    fn part(&mut self, flow: Flow) {
        if self.is_hidden() {
            return;
        }
        match flow {
            Flow::Inline => {}
            Flow::Space => self.is_after_space = true,
            Flow::Block | Flow::Heading => self.end_block(),
        }
    }

    /// How a tag breaks the text. Those of a formula part its words.
    fn flow(&self, name: &[u8]) -> Flow {
        if self.open.holds_html() {
            flow(name)
        } else {
            Flow::Space
        }
    }

    fn is_hidden(&self) -> bool {
        self.roles.hidden > 0
    }

    fn end_block(&mut self) {
        if self.weight > 0 {
            self.text.push('\n');
            self.blocks.push(Block {
                end: self.text.len(),
                weight: self.weight,
                linked: self.linked,
                heading: self.heading,
                is_aside: self.roles.aside > 0,
            });
            self.heading = None;
        }
        self.weight = 0;
        self.linked = 0;
        self.is_after_space = false;
    }

    /// Adds text, its blanks made one.
    fn push(&mut self, characters: &[u8]) {
        if self.is_hidden() {
            return;
        }
        let characters = match std::str::from_utf8(characters) {
            Ok(characters) => Cow::Borrowed(characters),
            Err(_) => String::from_utf8_lossy(characters),
        };
        let mut start = 0;
        for end in memchr_iter(b'\n', characters.as_bytes()) {
            self.push_line(&characters[start..end]);
            self.is_after_space = true;
            start = end + 1;
        }
        self.push_line(&characters[start..]);
    }

    fn push_line(&mut self, line: &str) {
        let words = line.trim_ascii();
        if has_single_spaces_only(words.as_bytes()) {
            let blanks_before = line.len() - line.trim_ascii_start().len();
            self.is_after_space |= blanks_before > 0;
            self.push_words(words);
            self.is_after_space |= blanks_before + words.len() < line.len();
        } else {
            for (place, word) in line.split(char::is_whitespace).enumerate() {
                self.is_after_space |= place > 0;
                self.push_words(word);
            }
        }
    }

    /// Adds words with one space between them.
    fn push_words(&mut self, words: &str) {
        if words.is_empty() {
            return;
        }
        if self.is_after_space && self.weight > 0 {
            self.text.push(' ');
        }
        self.text.push_str(words);
        let weight = weight_of(words);
        self.weight = self.weight.saturating_add(weight);
        if self.is_in_link {
            self.linked = self.linked.saturating_add(weight);
        }
        self.is_after_space = false;
    }
}

/// Whether a text is ASCII with nothing blank in it but single spaces, as most lines are. The compiler makes these
/// loops over vectors, which do not stop early.
fn has_single_spaces_only(text: &[u8]) -> bool {
    let is_other = |byte: &u8| !byte.is_ascii() | matches!(byte, 9..=13);
    let is_double = |(byte, next): (&u8, &u8)| (*byte == b' ') & (*next == b' ');
    let pairs = text.iter().zip(text.iter().skip(1));
    let others = text.iter().fold(false, |any, byte| any | is_other(byte));
    !others && !pairs.map(is_double).fold(false, |any, one| any | one)
}

fn weight_of(words: &str) -> u32 {
    if words.is_ascii() {
        let characters = words.bytes().filter(|byte| *byte != b' ').count();
        return u32::try_from(characters).unwrap_or(u32::MAX);
    }
    let of_character = |character| match character {
        ' ' => 0,
        '\0'..'\u{2E80}' => 1,
        _ => 3,
    };
    words.chars().map(of_character).fold(0, u32::saturating_add)
}

impl Roles {
    fn of(&mut self, role: Role) -> Option<&mut usize> {
        match role {
            Role::Hidden => Some(&mut self.hidden),
            Role::GuessedAside => None,
            Role::Aside => Some(&mut self.aside),
            Role::Main => Some(&mut self.main),
        }
    }
}

impl Callback<Infallible, ()> for &mut Page {
    fn handle_event(&mut self, event: CallbackEvent<'_>, _: Span<()>) -> Option<Infallible> {
        self.handle(&event);
        None
    }
}

/// The tokens of a page.
struct Tokens<'a>(CallbackEmitter<&'a mut Page>);

impl ForwardingEmitter for Tokens<'_> {
    type Token = Infallible;

    fn inner(&mut self) -> &mut impl Emitter<Token = Infallible> {
        &mut self.0
    }

    fn should_emit_errors(&mut self) -> bool {
        false
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&mut self) -> bool {
        let page = self.0.callback_mut();
        page.is_xhtml || page.open.is_foreign()
    }

    /// The emitter goes by the names of tags alone.
    fn emit_current_tag(&mut self) -> Option<State> {
        let state = self.0.emit_current_tag();
        state.filter(|_| !self.0.callback_mut().is_before_markup())
    }
}
