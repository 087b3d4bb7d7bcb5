//! How many neighbours make a feature.

use std::fmt;
use std::num::NonZeroU8;

/// The number of neighbours in a feature: 1 to 255 words, tokens, characters or bytes,
/// as the recipe says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Window(NonZeroU8);

impl Window {
    pub(super) const ONE: Self = Self(NonZeroU8::MIN);
    pub(crate) const TWO: Self = Self(NonZeroU8::MIN.saturating_add(1));
    pub(super) const THREE: Self = Self(NonZeroU8::MIN.saturating_add(2));
    pub(super) const FOUR: Self = Self(NonZeroU8::MIN.saturating_add(3));
    pub(super) const FIVE: Self = Self(NonZeroU8::MIN.saturating_add(4));

    /// A window of this many; none of 0.
    #[must_use]
    pub const fn new(size: u8) -> Option<Self> {
        match NonZeroU8::new(size) {
            Some(size) => Some(Self(size)),
            None => None,
        }
    }

    /// How many there are.
    #[must_use]
    pub fn size(self) -> usize {
        usize::from(self.0.get())
    }

    /// Reads what [`Display`](fmt::Display) writes, and nothing else.
    pub(super) fn from_name(digits: &str) -> Option<Self> {
        let window = Self::new(digits.parse().ok()?)?;
        (window.to_string() == digits).then_some(window)
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
