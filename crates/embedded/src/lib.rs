//! A Kubernetes API in memory, and kubelets to go with it.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), kube::Error> {
//! use cloudkeel_embedded::EmbeddedApi;
//! use k8s_openapi::api::core::v1::Namespace;
//! use kube::Api;
//!
//! let api = EmbeddedApi::builder().seed(7).keep_journal().build();
//! let namespaces: Api<Namespace> = Api::all(api.client("me"));
//! assert!(namespaces.get("kube-system").await?.metadata.uid.is_some());
//! # Ok(())
//! # }
//! ```
//!
//! It has two faces: [`EmbeddedApi::client`] is a client in process, without a socket or a thread, on a clock and a
//! seed of choice; [`EmbeddedApi::serve`] listens on the loopback interface with TLS for `kubectl` and other programs.
//! An [`Interposer`] injects faults into requests of a client in process, and the journal records which client changed what. A
//! [`DirectClient`] asks without a client, so that a test can change something at once.
//!
//! It does what controllers and `kubectl` rely on, and is compared with a real kube-apiserver by the same tests. It
//! enforces no roles, knows no server-side apply, and collects no garbage.

mod access;
mod api;
mod client;
mod direct_client;
mod discovery;
mod generator;
mod interpose;
mod kinds;
mod kubelet;
mod node_monitor;
mod object;
mod patch;
mod protobuf;
mod refusal;
mod request;
mod rules;
mod selector;
mod serve;
mod store;
mod table;

pub use access::{AllowAll, Attributes, Authorizer, Identity};
pub use api::{Builder, EmbeddedApi};
pub use direct_client::DirectClient;
pub use interpose::{After, Before, Call, Interposer, Passage, Watched};
pub use kubelet::{Health, Kubelet, KubeletConfig, Runs};
pub use node_monitor::NodeMonitor;
pub use refusal::Refusal;
pub use serve::{ServeError, Served};
pub use store::{Commit, Verb};

/// Reads an object in Kubernetes' protobuf as JSON, as far as this API speaks its kind. The error says what is wrong.
pub fn decode_protobuf(bytes: &[u8]) -> Result<serde_json::Value, String> {
    protobuf::decode_object(bytes).map_err(|error| error.to_string())
}

/// Reads the events of a watch in Kubernetes' protobuf: the type of each, and its object as JSON.
pub fn decode_protobuf_events(bytes: &[u8]) -> Result<Vec<(String, serde_json::Value)>, String> {
    protobuf::decode_events(bytes).map_err(|error| error.to_string())
}
