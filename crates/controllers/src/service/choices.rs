//! The targets that Services choose alike, worked out once for as long as the Nodes are as they are.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use cloudkeel_api::{Features, LabelSelector, Shared, Target};

use super::controller::ServiceController;
use super::marks::{Marks, marks_of};
use super::targets::{Candidate, TargetRules, choose};
use super::wants::Serving;

/// So many are kept. More selectors than that are seldom, and each may have every Node.
const MOST_CHOICES: usize = 16;

/// What a choice depends on besides the Service: the Nodes, and the providers of all clouds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Version {
    nodes: u64,
    providers: Vec<u64>,
}

/// A cloud and a selector: all Services that have both in common choose alike.
type Alike = (String, Option<LabelSelector>);

/// The targets of a Service.
#[derive(Clone)]
pub(super) struct Choice {
    pub(super) targets: Shared<BTreeMap<String, Target>>,
    /// The same, as they are remembered.
    pub(super) marks: Arc<Marks>,
}

/// What was chosen from the Nodes as they are.
#[derive(Default)]
pub(super) struct Choices(Mutex<Known>);

#[derive(Default)]
struct Known {
    version: Version,
    candidates: BTreeMap<String, Candidate>,
    choices: BTreeMap<Alike, Choice>,
}

impl ServiceController {
    /// The targets of all Services of a cloud with this selector, those that leave aside.
    pub(super) fn choice(
        &self,
        serving: &Serving,
        features: Features,
        selector: Option<LabelSelector>,
    ) -> Choice {
        if selector.is_some() {
            self.labels_matter.store(true, Ordering::Relaxed);
        }
        let alike = (serving.cloud.clone(), selector);
        let mut known = self
            .choices
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.bring_up_to_date(&mut known);
        if let Some(choice) = known.choices.get(&alike) {
            return choice.clone();
        }
        let rules = TargetRules {
            serving,
            features,
            selector: alike.1.clone(),
        };
        let targets = choose(known.candidates.values(), &rules);
        let choice = Choice {
            marks: self.records.share(marks_of(&targets)),
            targets: targets.into(),
        };
        if known.choices.len() >= MOST_CHOICES {
            known.choices.clear();
        }
        known.choices.insert(alike, choice.clone());
        choice
    }

    /// Forgets what was chosen if anything has changed. Whose a Node is stays known if only others have.
    fn bring_up_to_date(&self, known: &mut Known) {
        let clouds = &self.parts.clouds;
        let version = Version {
            nodes: self.parts.nodes.version(),
            providers: clouds.iter().map(|c| c.cell.version()).collect(),
        };
        if known.version == version {
            return;
        }
        known.choices.clear();
        let mut before = std::mem::take(&mut known.candidates);
        if known.version.providers != version.providers {
            before.clear();
        }
        let nodes = self.parts.nodes.all().into_iter();
        known.candidates = nodes
            .map(|node| {
                let name = node.facts.name.clone();
                let same = before.remove(&name);
                let same = same.filter(|before| Arc::ptr_eq(&before.node, &node));
                (name, same.unwrap_or_else(|| Candidate::new(node, clouds)))
            })
            .collect();
        known.version = version;
    }
}
