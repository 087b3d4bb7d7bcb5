//! Streams about whole corpora against the slow, obvious answers, while nodes are lost, readers stop and documents
//! change.

mod clusters;
mod pairs;
mod refusals;
mod scan;
mod scene;
