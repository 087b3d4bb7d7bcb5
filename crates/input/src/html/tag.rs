//! The start tag that is being read, and the role that it gives to its element.

use super::elements::{
    Flow, Role, Source, has_text_for_id, is_class_of_section, is_id_of_content, names_content,
    role_of_attribute, role_of_name,
};

/// A start tag.
#[derive(Default)]
pub(super) struct Tag {
    pub(super) name: Vec<u8>,
    pub(super) has_address: bool,
    /// Whether it is of XHTML, and its own end tag.
    pub(super) ends_itself: bool,
    attribute: Vec<u8>,
    /// What its attributes say, except for a guess from its id.
    role: Option<(Source, Role)>,
    /// Whether its id seems to name something beside the main content.
    names_aside: bool,
    /// Whether its id names it as content.
    names_content: bool,
    /// Whether its id is one of those by which layouts name their content.
    is_content: bool,
    /// Whether its id is made from what it holds, and says nothing of the layout.
    is_named_by_text: bool,
}

impl Tag {
    pub(super) fn begin(&mut self, name: &[u8]) {
        self.name.clear();
        self.name.extend_from_slice(name);
        self.has_address = false;
        self.role = None;
        self.names_aside = false;
        self.names_content = false;
        self.is_content = false;
        self.is_named_by_text = has_text_for_id(name);
    }

    pub(super) fn begin_attribute(&mut self, name: &[u8]) {
        self.attribute.clear();
        self.attribute.extend_from_slice(name);
        self.has_address |= name == b"href";
        self.note(b"");
    }

    /// Notes what the attribute being read says of the element.
    pub(super) fn note(&mut self, value: &[u8]) {
        let role = role_of_attribute(&self.attribute, value);
        if self.attribute == b"id" {
            self.names_aside |= role.is_some();
        } else {
            self.role = self.role.max(role);
        }
        self.names_content |= names_content(&self.attribute, value);
        self.is_content |= is_id_of_content(&self.attribute, value);
        self.is_named_by_text |= is_class_of_section(&self.attribute, value);
    }

    /// The role of the element, which may be in one that is main, or begin a heading. What is inline is no part of a
    /// layout.
    pub(super) fn role(&self, flow: Flow, is_in_main: bool, begins_heading: bool) -> Option<Role> {
        let of_name = match self.name.as_slice() {
            // Theirs is that of the whole page, hidden until a script has run, say.
            b"html" | b"body" => return None,
            // Those of an article hold its title and its notes.
            b"header" | b"footer" if is_in_main => None,
            // It opens what stands below the heading.
            b"button" if begins_heading => None,
            name => role_of_name(name),
        };
        let guess = Some((Source::Class, Role::GuessedAside));
        let of_id = guess.filter(|_| self.names_aside && !self.is_named_by_text);
        let of_attributes = self.role.max(of_id);
        let names_content = self.is_content || self.names_content && !self.is_named_by_text;
        let is_no_guess = names_content || flow == Flow::Inline;
        let of_attributes = of_attributes.filter(|_| of_attributes != guess || !is_no_guess);
        of_attributes.max(of_name).map(|(_, role)| role)
    }
}
