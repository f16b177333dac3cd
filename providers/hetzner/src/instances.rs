//! Machines: cloud servers, and dedicated servers where there are some.

mod address;
mod dedicated;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use cloudkeel_api::{
    BlindSpot, Clock, CloudError, Doubt, ErrorKind, Event, Existence, Instance, InstanceState,
    Instances, Match, NodeAddress, NodeFacts, ScopeFingerprint, Shared, Sighting, Sweep,
};

use self::address::forwarded;
use crate::client::{Api, Login, Robot};
use crate::config::{AddressFamily, Config};
use crate::fleet::Fleet;
use crate::id::HetznerId;
use crate::tell::Teller;
use crate::wire::Server;

/// The label that says by whom a machine is provided.
pub const PROVIDED_BY: &str = "instance.hetzner.cloud/provided-by";

/// From so many look-ups on, one list answers for those that are there.
const LIST_FROM: usize = 10;

/// How many servers are asked for before a token is believed to be blind.
const WITNESSES: usize = 3;

/// The reason of the event about a Node that several machines could be.
const LOOKUP_FAILED: &str = "InstanceLookupFailed";

/// The reason of the event about addresses that a Node does not get.
const MISCONFIGURED_INTERNAL_IP: &str = "MisconfiguredInternalIP";

/// What makes a machine a Node, besides the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) family: AddressFamily,
    pub(crate) zone_label: bool,
    /// The private network.
    pub(crate) network: Option<u64>,
    pub(crate) forward_internal_ips: bool,
    pub(crate) delete_renamed: bool,
}

impl Rules {
    pub(crate) fn new(config: &Config, network: Option<u64>) -> Self {
        Self {
            family: config.address_family,
            zone_label: config.zone_label,
            network,
            forward_internal_ips: config.robot.enabled && config.robot.forward_internal_ips,
            delete_renamed: config.robot.delete_renamed,
        }
    }
}

/// The machines of a project and of a Robot account.
pub(crate) struct HetznerInstances {
    pub(crate) api: Api,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) robot: Login,
    pub(crate) rules: Rules,
    pub(crate) scope: ScopeFingerprint,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) teller: Arc<Teller>,
    /// A server that the last list showed; 0 if there was none.
    pub(crate) last_seen: AtomicU64,
}

impl HetznerInstances {
    async fn swept_servers(&self) -> Result<Vec<Instance>, CloudError> {
        let servers = self.fleet.now().await?;
        self.doubt_emptiness(&servers).await?;
        let servers = servers.iter();
        Ok(servers.map(|server| self.rules.cloud(server)).collect())
    }

    async fn swept_dedicated(&self, robot: &Robot) -> Result<Vec<Instance>, CloudError> {
        let servers = robot.servers().await?;
        let servers = servers.iter();
        Ok(servers.map(|server| self.rules.robot(server)).collect())
    }

    /// An empty list is believed only if the server that was last seen is gone as well.
    async fn doubt_emptiness(&self, servers: &[Server]) -> Result<(), CloudError> {
        if let Some(server) = servers.first() {
            self.last_seen.store(server.id, Ordering::Relaxed);
            return Ok(());
        }
        let known = match self.last_seen.load(Ordering::Relaxed) {
            0 => return Ok(()),
            known => known,
        };
        match self.api.server(known).await {
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Err(CloudError::new(
                "GET /servers",
                ErrorKind::Incomplete,
                format!("the list is empty, but server {known} is there"),
            )),
        }
    }

    /// Asks for one server. "No such server" is believed only if its witness is still seen: an answer
    /// that shows neither comes from another project.
    async fn look_up(&self, node: &NodeFacts, id: u64, sighting: Option<&Sighting>) -> Existence {
        let error = match self.fleet.server(id).await {
            Ok(server) => return Existence::present(self.rules.cloud(&server)),
            Err(error) => error,
        };
        if error.is_not_found()
            && let Err(doubt) = self.see_witness(id, sighting).await
        {
            return Existence::Unknown(doubt);
        }
        self.weigh(node, id, error, sighting)
    }

    /// Looks at a server that vouches for the token: the one that was sighted, else some others, since
    /// that one may be dedicated, of which the token knows nothing, or may have gone too. Others were seen
    /// together with it: a token that was swapped meanwhile finds servers too, but not of this project.
    async fn see_witness(&self, id: u64, sighting: Option<&Sighting>) -> Result<(), Doubt> {
        let mut witnesses = Vec::new();
        if let Some(sighting) = sighting {
            let sighted = match HetznerId::read(sighting.machine()) {
                Ok(HetznerId::Cloud(sighted)) => Some(sighted),
                Ok(HetznerId::Robot(_)) | Err(_) => None,
            };
            witnesses.extend(sighted);
            let others = self.fleet.others_than(id, sighted, WITNESSES);
            witnesses.extend(others);
        }
        for witness in witnesses {
            match self.api.server(witness).await {
                Ok(_) => return Ok(()),
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(Doubt::NoAnswer(error)),
            }
        }
        Err(Doubt::NothingElseSeen {
            scope: self.scope.clone(),
        })
    }

