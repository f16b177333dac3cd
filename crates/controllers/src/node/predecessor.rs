//! Remembers the machines of deleted Nodes. A cloud whose answers lag behind still shows them under their names, and a
//! new Node of the same name must not be matched with them.
//!
//! The system UUID that kubelets report distinguishes them: a Node that was deleted and registered again by the same
//! machine has the same one.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudkeel_api::{Instance, NodeFacts, ProviderId};
use tokio::time::Instant;

/// No cloud shows a machine for longer after it is gone.
const LAG: Duration = Duration::from_mins(5);

/// Nodes that went lately, by name.
#[derive(Debug, Default)]
pub(super) struct Predecessors(BTreeMap<String, Vec<Predecessor>>);

#[derive(Debug)]
struct Predecessor {
    provider_id: Option<ProviderId>,
    system_uuid: String,
    went: Instant,
}

impl Predecessors {
    /// Remembers a Node that is gone, or whose machine another one has replaced.
    pub(super) fn note(&mut self, gone: &NodeFacts) {
        self.0.retain(|_, known| {
            known.retain(|predecessor| predecessor.went.elapsed() < LAG);
            !known.is_empty()
        });
        if let Some(system_uuid) = gone.system_uuid.clone() {
            let predecessor = Predecessor {
                provider_id: gone.provider_id.clone(),
                system_uuid,
                went: Instant::now(),
            };
            let known = self.0.entry(gone.name.clone()).or_default();
            known.push(predecessor);
        }
    }

    /// Whether a machine is that of a Node which had this one's name before it, on other hardware.
    pub(super) fn had(&self, instance: &Instance, node: &NodeFacts) -> bool {
        let (Some(known), Some(own)) = (self.0.get(&node.name), &node.system_uuid) else {
            return false;
        };
        known.iter().any(|predecessor| {
            let is_its = predecessor.provider_id.as_ref() == Some(&instance.id)
                || instance
                    .system_uuid
                    .as_ref()
                    .is_some_and(|uuid| uuid.eq_ignore_ascii_case(&predecessor.system_uuid));
            is_its
                && !own.eq_ignore_ascii_case(&predecessor.system_uuid)
                && predecessor.went.elapsed() < LAG
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, id: Option<&str>, uuid: Option<&str>) -> NodeFacts {
        NodeFacts {
            name: name.to_owned(),
            provider_id: id.map(|id| id.parse().unwrap()),
            system_uuid: uuid.map(str::to_owned),
            ..NodeFacts::default()
        }
    }

    fn machine(id: &str, uuid: Option<&str>) -> Instance {
        let mut machine = Instance::new(id.parse().unwrap(), "n");
        machine.system_uuid = uuid.map(str::to_owned);
        machine
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_of_a_node_that_went_is_not_its_successors() {
        let mut predecessors = Predecessors::default();
        predecessors.note(&node("n", Some("c://1"), Some("A1")));
        predecessors.note(&node("n", None, Some("A2")));
        predecessors.note(&node("blank", Some("c://7"), None));
        let successor = node("n", None, Some("a3"));
        let same = node("n", None, Some("a1"));
        let unknown = node("n", None, None);
        for (case, machine, successor, expected) in [
            ("its ID", machine("c://1", None), &successor, true),
            ("its UUID", machine("c://2", Some("a2")), &successor, true),
            ("another", machine("c://3", Some("a3")), &successor, false),
            (
                "registered anew",
                machine("c://1", Some("a1")),
                &same,
                false,
            ),
            ("nothing reported", machine("c://1", None), &unknown, false),
            (
                "another name",
                machine("c://1", None),
                &node("m", None, Some("a3")),
                false,
            ),
            (
                "it had reported nothing",
                machine("c://7", None),
                &node("blank", None, Some("a3")),
                false,
            ),
        ] {
            assert_eq!(predecessors.had(&machine, successor), expected, "{case}");
        }
        tokio::time::advance(LAG).await;
        assert!(!predecessors.had(&machine("c://1", None), &successor));
        predecessors.note(&node("blank", None, None));
        assert!(predecessors.0.is_empty(), "nothing is kept for ever");
    }
}
