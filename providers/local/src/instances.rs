//! Machines.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use cloudkeel_api::{
    Clock, CloudError, Doubt, ErrorKind, Existence, GoneProof, Instance, InstanceState, Instances,
    Match, NodeAddress, NodeFacts, Priority, ProviderId, Shared, Sighting, Sweep,
};

use crate::annotations::PREFIX;
use crate::client::{Api, Of};
use crate::id::LocalId;
use crate::wire::{AddressScope, Machine, MachineState};

/// How many machines one look-up asks for, besides their witness: as many as fit on a page.
const BATCH: usize = 49;

/// The machines of the project.
pub(crate) struct LocalInstances {
    api: Api,
    clock: Arc<dyn Clock>,
    /// A machine that the last sweep saw; 0 if there was none.
    last_seen: AtomicU64,
}

impl LocalInstances {
    pub(crate) const fn new(api: Api, clock: Arc<dyn Clock>) -> Self {
        Self {
            api,
            clock,
            last_seen: AtomicU64::new(0),
        }
    }

    /// The machine that an ID of ours names.
    fn own_id(&self, id: &ProviderId) -> Result<LocalId, Doubt> {
        let not_ours = |why: String| Doubt::NotOurs {
            id: id.clone(),
            why,
        };
        let local = LocalId::read(id).map_err(|error| not_ours(error.to_string()))?;
        let home = &self.api.home().project;
        if local.project != *home {
            return Err(not_ours(format!("this credential belongs to {home:?}")));
        }
        Ok(local)
    }

    /// Asks for one machine. "No such machine" is believed only if a second question, asked in another
    /// way, gets the same answer.
    async fn look_up(&self, id: &LocalId, sighting: Option<&Sighting>) -> Existence {
        let answer = match self.api.machine(id.machine).await {
            Ok(answer) => answer,
            Err(error) => return Existence::Unknown(Doubt::NoAnswer(error)),
        };
        if answer.value.is_err()
            && let Some(witness) = self.witness(sighting)
            && let Err(doubt) = self.ask_again(id, witness).await
        {
            return Existence::Unknown(doubt);
        }
        self.weigh(id, answer, sighting)
    }

    /// The machine that vouches for the credential, if it can be asked for.
    fn witness(&self, sighting: Option<&Sighting>) -> Option<u64> {
        let id = self.own_id(sighting?.machine()).ok()?;
        Some(id.machine)
    }

    /// Asks for the machine and its witness together: an answer that does not show the witness sees
    /// nothing, or what was long ago.
    async fn ask_again(&self, id: &LocalId, witness: u64) -> Result<(), Doubt> {
        let ids = [id.machine, witness];
        let listed = self.api.machines_with_ids(&ids, Priority::Urgent).await;
        let listed = listed.map_err(Doubt::NoAnswer)?;
        let scope = self.api.fingerprint(&listed.project);
        let shows = |number| listed.value.iter().any(|machine| machine.id == number);
        if listed.project != id.project {
            let was = self.api.fingerprint(&id.project);
            return Err(Doubt::ScopeChanged { was, now: scope });
        }
        if shows(id.machine) {
            let at = self.clock.now();
            return Err(Doubt::SeenMomentsAgo { at });
        }
        if !shows(witness) {
            return Err(Doubt::NothingElseSeen { scope });
        }
        Ok(())
    }

    /// What the cloud's answer about one machine proves.
    fn weigh(
        &self,
        id: &LocalId,
        answer: Of<Result<Machine, CloudError>>,
        sighting: Option<&Sighting>,
    ) -> Existence {
        let scope = self.api.fingerprint(&answer.project);
        if answer.project != id.project {
            // Another project has its own machines; that ours is not among them proves nothing.
            let was = self.api.fingerprint(&id.project);
            return Existence::Unknown(Doubt::ScopeChanged { was, now: scope });
        }
        let now = self.clock.now();
        let provider_id = id.provider_id();
        match answer.value {
            Ok(machine) if machine.state == MachineState::Deleted => {
                let operation = "GET /v1/machines/{id}";
                let proof = GoneProof::terminated(provider_id, operation, "deleted", &scope, now);
                Existence::Gone(proof)
            }
            Ok(machine) => Existence::present(instance(&answer.project, machine)),
            Err(error) => Existence::weigh_error(provider_id, error, &scope, sighting, now),
        }
    }

