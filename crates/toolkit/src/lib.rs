//! What every provider would otherwise write again. A provider implements small functions that return what the cloud's
//! API says; this crate turns them into the capabilities of the contract.
//!
//! | a provider implements | this crate makes of it |
//! |---|---|
//! | list, get, get many, search: [`InstanceSource`] | [`Instances`](cloudkeel_api::Instances) with the proof rule: [`ProvenInstances`], [`JoinedInstances`] for several parts |
//! | how a resource of a JSON API is an instance: [`RestInstance`] | such a source: [`RestInstances`] |
//! | rows of a route table: [`RouteTable`] | [`Routes`](cloudkeel_api::Routes): [`TableRoutes`] |
//! | one declaration per setting: [`settings!`] | YAML, environment, INI file, `…File`, defaults, documentation |
//! | one declaration per annotation: [`annotations!`] | readers, documentation, typos: [`AnnotationReader`] |
//! | look-ups of balancers: [`BalancerFinder`] | which Service a balancer belongs to: [`OwnerLabels`], [`Candidates`] |
//! | balancers with tags that are found in a list: [`TaggedBalancer`] | the same: [`TaggedBalancers`] |
//! | what a target is: [`DesiredTargets`] | which targets change, and in which order: [`TargetDiff`] |
//! | what a listener is: [`HasListenerKey`] | which listeners change, and in which order: [`ListenerDiff`] |
//! | a client and how its lists go on: [`RestApi`] | lists, look-ups and changes of resources |
//! | what follows the Services: [`ServiceFollower`] | a background controller: its schedule and its end |
//! | a firewall as it should be: [`OpenPorts`] | the calls that keep it so: [`KeptResource`] |
//! | what a Service would ask for: [`BalancerReview`] | an admission webhook |
//! | an answer in XML | its elements: [`xml`] |
//! | a transport: [`Wiring`] | a client with observer, dumps and [`ApiMetrics`] |
//! | capabilities | a provider and its factory: [`Provider`], [`CloudFactory`] |

mod annotations;
mod background;
mod balancers;
mod client;
mod events;
#[cfg(test)]
mod fixtures;
pub mod health;
mod id;
mod instances;
mod inventory;
pub mod json;
mod kept;
mod keyword;
mod open_ports;
mod provider;
mod recent;
mod rest;
mod routes;
pub mod settings;
mod shared_read;
mod webhook;
pub mod xml;

pub use self::annotations::{AnnotationReader, Unread};
pub use self::background::{Cause, Schedule, ServiceFollower};
pub use self::balancers::{
    BalancerFinder, Candidates, Capacity, Classified, CloudBalancer, DesiredTarget, DesiredTargets,
    ExtraTags, HasListenerKey, Labels, ListenerChange, ListenerDiff, ListenerKey, Namesakes, Owner,
    OwnerLabels, OwnerTag, OwnerText, PendingLookups, SHARED_LABEL, SHARED_TAG, ServiceLabel,
    ShareableBalancer, SharedList, Sharing, TagApi, TagStep, TagSync, TaggedBalancer,
    TaggedBalancers, TargetBatch, TargetChange, TargetDiff, address_of, balancer_name,
    check_unchanged, diff_listeners, ingress, instance_of, internal_ip, is_referenced, is_refusal,
    labels_of_new, named_balancer, one_each, silent_spec, through_balancer, unresolved,
};
pub use self::client::{
    ApiCall, ApiMetrics, Instruments, MetricLabels, MetricNames, MetricsServer, Pages, TokenApi,
    Wiring, endpoint_without_ids,
};
pub use self::events::EventRecorder;
pub use self::id::IdError;
pub use self::instances::{
    InstanceSource, JoinedInstances, Listed, LookupError, ProvenInstances, RestInstance,
    RestInstances, Search, by_id_or_name, by_id_uuid_or_name, not_ours,
};
pub use self::inventory::{Inventory, ListedResources};
pub use self::json::{Paging, Resource};
pub use self::kept::KeptResource;
pub use self::open_ports::{OpenPorts, PortSource, joined_networks, joined_ports};
pub use self::provider::{Cloud, CloudFactory, Provider, Session, hex, short_digest};
pub use self::recent::{LoginGuard, RecentMap, RecentSet};
pub use self::rest::RestApi;
pub use self::routes::{
    Nodes, RouteNode, RouteTable, RowChange, TableRoutes, node_by_address, node_by_id,
};
pub use self::settings::{Setting, Settings, SettingsReader};
pub use self::shared_read::SharedRead;
pub use self::webhook::{BalancerReview, REVIEW_TIMEOUT};

/// A resource that the cloud knows by an ID.
pub trait HasId {
    /// The ID.
    type Id: Eq;

    /// Its ID.
    fn id(&self) -> Self::Id;
}

/// Says which field of a resource is its ID.
///
/// ```
/// struct Server {
///     name: String,
/// }
///
/// cloudkeel_toolkit::has_id!(Server.name: String);
///
/// # use cloudkeel_toolkit::HasId as _;
/// assert_eq!(Server { name: "s-1".to_owned() }.id(), "s-1");
/// ```
#[macro_export]
macro_rules! has_id {
    ($($resource:ident.$field:ident: $id:ty),+ $(,)?) => {$(
        impl $crate::HasId for $resource {
            type Id = $id;

            fn id(&self) -> $id {
                ::std::clone::Clone::clone(&self.$field)
            }
        }
    )+};
}

/// What macros of this crate need of others.
#[doc(hidden)]
pub mod reexport {
    pub use cloudkeel_api;
    pub use serde;
}
