//! The state of the cloud: projects and what they hold, as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudkeel_emulation::history::{Table, View};
use cloudkeel_emulation::ids::Ids;
use cloudkeel_emulation::jobs::{Jobs, NewJob, RunsJobs};
use cloudkeel_emulation::{EmulatedClock, Gateway, Tokens};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fault::Fault;
use crate::operation::Operation;
use crate::settings::Settings;

/// A kind of resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Servers of Nova.
    Server,
    /// Flavors of Nova.
    Flavor,
    /// Networks of Neutron.
    Network,
    /// Subnets.
    Subnet,
    /// Ports.
    Port,
    /// Routers.
    Router,
    /// Floating IPs.
    FloatingIp,
    /// Security groups.
    SecurityGroup,
    /// Load balancers of Octavia.
    LoadBalancer,
    /// Their listeners.
    Listener,
    /// Their pools.
    Pool,
    /// The members of pools.
    Member,
    /// Their health monitors.
    Monitor,
    /// Volumes of Cinder.
    Volume,
    /// Secrets of Barbican.
    Secret,
}

impl Kind {
    /// Its name in bodies, its plural, Neutron's type for "not found", and its name in messages.
    pub(crate) const fn names(self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self {
            Self::Server => ("server", "servers", "", "Instance"),
            Self::Flavor => ("flavor", "flavors", "", "Flavor"),
            Self::Network => ("network", "networks", "NetworkNotFound", "Network"),
            Self::Subnet => ("subnet", "subnets", "SubnetNotFound", "Subnet"),
            Self::Port => ("port", "ports", "PortNotFound", "Port"),
            Self::Router => ("router", "routers", "RouterNotFound", "Router"),
            Self::FloatingIp => (
                "floatingip",
                "floatingips",
                "FloatingIPNotFound",
                "Floating IP",
            ),
            Self::SecurityGroup => (
                "security_group",
                "security_groups",
                "SecurityGroupNotFound",
                "Security group",
            ),
            Self::LoadBalancer => ("loadbalancer", "loadbalancers", "", "Load Balancer"),
            Self::Listener => ("listener", "listeners", "", "Listener"),
            Self::Pool => ("pool", "pools", "", "Pool"),
            Self::Member => ("member", "members", "", "Member"),
            Self::Monitor => ("healthmonitor", "healthmonitors", "", "Health Monitor"),
            Self::Volume => ("volume", "volumes", "", "Volume"),
            Self::Secret => ("secret", "secrets", "", "Secret"),
        }
    }
}

/// Everything that the emulator knows. Reached only under its lock.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) settings: Settings,
    /// Tokens that logins gave out, with their project and their end.
    pub(crate) tokens: Tokens,
    pub(crate) sessions: BTreeMap<String, (String, Instant)>,
    pub(crate) gateway: Gateway<Operation, Fault>,
    pub(crate) projects: BTreeMap<String, Project>,
    pub(crate) clock: EmulatedClock,
    pub(crate) ids: Ids,
}

/// What belongs together and is seen by one token.
#[derive(Debug)]
pub(crate) struct Project {
    tables: BTreeMap<Kind, Table<Value, String>>,
    pub(crate) jobs: Jobs<Self, String>,
    keep: Duration,
}

impl RunsJobs for Project {
    type Key = String;

    fn jobs(&mut self) -> &mut Jobs<Self, String> {
        &mut self.jobs
    }
}

impl Project {
    pub(crate) fn new(keep: Duration) -> Self {
        Self {
            tables: BTreeMap::new(),
            jobs: Jobs::default(),
            keep,
        }
    }

    pub(crate) fn table(&mut self, kind: Kind) -> &mut Table<Value, String> {
        let keep = self.keep;
        self.tables
            .entry(kind)
            .or_insert_with(|| Table::remembering(keep))
    }

    /// All of a kind as a read shows them.
    pub(crate) fn all(&self, kind: Kind, view: View) -> Vec<Value> {
        let table = self.tables.get(&kind);
        table
            .map(|table| table.values(view).cloned().collect())
            .unwrap_or_default()
    }

    /// Those of a kind of which this is true, as they really are.
    pub(crate) fn those(&self, kind: Kind, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut all = self.all(kind, View::Now);
        all.retain(fits);
        all
    }

