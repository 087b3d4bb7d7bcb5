//! Tests across crate boundaries live in `tests/`; there is no library code here.