    fn weigh(
        &self,
        node: &NodeFacts,
        id: u64,
        error: CloudError,
        sighting: Option<&Sighting>,
    ) -> Existence {
        // As it stands on the Node, which may be spelled in another way.
        let text = node.provider_id.clone();
        let text = text.unwrap_or_else(|| HetznerId::Cloud(id).provider_id());
        Existence::weigh_error(text, error, &self.scope, sighting, self.clock.now())
    }

    /// Looks for the one machine of a Node that has no ID yet.
    async fn look_for(&self, node: &NodeFacts) -> Existence {
        match self.search(&node.name).await {
            Ok(found) => {
                let looked_for = format!("the name {:?}", node.name);
                let existence = Match::of(found.iter().collect()).into_existence(&looked_for);
                if let Existence::Unknown(doubt @ Doubt::Ambiguous { .. }) = &existence {
                    let event = Event::warning(node, LOOKUP_FAILED, doubt.to_string());
                    self.teller.tell(event);
                }
                existence
            }
            Err(error) => Existence::Unknown(Doubt::NoAnswer(error)),
        }
    }

    async fn search(&self, name: &str) -> Result<Vec<Instance>, CloudError> {
        let servers = self.fleet.named(name).await?;
        let mut found: Vec<_> = servers
            .iter()
            .filter(|server| server.name == name)
            .map(|server| self.rules.cloud(server))
            .collect();
        if let Login::Known(robot) = &self.robot {
            let namesakes = dedicated::named(robot, name).await?;
            found.extend(namesakes.iter().map(|server| self.rules.robot(server)));
        }
        Ok(found)
    }

    /// The servers among these IDs that one list shows; nothing is said about the others.
    async fn listed(&self, ids: &[u64]) -> BTreeMap<u64, Existence> {
        if ids.len() < LIST_FROM {
            return BTreeMap::new();
        }
        // Without a list, each is asked for by itself.
        let Ok(servers) = self.fleet.now().await else {
            return BTreeMap::new();
        };
        let ids: BTreeSet<_> = ids.iter().collect();
        let wanted = servers.iter().filter(|server| ids.contains(&server.id));
        wanted
            .map(|server| (server.id, Existence::present(self.rules.cloud(server))))
            .collect()
    }

    /// Looks up servers one by one; their witness is looked at once for all that are not there.
    async fn look_up_many(
        &self,
        nodes: &[(&NodeFacts, u64)],
        sighting: Option<&Sighting>,
    ) -> BTreeMap<u64, Existence> {
        let ids: Vec<_> = nodes.iter().map(|(_, id)| *id).collect();
        let mut known = self.listed(&ids).await;
        let mut missing = Vec::new();
        for (node, id) in nodes {
            if known.contains_key(id) {
                continue;
            }
            match self.fleet.server(*id).await {
                Ok(server) => {
                    known.insert(*id, Existence::present(self.rules.cloud(&server)));
                }
                Err(error) if error.is_not_found() => missing.push((*node, *id, error)),
                Err(error) => {
                    known.insert(*id, Existence::Unknown(Doubt::NoAnswer(error)));
                }
            }
        }
        if missing.is_empty() {
            return known;
        }
        let first = missing.first().map_or(0, |(_, id, _)| *id);
        let seen = self.see_witness(first, sighting).await;
        for (node, id, error) in missing {
            let existence = match &seen {
                Ok(()) => self.weigh(node, id, error, sighting),
                Err(Doubt::NoAnswer(error)) => Existence::Unknown(Doubt::NoAnswer(error.retold())),
                Err(_) => Existence::Unknown(Doubt::NothingElseSeen {
                    scope: self.scope.clone(),
                }),
            };
            known.insert(id, existence);
        }
        known
    }
}

#[async_trait]
impl Instances for HetznerInstances {
    async fn sweep(&self) -> Result<Sweep, CloudError> {
        let taken = self.clock.now();
        let complete = |instances| Sweep::complete(self.scope.clone(), taken, instances);
        let Login::Known(robot) = &self.robot else {
            return Ok(complete(self.swept_servers().await?));
        };
        let (servers, dedicated) = (
            self.swept_servers().await,
            self.swept_dedicated(robot).await,
        );
        let blind = |part: &str, error| BlindSpot {
            part: part.to_owned(),
            error,
        };
        match (servers, dedicated) {
            (Ok(mut servers), Ok(dedicated)) => {
                servers.extend(dedicated);
                Ok(complete(servers))
            }
            (Ok(servers), Err(error)) => {
                Ok(complete(servers).with_blind_spots(vec![blind("Robot", error)]))
            }
            (Err(error), Ok(dedicated)) => {
                Ok(complete(dedicated).with_blind_spots(vec![blind("Cloud", error)]))
            }
            (Err(error), Err(_)) => Err(error),
        }
    }

