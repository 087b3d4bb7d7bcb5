//! The router: finds out which shards a request needs, asks the nodes that own
//! them, and merges the answers. It keeps no state of its own.
//!
//! `plan` and `merge` are pure; `nodes` owns the connections; `router` runs a
//! request; `grpc` decodes, delegates and converts; `server` binds it all to a
//! listener. `admin` is the edge of the operations of `simshard_admin`.

mod admin;
mod caller;
mod clock;
mod cluster;
mod deadline;
mod decode;
mod error;
mod grpc;
mod links;
mod merge;
mod metadata;
mod nodes;
mod offload;
mod plan;
mod readers;
mod remembered;
mod router;
mod run_to_end;
mod server;
mod streams;
mod too_far_ahead;
mod work_watch;

pub use server::{RouterConfig, ServeError, create_corpus, serve};
pub use simshard_transport::{
    Dialer, Limits, Origin, Principal, Role, Security, Tls, TlsError, TlsFiles, Tokens,
    TokensError, Web, token_entry,
};
