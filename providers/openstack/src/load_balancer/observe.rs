//! What is there, whose it is, and what the Service asks for.

use std::net::SocketAddr;

use cloudkeel_api::{CloudError, DesiredState, Failures, LoadBalancerSpec, Priority};
use cloudkeel_http::Request;
use cloudkeel_toolkit::{
    Classified, CloudBalancer, HasListenerKey, Labels, ListenerKey, SHARED_LABEL,
    ShareableBalancer, Sharing, unresolved,
};

use super::OpenStackBalancers;
use super::capabilities::Capabilities;
use super::desired::Desired;
use super::floating_ip::Floating;
use super::owner::{is_others, labels_of, service_name};
use super::security_group::Groups;
use super::source::Source;
use crate::annotations as key;
use crate::client::Service;
use crate::config::ContainerStore;
use crate::wire::balancer::{Listener, LoadBalancer, Member, MemberSettings, Monitor, Pool};
use crate::wire::network::{FloatingIp, Port};

const OPERATION: &str = "observe load balancer";

/// Everything that the plan needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Observed {
    /// The load balancer of the Service, or those that are to go with it.
    pub(super) found: Vec<Found>,
    /// Others that carry the Service's UID: of attempts that did not know of each other.
    pub(super) surplus: Vec<Found>,
    /// What the Service asks for, if it is not being deleted.
    pub(super) asked: Option<Desired>,
    pub(super) can: Capabilities,
    pub(super) floating: Floating,
    /// Floating IPs of a Service that goes, which lead nowhere.
    pub(super) strays: Vec<FloatingIp>,
    pub(super) groups: Groups,
    /// What of the Service refers to something that cannot be had.
    pub(super) unresolved: Vec<Failures>,
}

/// A load balancer with its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// The name of the Service in tags.
    pub(super) service: String,
    pub(super) role: Role,
    /// Its tags with a value.
    pub(super) labels: Labels,
    /// Which of its parts are the Service's, if other clients have some too.
    pub(super) sharing: Sharing,
    pub(super) balancer: LoadBalancer,
    pub(super) listeners: Vec<Listener>,
    pub(super) pools: Vec<PoolParts>,
    pub(super) floating_ip: Option<FloatingIp>,
}

/// What a Service is to a load balancer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It is the Service's.
    Owner,
    /// It is to be the Service's.
    Adopter,
    /// It is another's, and the Service asks to be served by it too.
    Sharer,
}

/// A pool with its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PoolParts {
    pub(super) pool: Pool,
    pub(super) members: Vec<Member>,
    pub(super) monitor: Option<Monitor>,
}

impl Found {
    pub(super) fn is_pending(&self) -> bool {
        self.balancer.provisioning_status.starts_with("PENDING_")
    }

    pub(super) fn has_failed(&self) -> bool {
        self.balancer.provisioning_status == "ERROR"
    }

    /// Whether a listener is the Service's: it has its tag, or, to the owner, no other Service or client claims it.
    pub(super) fn is_ours(&self, listener: &Listener) -> bool {
        let is_its = match self.role {
            Role::Sharer => listener.tags.contains(&self.service),
            Role::Owner | Role::Adopter => !is_others(listener, &self.balancer, &self.service),
        };
        is_its && !self.sharing.is_foreign_listener(listener)
    }

    pub(super) fn our_listeners(&self) -> impl Iterator<Item = &Listener> {
        self.listeners.iter().filter(|it| self.is_ours(it))
    }

    /// The pool behind a listener.
    pub(super) fn pool_of(&self, listener: &str) -> Option<&PoolParts> {
        let mut pools = self.pools.iter();
        pools.find(|parts| parts.pool.listeners.iter().any(|its| its.id == listener))
    }
}

impl CloudBalancer for Found {
    fn id(&self) -> String {
        self.balancer.id.clone()
    }

    fn name(&self) -> &str {
        &self.balancer.name
    }
}

impl ShareableBalancer for Found {
    type Target = SocketAddr;

    fn is_marked_shared(&self) -> bool {
        self.labels.contains_key(SHARED_LABEL)
    }

    fn listener_keys(&self) -> impl Iterator<Item = ListenerKey> {
        self.listeners.iter().map(HasListenerKey::listener_key)
    }

    /// Those behind listeners of the Service: behind others it has none.
    fn targets(&self) -> impl Iterator<Item = SocketAddr> {
        let tagged = self.listeners.iter();
        let tagged = tagged.filter(|listener| listener.tags.contains(&self.service));
        let pools = tagged.filter_map(|listener| self.pool_of(&listener.id));
        let members = pools.flat_map(|parts| &parts.members);
        members.map(|member| member.settings.place())
    }
}

