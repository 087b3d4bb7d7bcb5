//! How far a job is. It tells; what people see of that is the caller's.

/// Is told what a job does.
pub trait Progress: Sync {
    /// A phase whose steps are counted.
    type Bar: Bar;
    /// A phase without steps: it is over when this is dropped.
    type Spinner;

    /// A phase begins. It has this number of steps; `None` where the number is not known.
    fn bar(&self, what: &'static str, steps: Option<u64>) -> Self::Bar;

    /// A phase without steps begins.
    fn spinner(&self, what: &'static str) -> Self::Spinner;
}

/// A phase whose steps are counted.
pub trait Bar: Sync {
    /// This number of further steps is done.
    fn add(&self, steps: u64);

    /// This number of steps is done, of a known total.
    fn set(&self, done: u64, steps: u64);

    /// The number of pairs of documents written so far.
    fn found_pairs(&self, pairs: u64);

    /// The phase went well, and is over.
    fn finish(&self);
}
