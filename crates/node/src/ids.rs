//! The ids of the documents that share a fingerprint.

use std::collections::BTreeSet;

/// A set of ids; nearly always there is just one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    /// A single id, kept in place.
    One(Box<str>),
    /// Any number of ids, ascending.
    Many(BTreeSet<Box<str>>),
}

impl Ids {
    /// No id.
    pub(crate) const NONE: Self = Self::Many(BTreeSet::new());

    /// Number of ids.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(ids) => ids.len(),
        }
    }

    /// Whether there is no id.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ids, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        let (one, many) = match self {
            Self::One(id) => (Some(id), None),
            Self::Many(ids) => (None, Some(ids)),
        };
        let all = one.into_iter().chain(many.into_iter().flatten());
        all.map(|id| &**id)
    }

    /// Adds an id; says whether it was absent.
    pub(crate) fn insert(&mut self, id: Box<str>) -> bool {
        match self {
            Self::One(only) if *only == id => false,
            Self::One(only) => {
                *self = Self::Many(BTreeSet::from([std::mem::take(only), id]));
                true
            }
            Self::Many(ids) => ids.insert(id),
        }
    }

    /// Takes an id out; says whether it was present.
    pub(crate) fn remove(&mut self, id: &str) -> bool {
        match self {
            Self::One(only) if **only == *id => {
                *self = Self::NONE;
                true
            }
            Self::One(_) => false,
            Self::Many(ids) => ids.remove(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_an_ordered_set() {
        let mut ids = Ids::One("b".into());
        assert!(!ids.insert("b".into()));
        assert!(ids.insert("c".into()));
        assert!(ids.insert("".into()));
        assert_eq!(ids.iter().collect::<Vec<_>>(), ["", "b", "c"]);
        assert!(ids.remove("b") && ids.remove("c") && !ids.remove("c"));
        assert_eq!((ids.len(), ids.is_empty()), (1, false));
        assert!(ids.remove(""));
        assert!(ids.is_empty());
        let mut one = Ids::One("x".into());
        assert!(!one.remove("y") && one.remove("x") && one.is_empty());
        assert_eq!(Ids::NONE.iter().count(), 0);
    }
}