impl OpenStackBalancers {
    pub(super) async fn observe_in(
        &self,
        desired: DesiredState<'_>,
        source: Source<'_>,
    ) -> Result<Observed, CloudError> {
        let can = self.capabilities().await?;
        let DesiredState::Present(spec) = desired else {
            return self.observe_removal(desired, source, can).await;
        };
        let mut asked = Desired::of(spec, &self.config, can)?;
        let (found, others) = self.find(&spec.balancer_ref, source).await?;
        let Some((role, balancer)) = found else {
            return self.observe_nothing(spec, asked, can).await;
        };
        let name = &asked.service_name;
        let mut found = self.parts(role, balancer, name, source).await?;
        let mut surplus = Vec::new();
        for balancer in others {
            let mut other = self.parts(Role::Owner, balancer, name, source).await?;
            other.sharing = Sharing::leaving(&spec.balancer_ref, &other);
            surplus.push(other);
        }
        if found.is_pending() {
            // Nothing can be changed until the cloud is done.
            return Ok(Observed {
                found: vec![found],
                asked: Some(asked),
                can,
                ..Observed::default()
            });
        }
        asked.fill_subnet(
            found.balancer.vip_subnet_id.as_ref(),
            self.config.load_balancers.serial,
        );
        if role != Role::Sharer {
            let ports = asked.listeners.iter().map(HasListenerKey::listener_key);
            let members = asked.listeners.iter().flat_map(|port| &port.members);
            let places = members.map(MemberSettings::place);
            let (service, is_adopted) = (&spec.balancer_ref, role == Role::Adopter);
            found.sharing = Sharing::of_balancer(service, &found, is_adopted, ports, places)?;
        }
        let mut observed = Observed {
            floating: self.floating(&asked, Some(&found), spec).await?,
            groups: self.groups(spec, &asked, can).await?,
            unresolved: self.certificate(&asked, &found).await?,
            found: vec![found],
            surplus,
            asked: Some(asked),
            can,
            strays: Vec::new(),
        };
        self.report_notices(spec, &mut observed);
        Ok(observed)
    }

    /// A Service without a load balancer: where a new one would be.
    async fn observe_nothing(
        &self,
        spec: &LoadBalancerSpec,
        mut asked: Desired,
        can: Capabilities,
    ) -> Result<Observed, CloudError> {
        let network = &asked.network;
        if network.subnet.is_none() && network.network.is_none() && asked.port_id.is_none() {
            asked.network.subnet = Some(self.subnet_of_nodes(spec, &asked).await?);
        }
        let subnet = asked.network.subnet.clone();
        asked.fill_subnet(subnet.as_ref(), self.config.load_balancers.serial);
        let certificate = self.check_certificate(asked.tls_container.as_ref()).await;
        certificate?;
        let mut observed = Observed {
            groups: self.groups(spec, &asked, can).await?,
            asked: Some(asked),
            can,
            ..Observed::default()
        };
        self.report_notices(spec, &mut observed);
        Ok(observed)
    }

    async fn observe_removal(
        &self,
        desired: DesiredState<'_>,
        source: Source<'_>,
        can: Capabilities,
    ) -> Result<Observed, CloudError> {
        let (balancer_ref, mut found) = (desired.balancer_ref(), Vec::new());
        let name = service_name(balancer_ref);
        for (role, balancer) in self.find_for_removal(balancer_ref, source).await? {
            let mut parts = self.parts(role, balancer, &name, source).await?;
            if role != Role::Sharer {
                parts.sharing = Sharing::leaving(balancer_ref, &parts);
            }
            let (left, sharing) = (Classified::ours(parts.balancer.clone()), &parts.sharing);
            self.events.shared_balancer_left(desired, &left, sharing);
            found.push(parts);
        }
        Ok(Observed {
            found,
            can,
            groups: self.groups_of_removed(balancer_ref).await?,
            strays: self.stray_floating_ips(balancer_ref).await?,
            ..Observed::default()
        })
    }

