//! What was read of a cluster and of its clouds, at one time.
//!
//! What controllers decide of an object alone (whose a Node is, which instance is its own, what a Service asks for) is
//! in it as the controllers' functions returned it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{
    CloudError, ErrorKind, Existence, Instance, NodeAddress, Observation, OwnedResource, Plan,
    ProviderId, Route,
};
use cloudkeel_controllers::lifecycle::decide::Caution;
use cloudkeel_controllers::service::spec::Draft;
use cloudkeel_controllers::view::{NodeView, ServiceView};
use ipnet::IpNet;
use jiff::Timestamp;

use crate::permission::Permission;

/// Something that was read, or why it could not be.
pub type Read<T> = Result<T, Unread>;

/// Why something could not be read of the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// What, such as `Leases in kube-system`.
    pub what: String,
    /// Why.
    pub why: String,
    /// Whether the API server answered, and refused.
    pub is_denied: bool,
}

/// Why a cloud did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What to do about it.
    pub kind: ErrorKind,
    /// The operation and the cause.
    pub text: String,
}

impl From<&CloudError> for Trouble {
    fn from(error: &CloudError) -> Self {
        Self {
            kind: error.kind(),
            text: error.to_string(),
        }
    }
}

/// Everything that was read.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// When.
    pub now: Timestamp,
    /// How the manager is configured.
    pub settings: Settings,
    /// Problems of flags and files, and those that are ignored or deprecated.
    pub config_errors: Vec<String>,
    /// See above.
    pub config_notes: Vec<String>,
    /// The version of the API server, such as `v1.35.1`.
    pub api_server: Read<String>,
    /// Pods that look like cloud-controller-managers.
    pub pods: Read<Vec<ManagerPod>>,
    /// Leases beside the one of the settings.
    pub leases: Read<Vec<LeaseState>>,
    /// What the account of the manager may do.
    pub access: Access,
    /// The Nodes.
    pub nodes: Read<Vec<NodeState>>,
    /// Services that have, want or had a load balancer.
    pub services: Read<Vec<ServiceState>>,
    /// Warnings about Nodes and Services.
    pub events: Read<Vec<EventState>>,
    /// The clouds.
    pub clouds: Vec<CloudState>,
}

impl Snapshot {
    /// One of a cluster without anything in it.
    pub fn empty(now: Timestamp, settings: Settings) -> Self {
        Self {
            now,
            settings,
            config_errors: Vec::new(),
            config_notes: Vec::new(),
            api_server: Ok(String::new()),
            pods: Ok(Vec::new()),
            leases: Ok(Vec::new()),
            access: Access::default(),
            nodes: Ok(Vec::new()),
            services: Ok(Vec::new()),
            events: Ok(Vec::new()),
            clouds: Vec::new(),
        }
    }

    /// The Nodes, as far as they are known.
    pub fn known_nodes(&self) -> &[NodeState] {
        self.nodes.as_deref().unwrap_or_default()
    }

    /// The Services, as far as they are known.
    pub fn known_services(&self) -> &[ServiceState] {
        self.services.as_deref().unwrap_or_default()
    }

    /// The lease of the settings.
    pub fn lease(&self) -> Option<&LeaseState> {
        let leases = self.leases.as_deref().unwrap_or_default();
        leases
            .iter()
            .find(|lease| lease.name == self.settings.lease)
    }

    /// The cloud of this name.
    pub fn cloud(&self, name: &str) -> Option<&CloudState> {
        self.clouds.iter().find(|cloud| cloud.name == name)
    }

    /// The latest warning about an object, if it is from the last hour.
    pub(crate) fn last_warning(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Option<&EventState> {
        const RECENT: i64 = 3600;
        let events = self.events.as_deref().unwrap_or_default().iter();
        events
            .filter(|event| event.is_about(kind, namespace, name) && event.is_warning)
            .filter(|event| self.now.duration_since(event.last).as_secs() < RECENT)
            .max_by_key(|event| event.last)
    }
}

/// How the manager is configured, as far as findings depend on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The version of this program.
    pub version: String,
    /// Whether replicas elect a leader.
    pub elects: bool,
    /// The name of the lease.
    pub lease: String,
    /// Its namespace.
    pub lease_namespace: String,
    /// `--cluster-cidr`
    pub cluster_cidrs: Vec<IpNet>,
    /// Whether the route controller runs if a cloud has routes.
    pub routes: bool,
    /// Whether a cloud without a cluster ID is accepted.
    pub allow_untagged_cloud: bool,
    /// How careful deletions are.
    pub caution: Caution,
    /// How many Nodes are deleted in one burst.
    pub deletion_burst: usize,
    /// How often instances are listed.
    pub node_list_period: Duration,
    /// How often load balancers are checked.
    pub service_list_period: Duration,
    /// Whether load balancers that differ are repaired.
    pub repairs_drift: bool,
}