    pub(crate) fn get(&self, kind: Kind, id: &str) -> Option<Value> {
        let found = self.tables.get(&kind)?.get(id)?;
        Some(Value::clone(found))
    }

    pub(crate) fn put(&mut self, kind: Kind, value: Value, now: Instant) {
        let id = text(&value, "id").to_owned();
        self.table(kind).put(id, value, now);
    }

    /// Sets fields of a resource.
    pub(crate) fn set(&mut self, kind: Kind, id: &str, fields: &Value, now: Instant) {
        self.table(kind)
            .edit(&id.to_owned(), now, |value| merge(value, fields));
    }

    pub(crate) fn remove(&mut self, kind: Kind, id: &str, now: Instant) {
        self.table(kind).remove(&id.to_owned(), now);
    }

    /// Puts a load balancer into a pending state for a while. At the end it is active, in error, or gone.
    pub(crate) fn begin_change(&mut self, id: &str, change: Change, now: Instant) {
        let pending = match change.end {
            End::Gone => "PENDING_DELETE",
            End::Active | End::Error if change.is_new => "PENDING_CREATE",
            End::Active | End::Error => "PENDING_UPDATE",
        };
        self.set(
            Kind::LoadBalancer,
            id,
            &json!({"provisioning_status": pending}),
            now,
        );
        let job = NewJob {
            id: change.job,
            command: "change load balancer",
            resources: vec![("loadbalancer", id.to_owned())],
            duration: change.duration,
            failure: None,
        };
        let id = id.to_owned();
        self.begin(job, now, move |project: &mut Self, at| match change.end {
            End::Active => project.set(
                Kind::LoadBalancer,
                &id,
                &json!({"provisioning_status": "ACTIVE"}),
                at,
            ),
            End::Error => project.set(
                Kind::LoadBalancer,
                &id,
                &json!({"provisioning_status": "ERROR"}),
                at,
            ),
            End::Gone => project.forget_balancer(&id, at),
        });
    }

    /// Removes a load balancer, its parts and its port; a floating IP of it stays, detached.
    fn forget_balancer(&mut self, id: &str, now: Instant) {
        let port = self.get(Kind::LoadBalancer, id);
        let port = port
            .map(|balancer| text(&balancer, "vip_port_id").to_owned())
            .unwrap_or_default();
        for pool in self.those(Kind::Pool, |pool| refers(pool, "loadbalancers", id)) {
            self.forget_pool(text(&pool, "id"), now);
        }
        for listener in self.those(Kind::Listener, |listener| {
            refers(listener, "loadbalancers", id)
        }) {
            self.remove(Kind::Listener, text(&listener, "id"), now);
        }
        for floating in self.those(Kind::FloatingIp, |ip| text(ip, "port_id") == port) {
            self.set(
                Kind::FloatingIp,
                text(&floating, "id"),
                &json!({"port_id": null}),
                now,
            );
        }
        self.remove(Kind::Port, &port, now);
        self.remove(Kind::LoadBalancer, id, now);
    }

    /// Removes a pool with its members and its monitor.
    pub(crate) fn forget_pool(&mut self, id: &str, now: Instant) {
        for member in self.those(Kind::Member, |member| text(member, "pool_id") == id) {
            self.remove(Kind::Member, text(&member, "id"), now);
        }
        for monitor in self.those(Kind::Monitor, |monitor| refers(monitor, "pools", id)) {
            self.remove(Kind::Monitor, text(&monitor, "id"), now);
        }
        self.remove(Kind::Pool, id, now);
    }
}

/// A change of a load balancer.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) job: String,
    pub(crate) duration: Duration,
    pub(crate) is_new: bool,
    pub(crate) end: End,
}

/// How it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Active,
    Error,
    Gone,
}

/// A text field; empty if there is none.
pub(crate) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// A list field; empty if there is none.
pub(crate) fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    let list = value.get(field).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

/// Whether a list of `{"id": …}` has this one.
pub(crate) fn refers(value: &Value, field: &str, id: &str) -> bool {
    let list = value.get(field).and_then(Value::as_array);
    list.is_some_and(|list| list.iter().any(|item| text(item, "id") == id))
}

/// Sets fields of an object.
pub(crate) fn merge(value: &mut Value, fields: &Value) {
    if let (Value::Object(value), Value::Object(fields)) = (value, fields) {
        for (name, field) in fields {
            value.insert(name.clone(), field.clone());
        }
    }
}
