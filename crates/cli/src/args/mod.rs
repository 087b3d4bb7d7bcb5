//! The arguments that several commands share, and what they ask for in the words of the other crates.

mod batch;
mod blocks;
mod cluster_certificates;
mod etcd_access;
mod expected_recipe;
mod fingerprint;
mod input;
mod json;
pub(crate) mod pem;
mod plan;
mod read;
mod recipe;
mod router_access;
mod search;
mod write;

pub use batch::BatchArgs;
pub(crate) use batch::open_report;
pub use blocks::Blocks;
pub(crate) use blocks::document_count;
pub use cluster_certificates::ClusterCertificateArgs;
pub use etcd_access::EtcdAccessArgs;
pub use expected_recipe::ExpectedRecipeArgs;
pub use fingerprint::GivenFingerprint;
pub use input::InputArgs;
pub use json::{JsonArgs, OutcomeArgs};
pub(crate) use plan::Plan;
pub use read::{ReadArgs, SelectionArgs};
pub use recipe::RecipeArgs;
pub use router_access::RouterAccessArgs;
pub use search::SearchArgs;
pub use write::WriteArgs;
