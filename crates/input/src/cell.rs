//! A value of a document's field, whichever format it is in.

/// A value, whose bytes are held in some way.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say what is meant")]
pub enum Cell<B> {
    Null,
    Bytes(B),
    Signed(i64),
    Unsigned(u64),
    Number(f64),
    /// Tenths of microseconds since 1970 in UTC. The least and the greatest number stand for all times beyond them.
    Time(i64),
}