    /// An empty list is believed only if the machine that was last seen is gone as well.
    async fn doubt_emptiness(&self, listed: &Of<Vec<Machine>>) -> Result<(), CloudError> {
        if listed.project != self.api.home().project {
            return Ok(());
        }
        if let Some(machine) = listed.value.first() {
            self.last_seen.store(machine.id, Ordering::Relaxed);
            return Ok(());
        }
        let known = match self.last_seen.load(Ordering::Relaxed) {
            0 => return Ok(()),
            known => known,
        };
        match self.api.machine(known).await?.value {
            Err(_) => Ok(()),
            Ok(_) => Err(CloudError::new(
                "GET /v1/machines",
                ErrorKind::Incomplete,
                format!("the list is empty, but machine {known} is there"),
            )),
        }
    }

    /// Looks for the one machine of a Node that has no ID yet.
    async fn look_for(&self, node: &NodeFacts) -> Existence {
        match self.search(node).await {
            Ok((looked_for, found)) => {
                Match::of(found.iter().collect()).into_existence(&looked_for)
            }
            Err(error) => Existence::Unknown(Doubt::NoAnswer(error)),
        }
    }

    async fn search(&self, node: &NodeFacts) -> Result<(String, Vec<Instance>), CloudError> {
        if let Some(uuid) = &node.system_uuid {
            let uuid = uuid.to_lowercase();
            let found = living(self.api.machines_with("uuid", &uuid).await?);
            if !found.is_empty() {
                return Ok((format!("the system UUID {uuid:?}"), found));
            }
        }
        let mut found = BTreeMap::new();
        for key in ["name", "hostname"] {
            let machines = living(self.api.machines_with(key, &node.name).await?);
            found.extend(machines.into_iter().map(|i| (i.id.clone(), i)));
        }
        let found = found.into_values().collect();
        Ok((format!("the name {:?}", node.name), found))
    }

    /// Looks up many machines with few calls. A machine that is missing from the answer is asked for by
    /// itself before anything is said about it.
    async fn look_up_many(
        &self,
        ids: &[LocalId],
        sighting: Option<&Sighting>,
    ) -> BTreeMap<LocalId, Existence> {
        let witness = self.witness(sighting);
        let mut answers = BTreeMap::new();
        for ids in ids.chunks(BATCH) {
            let numbers = ids.iter().map(|id| id.machine).chain(witness);
            let numbers: Vec<u64> = numbers.collect();
            match self.api.machines_with_ids(&numbers, Priority::Urgent).await {
                Ok(listed) => {
                    for id in ids {
                        let answer = self.judge(id, &listed, witness, sighting).await;
                        answers.insert(id.clone(), answer);
                    }
                }
                Err(error) => {
                    let unknown = || Existence::Unknown(Doubt::NoAnswer(error.retold()));
                    answers.extend(ids.iter().map(|id| (id.clone(), unknown())));
                }
            }
        }
        answers
    }

    /// What a list says about one of the machines that it was asked for.
    async fn judge(
        &self,
        id: &LocalId,
        listed: &Of<Vec<Machine>>,
        witness: Option<u64>,
        sighting: Option<&Sighting>,
    ) -> Existence {
        let shown = |number| listed.value.iter().find(|machine| machine.id == number);
        if let Some(machine) = shown(id.machine) {
            let answer = Of {
                project: listed.project.clone(),
                value: Ok(machine.clone()),
            };
            return self.weigh(id, answer, sighting);
        }
        let seeing = listed.project == id.project && witness.and_then(shown).is_some();
        if !seeing {
            return self.look_up(id, sighting).await;
        }
        // The list was the one answer, this is the other.
        match self.api.machine(id.machine).await {
            Ok(answer) => self.weigh(id, answer, sighting),
            Err(error) => Existence::Unknown(Doubt::NoAnswer(error)),
        }
    }
}

