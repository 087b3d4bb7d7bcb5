//! Quotes of a row, followed to find text behind a quoted value: the parser would take it for more of that value.

/// Where in a row of CSV something stands.
#[derive(Clone, Copy)]
pub(super) enum Quotes {
    BeforeValue,
    InValue,
    Within,
    /// Behind a quote within quotes, which ends them unless a second one follows.
    BehindQuote,
}

impl Quotes {
    /// Where the end of these bytes stands, which begin here. `None` if text follows a quoted value.
    pub(super) fn after(mut self, bytes: &[u8], separator: u8) -> Option<Self> {
        let mut rest = bytes;
        while let [first, more @ ..] = rest {
            rest = more;
            self = match (self, first) {
                (Self::Within, b'"') => Self::BehindQuote,
                (Self::Within, _) => {
                    rest = &more[memchr::memchr(b'"', more).unwrap_or(more.len())..];
                    Self::Within
                }
                (Self::BeforeValue | Self::BehindQuote, b'"') => Self::Within,
                (_, b'\r' | b'\n') => Self::BeforeValue,
                (_, byte) if *byte == separator => Self::BeforeValue,
                (Self::BehindQuote, _) => return None,
                (Self::BeforeValue | Self::InValue, _) => {
                    let end = memchr::memchr3(separator, b'\r', b'\n', more);
                    rest = &more[end.unwrap_or(more.len())..];
                    Self::InValue
                }
            };
        }
        Some(self)
    }
}
