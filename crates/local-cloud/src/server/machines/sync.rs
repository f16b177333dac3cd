//! Brings the machines of one source in line with what it says.

use std::collections::BTreeMap;

use cloudkeel_provider_local::wire::{Machine, NewMachine};

use crate::simulated_cloud::{MachineSpec, Refusal, SimulatedCloud};

/// The label with the source of a machine. Machines without it are left alone.
const SOURCE: &str = "cloudkeel.dev/source";

/// A machine as its source describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reported {
    pub(crate) new: NewMachine,
    /// The ID by which it is remembered. A cloud that forgot it gives it the same one again.
    pub(crate) id: Option<u64>,
}

impl From<NewMachine> for Reported {
    fn from(new: NewMachine) -> Self {
        Self { new, id: None }
    }
}

/// A source of machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The file.
    File,
    /// The Nodes of a cluster.
    Nodes,
}

impl Source {
    const fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Nodes => "nodes",
        }
    }

    fn is_of(self, machine: &Machine) -> bool {
        machine.labels.get(SOURCE).map(String::as_str) == Some(self.as_str())
    }

    /// A machine that this source has: made, or brought in line. It keeps its ID as long as it keeps
    /// its name.
    pub(crate) fn put(self, cloud: &SimulatedCloud, reported: Reported) -> Result<(), Refusal> {
        let namesake = |machine: &Machine| self.is_of(machine) && machine.name == reported.new.name;
        let known = cloud.machines().into_iter().find(namesake);
        self.put_over(cloud, known, reported)
    }

    fn put_over(
        self,
        cloud: &SimulatedCloud,
        known: Option<Machine>,
        reported: Reported,
    ) -> Result<(), Refusal> {
        let Reported { mut new, id } = reported;
        let source = self.as_str().to_owned();
        new.labels.insert(SOURCE.to_owned(), source);
        match known {
            None => {
                let spec = MachineSpec::from(new);
                let revived = id.map(|id| cloud.revive_machine(id, spec.clone()));
                match revived {
                    Some(Ok(_)) => Ok(()),
                    Some(Err(_)) | None => cloud.add_machine(spec).map(drop),
                }
            }
            Some(known) => {
                let changed = merged(known.clone(), new);
                if changed == known {
                    return Ok(());
                }
                let edit = |machine: &mut Machine| *machine = changed;
                cloud.edit_machine(known.id, edit).map(drop)
            }
        }
    }

    /// A machine that this source has no more.
    pub(crate) fn remove(self, cloud: &SimulatedCloud, name: &str) -> Result<(), Refusal> {
        let namesakes = cloud
            .machines()
            .into_iter()
            .filter(|machine| self.is_of(machine) && machine.name == name);
        for machine in namesakes {
            cloud.destroy(machine.id)?;
        }
        Ok(())
    }
}

/// Makes a source's machines exactly these.
pub(crate) fn replace_all(
    cloud: &SimulatedCloud,
    source: Source,
    machines: Vec<Reported>,
) -> Result<(), Refusal> {
    let mut known: BTreeMap<String, Machine> = cloud
        .machines()
        .into_iter()
        .filter(|machine| source.is_of(machine))
        .map(|machine| (machine.name.clone(), machine))
        .collect();
    for reported in machines {
        let before = known.remove(&reported.new.name);
        source.put_over(cloud, before, reported)?;
    }
    known
        .into_values()
        .try_for_each(|machine| cloud.destroy(machine.id))
}

/// What is not said stays as it is.
fn merged(mut machine: Machine, new: NewMachine) -> Machine {
    fn replace<T>(field: &mut T, wanted: Option<T>) {
        if let Some(wanted) = wanted {
            *field = wanted;
        }
    }
    replace(&mut machine.kind, new.kind);
    replace(&mut machine.zone, new.zone);
    replace(&mut machine.uuid, new.uuid);
    replace(&mut machine.addresses, new.addresses);
    machine.hostname = new.hostname.or(machine.hostname);
    machine.labels = new.labels;
    machine
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated_cloud::Settings;

    fn named(name: &str, size: &str) -> Reported {
        Reported::from(NewMachine {
            name: name.to_owned(),
            kind: Some(size.to_owned()),
            ..NewMachine::default()
        })
    }

    #[tokio::test]
    async fn a_machine_that_the_cloud_forgot_gets_its_id_again() {
        let cloud = SimulatedCloud::new(Settings::default());
        let taken = cloud.add_machine(MachineSpec::named("other")).unwrap();
        let remembered = |name: &str, id| Reported {
            id: Some(id),
            ..named(name, "small")
        };
        let id_of = |name: &str| {
            let machines = cloud.machines();
            machines.iter().find(|m| m.name == name).map(|m| m.id)
        };
        let put = |reported| Source::Nodes.put(&cloud, reported).unwrap();
        put(remembered("forgotten", 40));
        assert_eq!(id_of("forgotten"), Some(40));
        put(remembered("mistaken", taken.id));
        assert_eq!(id_of("mistaken"), Some(41), "another's ID is not taken");
        put(remembered("absurd", u64::MAX));
        assert_eq!(id_of("absurd"), Some(42));
    }

    #[tokio::test]
    async fn a_source_rules_over_its_own_machines_and_no_others() {
        let cloud = SimulatedCloud::new(Settings::default());
        let by_hand = cloud.add_machine(MachineSpec::named("by-hand")).unwrap();
        let file = |machines| replace_all(&cloud, Source::File, machines).unwrap();
        let ids = || -> BTreeMap<String, u64> {
            let machines = cloud.machines().into_iter();
            machines.map(|machine| (machine.name, machine.id)).collect()
        };
        file(vec![named("a", "small"), named("b", "small")]);
        Source::Nodes.put(&cloud, named("node", "small")).unwrap();
        let first = ids();
        assert_eq!(first.len(), 4);
        file(vec![named("a", "large")]);
        let second = ids();
        assert_eq!(second.keys().collect::<Vec<_>>(), ["a", "by-hand", "node"]);
        assert_eq!(second["a"], first["a"], "it is still the same machine");
        assert_eq!(cloud.machine(first["a"]).unwrap().kind, "large");
        Source::File.remove(&cloud, "node").unwrap();
        assert_eq!(ids().len(), 3, "a file has no say about Nodes");
        Source::Nodes.remove(&cloud, "node").unwrap();
        file(vec![]);
        assert_eq!(ids().into_values().collect::<Vec<_>>(), [by_hand.id]);
    }

    #[tokio::test]
    async fn what_is_the_same_changes_nothing() {
        let cloud = SimulatedCloud::new(Settings::default());
        replace_all(&cloud, Source::File, vec![named("a", "small")]).unwrap();
        let before = cloud.changes();
        replace_all(&cloud, Source::File, vec![named("a", "small")]).unwrap();
        assert_eq!(cloud.changes(), before);
    }
}