    async fn parts(
        &self,
        role: Role,
        balancer: LoadBalancer,
        service: &str,
        source: Source<'_>,
    ) -> Result<Found, CloudError> {
        let mut found = Found {
            service: service.to_owned(),
            role,
            labels: labels_of(&balancer.tags),
            sharing: Sharing::default(),
            listeners: Vec::new(),
            pools: Vec::new(),
            floating_ip: source.floating_ip(balancer.vip_port_id.as_ref()).await?,
            balancer,
        };
        if found.is_pending() {
            return Ok(found);
        }
        let id = &found.balancer.id;
        found.listeners = source.listeners(id).await?;
        for pool in source.pools(id).await? {
            let members = source.members(&pool.id).await?;
            let monitor = match &pool.healthmonitor_id {
                Some(monitor) => Some(source.monitor(monitor).await?),
                None => None,
            };
            found.pools.push(PoolParts {
                pool,
                members,
                monitor,
            });
        }
        Ok(found)
    }

    /// The subnet of the first Node, where a load balancer is if nothing else is said.
    async fn subnet_of_nodes(
        &self,
        spec: &LoadBalancerSpec,
        asked: &Desired,
    ) -> Result<String, CloudError> {
        let unknown = |why: &str| {
            let message = format!("{why}: set `subnet-id` or {}", key::SUBNET_ID.name());
            CloudError::invalid("find subnet of load balancer", message)
        };
        let members = asked.listeners.first().map(|listener| &listener.members);
        let Some(member) = members.and_then(|members| members.first()) else {
            return Err(unknown(
                "no subnet is configured, and there is no Node to find it by",
            ));
        };
        let target = spec.targets.get(&member.name);
        let id = target.and_then(|target| target.node.provider_id.as_ref());
        let id = id.and_then(|id| self.servers.rules.ids.read(id).ok());
        let id = id.ok_or_else(|| {
            unknown(&format!(
                "Node {} is no server of this project",
                member.name
            ))
        })?;
        let ports: Vec<Port> = self.servers.api.all(&[("device_id", &id)]).await?;
        let mut ips = ports.iter().flat_map(|port| &port.fixed_ips);
        let fixed = ips.find(|fixed| fixed.ip_address == member.address);
        let subnet = fixed.map(|fixed| fixed.subnet_id.clone());
        subnet.ok_or_else(|| {
            unknown(&format!(
                "no port of Node {} has {}",
                member.name, member.address
            ))
        })
    }

    /// What is wrong with a certificate that a listener does not have yet.
    async fn certificate(
        &self,
        asked: &Desired,
        found: &Found,
    ) -> Result<Vec<Failures>, CloudError> {
        let wanted = asked.tls_container.as_ref();
        let has_it =
            |listener: &Listener| listener.settings.default_tls_container_ref.as_ref() == wanted;
        if found.listeners.iter().any(has_it) {
            return Ok(Vec::new());
        }
        match self.check_certificate(wanted).await {
            Ok(()) => Ok(Vec::new()),
            Err(error) => Ok(vec![unresolved(error)?]),
        }
    }

    /// Asks Barbican for a certificate. It would be refused later, with less to say why.
    async fn check_certificate(&self, wanted: Option<&String>) -> Result<(), CloudError> {
        let Some(reference) = wanted else {
            return Ok(());
        };
        if self.config.load_balancers.container_store == ContainerStore::External {
            return Ok(());
        }
        let name = key::DEFAULT_TLS_CONTAINER_REF.name();
        let mut parts = reference.rsplit('/');
        let (id, kind) = (
            parts.next().unwrap_or_default(),
            parts.next().unwrap_or_default(),
        );
        if !matches!(kind, "containers" | "secrets") || id.is_empty() {
            let message = format!(
                "{name}: {reference:?}: expected a reference that ends in `containers/<id>` or `secrets/<id>`"
            );
            return Err(CloudError::invalid(OPERATION, message));
        }
        let api = &self.servers.api;
        let request = Request::get(format!("/{kind}/{{id}}")).param("id", id);
        let found = api
            .client(Service::Keys)?
            .send(request.priority(Priority::Normal))
            .await;
        found.map(drop).map_err(|error| {
            if error.is_not_found() {
                return CloudError::invalid(
                    OPERATION,
                    format!("{name}: {reference:?}: Barbican has no such certificate"),
                );
            }
            error
        })
    }

    /// Records Events about options of the Service that cannot be met.
    fn report_notices(&self, spec: &LoadBalancerSpec, observed: &mut Observed) {
        let service = &spec.balancer_ref.service;
        let Some(asked) = &observed.asked else {
            return;
        };
        let nodes = asked
            .unreachable
            .iter()
            .map(|why| ("TargetUnreachable", format!("{why}: it gets no traffic")));
        for (reason, message) in asked
            .notices
            .iter()
            .cloned()
            .chain(nodes)
            .chain(observed.floating.notice())
        {
            self.events.warn(service, reason, message);
        }
    }
}