/// A Pod that looks like a cloud-controller-manager.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ManagerPod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Which program it is, such as `cloudkeel` or `hcloud-cloud-controller-manager`.
    pub program: String,
    /// The image of its first container.
    pub image: String,
    /// Its phase.
    pub phase: String,
    /// Whether it is ready.
    pub is_ready: bool,
    /// Why it is not scheduled.
    pub unscheduled: Option<String>,
    /// Why a container waits, such as `CrashLoopBackOff: …`.
    pub waiting: Option<String>,
    /// How the last container ended, if it failed.
    pub last_failure: Option<String>,
    /// How often its containers were restarted.
    pub restarts: i32,
    /// Whether it uses the network of its Node.
    pub has_host_network: bool,
    /// Whether it tolerates the taint of Nodes that are not initialised.
    pub tolerates_uninitialized: bool,
    /// Whether it tolerates the taints of Nodes without a Pod network.
    pub tolerates_not_ready: bool,
    /// Its ServiceAccount.
    pub service_account: String,
    /// The provider that its program is for; `None` for this program and for unknown ones.
    pub provider: Option<String>,
    /// The lease that it needs to write; `None` if it does not elect.
    pub lease: Option<String>,
}

/// A lease.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeaseState {
    /// Its name.
    pub name: String,
    /// Its holder, if there is one.
    pub holder: Option<String>,
    /// When it was last renewed.
    pub renewed: Option<Timestamp>,
    /// How long it is valid after that.
    pub duration: Duration,
}

impl LeaseState {
    /// Whether it is held, and was renewed in time.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        let valid = self
            .renewed
            .and_then(|at| at.checked_add(self.duration).ok());
        self.holder.is_some() && valid.is_some_and(|until| until >= now)
    }
}

/// What the account of the manager may do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Access {
    /// Whose permissions these are, such as `kube-system/cloudkeel`; `None` if no account is known.
    pub subject: Option<String>,
    /// What was asked.
    pub checks: Vec<AccessCheck>,
    /// Why it could not be asked.
    pub unread: Option<Unread>,
}

/// Whether the account has a permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessCheck {
    /// Which.
    pub permission: Permission,
    /// Whether.
    pub is_allowed: bool,
}

/// A Node, whose it is, and which instance is its own.
#[derive(Debug, Clone)]
pub struct NodeState {
    /// The Node.
    pub view: Arc<NodeView>,
    /// `status.nodeInfo.kubeletVersion`
    pub kubelet_version: String,
    /// Since when the `Ready` condition is as it is.
    pub ready_since: Option<Timestamp>,
    /// The message of the `Ready` condition.
    pub ready_message: String,
    /// Whose it is.
    pub owner: NodeOwner,
    /// What the lists of the clouds that may own it show.
    pub matches: BTreeMap<String, InstanceMatch>,
    /// When its kubelet last renewed its lease, if that was read.
    pub heartbeat: Option<Timestamp>,
    /// What clouds answered when they were asked for this very Node, if they were.
    pub looked_up: Vec<LookUp>,
}

impl NodeState {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.view.facts.name
    }

    /// The one instance that it has, and the cloud that shows it.
    pub fn instance(&self) -> Option<(&str, &Instance)> {
        let mut found = self.matches.iter().filter_map(|(cloud, it)| match it {
            InstanceMatch::One { instance, .. } => Some((cloud.as_str(), &**instance)),
            _ => None,
        });
        found.next().filter(|_| found.next().is_none())
    }

    /// The cloud that owns it beyond doubt.
    pub fn cloud(&self) -> Option<&str> {
        match &self.owner {
            NodeOwner::Cloud(name) => Some(name),
            _ => None,
        }
    }
}

/// What a cloud answered when it was asked for one Node.
#[derive(Debug, Clone)]
pub struct LookUp {
    /// Which cloud.
    pub cloud: String,
    /// What it said. Shared, because an answer cannot be copied.
    pub answer: Arc<Existence>,
}