#[async_trait]
impl Instances for LocalInstances {
    async fn sweep(&self) -> Result<Sweep, CloudError> {
        let taken = self.clock.now();
        let machines = self.api.machines().await?;
        self.doubt_emptiness(&machines).await?;
        let scope = self.api.fingerprint(&machines.project);
        Ok(Sweep::complete(scope, taken, living(machines)))
    }

    async fn find(&self, node: &NodeFacts, sighting: Option<&Sighting>) -> Existence {
        match &node.provider_id {
            None => self.look_for(node).await,
            Some(id) => match self.own_id(id) {
                Ok(id) => self.look_up(&id, sighting).await,
                Err(doubt) => Existence::Unknown(doubt),
            },
        }
    }

    async fn find_many(
        &self,
        nodes: &[Shared<NodeFacts>],
        sighting: Option<&Sighting>,
    ) -> Vec<Existence> {
        let own = |node: &NodeFacts| self.own_id(node.provider_id.as_ref()?).ok();
        let ids: BTreeSet<LocalId> = nodes.iter().filter_map(|node| own(node)).collect();
        let ids: Vec<LocalId> = ids.into_iter().collect();
        let mut known = self.look_up_many(&ids, sighting).await;
        let mut answers = Vec::with_capacity(nodes.len());
        for node in nodes {
            let batched = own(node).and_then(|id| known.remove(&id));
            answers.push(match batched {
                Some(answer) => answer,
                // No ID, another cloud's, or the same twice: none of it is a matter of the batch.
                None => self.find(node, sighting).await,
            });
        }
        answers
    }

    fn identify<'a>(&self, node: &NodeFacts, sweep: &'a Sweep) -> Match<'a> {
        if let Some(id) = &node.provider_id {
            return sweep.get(id).map_or(Match::None, Match::One);
        }
        let of_uuid = node.system_uuid.as_deref();
        let of_uuid = of_uuid.map_or(Vec::new(), |uuid| sweep.with_system_uuid(uuid));
        if of_uuid.is_empty() {
            Match::of(sweep.named(&node.name))
        } else {
            Match::of(of_uuid)
        }
    }
}

fn living(machines: Of<Vec<Machine>>) -> Vec<Instance> {
    let Of { project, value } = machines;
    value
        .into_iter()
        .filter(Machine::is_alive)
        .map(|machine| instance(&project, machine))
        .collect()
}

fn instance(project: &str, machine: Machine) -> Instance {
    let id = LocalId::new(project, machine.id).provider_id();
    let own_name = machine.hostname.as_ref().unwrap_or(&machine.name);
    let mut addresses = vec![NodeAddress::hostname(own_name)];
    addresses.extend(machine.addresses.iter().map(|a| match a.scope {
        AddressScope::Private => NodeAddress::internal(a.ip),
        AddressScope::Public => NodeAddress::external(a.ip),
    }));
    let labels = machine.labels.into_iter();
    Instance {
        aliases: machine.hostname.into_iter().collect(),
        system_uuid: Some(machine.uuid),
        state: match machine.state {
            MachineState::Running => InstanceState::Running,
            MachineState::Starting | MachineState::Stopping => InstanceState::Changing,
            MachineState::Off => InstanceState::ShutDown,
            MachineState::Deleted => InstanceState::Unknown,
        },
        instance_type: Some(machine.kind),
        zone: Some(machine.zone),
        region: Some(machine.region),
        addresses,
        labels: labels.filter(|(key, _)| key.starts_with(PREFIX)).collect(),
        ..Instance::new(id, machine.name)
    }
}