    async fn find(&self, node: &NodeFacts, sighting: Option<&Sighting>) -> Existence {
        let Some(text) = &node.provider_id else {
            return self.look_for(node).await;
        };
        match HetznerId::read(text) {
            Ok(HetznerId::Cloud(id)) => self.look_up(node, id, sighting).await,
            Ok(HetznerId::Robot(number)) => self.look_up_dedicated(node, text, number).await,
            Err(error) => Existence::Unknown(Doubt::NotOurs {
                id: text.clone(),
                why: error.to_string(),
            }),
        }
    }

    async fn find_many(
        &self,
        nodes: &[Shared<NodeFacts>],
        sighting: Option<&Sighting>,
    ) -> Vec<Existence> {
        let own = |node: &NodeFacts| match HetznerId::read(node.provider_id.as_ref()?) {
            Ok(HetznerId::Cloud(id)) => Some(id),
            Ok(HetznerId::Robot(_)) | Err(_) => None,
        };
        let servers: Vec<_> = nodes
            .iter()
            .filter_map(|node| Some((&**node, own(node)?)))
            .collect();
        let mut known = self.look_up_many(&servers, sighting).await;
        let mut answers = Vec::with_capacity(nodes.len());
        for node in nodes {
            let batched = own(node).and_then(|id| known.remove(&id));
            answers.push(match batched {
                Some(answer) => answer,
                // No ID, a dedicated server, or the same twice: none of it is a matter of the batch.
                None => self.find(node, sighting).await,
            });
        }
        answers
    }

    fn identify<'a>(&self, node: &NodeFacts, sweep: &'a Sweep) -> Match<'a> {
        let Some(text) = &node.provider_id else {
            return match Match::of(sweep.named(&node.name)) {
                // Robot is listed rarely: the name may be another server's by now, so it has to be looked up.
                Match::One(instance) if is_dedicated(instance) => Match::None,
                matched => matched,
            };
        };
        let Ok(id) = HetznerId::read(text) else {
            return Match::None;
        };
        let found = sweep.get(&id.provider_id());
        // A dedicated server that has got another name may be another Node by now.
        let same = |instance: &&Instance| match id {
            HetznerId::Cloud(_) => true,
            HetznerId::Robot(_) => instance.name == node.name,
        };
        found.filter(same).map_or(Match::None, Match::One)
    }

    fn addresses(&self, instance: &Instance, node: &NodeFacts) -> Vec<NodeAddress> {
        let mut addresses = instance.addresses.clone();
        if !is_dedicated(instance) || !self.rules.forward_internal_ips {
            return addresses;
        }
        let forwarded = forwarded(&addresses, node, self.rules.family);
        if !forwarded.refused.is_empty() {
            let message = format!(
                "these private addresses of the kubelet are left out: {}",
                forwarded.refused.join("; ")
            );
            let event = Event::warning(node, MISCONFIGURED_INTERNAL_IP, message);
            self.teller.tell(event);
        }
        addresses.extend(forwarded.kept);
        addresses
    }
}

fn is_dedicated(instance: &Instance) -> bool {
    matches!(HetznerId::read(&instance.id), Ok(HetznerId::Robot(_)))
}

impl Rules {
    /// A cloud server as a machine.
    pub(crate) fn cloud(&self, server: &Server) -> Instance {
        let location = server.location.as_ref().map(|location| &location.name);
        Instance {
            state: match server.status.as_str() {
                "running" => InstanceState::Running,
                "off" => InstanceState::ShutDown,
                "initializing" | "starting" | "stopping" | "deleting" | "migrating"
                | "rebuilding" => InstanceState::Changing,
                _ => InstanceState::Unknown,
            },
            instance_type: Some(server.kind.name.clone()),
            zone: location
                .filter(|_| self.zone_label)
                .map(|location| zone_of(location).to_owned()),
            region: location.cloned(),
            addresses: address::of_cloud(server, self.family, self.network),
            labels: provided_by("cloud"),
            ..Instance::new(HetznerId::Cloud(server.id).provider_id(), &server.name)
        }
    }
}

fn provided_by(whom: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(PROVIDED_BY.to_owned(), whom.to_owned())])
}

/// The data centre that a location had when Nodes got their first labels. Labels stay as they were.
fn zone_of(location: &str) -> &str {
    match location {
        "nbg1" => "nbg1-dc3",
        "hel1" => "hel1-dc2",
        "fsn1" => "fsn1-dc14",
        "ash" => "ash-dc1",
        "hil" => "hil-dc1",
        "sin" => "sin-dc1",
        other => other,
    }
}

#[cfg(test)]
mod tests;