/// Whose a Node is: what `owner_of` of the controllers says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeOwner {
    /// This cloud's.
    Cloud(String),
    /// One of these, or none: they have to be asked.
    Undecided(Vec<String>),
    /// No cloud's here.
    Unowned {
        /// Why.
        why: String,
        /// Whether its provider ID is none that a cloud issues.
        is_malformed: bool,
    },
}

/// Which instance of a cloud's list is a Node's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstanceMatch {
    /// This one.
    One {
        /// The instance.
        instance: Box<Instance>,
        /// The addresses that the provider gives this Node.
        addresses: Vec<NodeAddress>,
    },
    /// None. Perhaps one that has the Node's system UUID or one of its addresses, under another name.
    None {
        /// Its name and ID.
        lookalike: Option<(String, ProviderId)>,
    },
    /// Several.
    Many(Vec<ProviderId>),
    /// The instances could not be listed.
    Unread,
}

/// A Service, what it asks for, and what its cloud has.
#[derive(Debug, Clone)]
pub struct ServiceState {
    /// The Service.
    pub view: Arc<ServiceView>,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// Since when it is being deleted.
    pub deleting_since: Option<Timestamp>,
    /// The cloud that serves it.
    pub owner: Option<String>,
    /// What it asks for, or everything that is wrong with it.
    pub draft: Option<Result<Draft, String>>,
    /// What the cloud has, and what differs.
    pub observed: Option<Result<Observation, Trouble>>,
    /// What is done in the cloud when it goes, if that was asked.
    pub removal: Option<Result<Plan, Trouble>>,
    /// Its endpoints.
    pub endpoints: Option<Read<Endpoints>>,
}

impl ServiceState {
    /// `namespace/name`
    pub fn key(&self) -> String {
        self.view.service.to_string()
    }

    /// Whether it should have a load balancer of a cloud here.
    pub fn is_wanted(&self) -> bool {
        self.owner.is_some() && !self.view.deleting
    }
}

/// The ready endpoints of a Service.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Endpoints {
    /// How many.
    pub ready: usize,
    /// On which Nodes.
    pub nodes: BTreeSet<String>,
}

/// An Event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventState {
    /// `Node` or `Service`.
    pub kind: String,
    /// The namespace of the object; empty for a Node.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// Whether it warns.
    pub is_warning: bool,
    /// Its reason.
    pub reason: String,
    /// Its message.
    pub message: String,
    /// How often.
    pub count: i32,
    /// When it was last seen.
    pub last: Timestamp,
    /// The component.
    pub source: String,
}

impl EventState {
    /// Whether it is about this object.
    pub fn is_about(&self, kind: &str, namespace: &str, name: &str) -> bool {
        self.kind == kind && self.namespace == namespace && self.name == name
    }
}

/// A cloud of the configuration.
#[derive(Debug, Clone)]
pub struct CloudState {
    /// Its name in the configuration.
    pub name: String,
    /// Its provider.
    pub provider: String,
    /// Why it could not be built.
    pub build_error: Option<Trouble>,
    /// What the credential sees, or why it cannot be used.
    pub scope: Option<Result<String, Trouble>>,
    /// Whether its resources carry an ID of this cluster.
    pub has_cluster_id: bool,
    /// Its instances, if it has any.
    pub instances: Option<Result<InstancesState, Trouble>>,
    /// Its routes, if it has any.
    pub routes: Option<Result<Vec<Route>, Trouble>>,
    /// What carries this cluster's owner labels, if it has load balancers and keeps labels.
    pub owned: Option<Result<Vec<OwnedResource>, Trouble>>,
    /// The requests that are left, and of how many.
    pub budget: Option<(u64, u64)>,
}

impl CloudState {
    /// One of which nothing was read.
    pub fn unread(name: impl Into<String>, provider: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            provider: provider.into(),
            build_error: None,
            scope: None,
            has_cluster_id: true,
            instances: None,
            routes: None,
            owned: None,
            budget: None,
        }
    }

    /// Its instances, as far as they are known.
    pub fn listed(&self) -> Option<&InstancesState> {
        self.instances.as_ref()?.as_ref().ok()
    }
}

/// The instances of a cloud.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstancesState {
    /// How many.
    pub count: usize,
    /// Parts that the list could not see, and why.
    pub blind_spots: Vec<(String, String)>,
    /// Those that are no Node's: name and ID.
    pub without_node: Vec<(String, ProviderId)>,
}
