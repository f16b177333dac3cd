//! Machines, with one sin.

use async_trait::async_trait;
use cloudkeel_api::{
    CloudError, Doubt, Existence, GoneProof, Instance, InstanceState, Instances, NodeFacts,
    ScopeFingerprint, Sighting, Sweep,
};
use cloudkeel_testkit::simulated_cloud::Fault;
use jiff::Timestamp;

use crate::sin::Sin;
use crate::wrong::Wrong;

fn gone(node: &NodeFacts) -> Existence {
    let id = node.provider_id.clone().unwrap();
    let scope = ScopeFingerprint::new("somewhere");
    Existence::Gone(GoneProof::terminated(
        id,
        "a guess",
        "gone",
        &scope,
        Timestamp::UNIX_EPOCH,
    ))
}

fn nameless(node: &NodeFacts) -> NodeFacts {
    NodeFacts {
        provider_id: None,
        system_uuid: None,
        ..node.clone()
    }
}

impl Wrong {
    /// The machine whose name fits, in the sweep.
    async fn fitting(&self, fits: impl Fn(&Instance) -> bool) -> Option<Existence> {
        let sweep = self.instances_of_right().sweep().await.ok()?;
        let found = sweep.instances().find(|instance| fits(instance));
        found.cloned().map(Existence::present)
    }
}

#[async_trait]
impl Instances for Wrong {
    async fn sweep(&self) -> Result<Sweep, CloudError> {
        let right = self.instances_of_right();
        match self.sin {
            Sin::Panics => panic!("a bug"),
            Sin::Hangs => std::future::pending().await,
            Sin::CannotBeEmpty => {
                let sweep = right.sweep().await?;
                let nothing = || CloudError::invalid("list machines", "there are none");
                let any = sweep.instances().len() > 0;
                any.then_some(sweep).ok_or_else(nothing)
            }
            Sin::SweepsWhatItGets => {
                let scope = ScopeFingerprint::new("somewhere");
                let nothing = Sweep::complete(scope, Timestamp::UNIX_EPOCH, []);
                Ok(right.sweep().await.unwrap_or(nothing))
            }
            Sin::AsksForEachMachineInASweep => {
                let sweep = right.sweep().await?;
                for instance in sweep.instances() {
                    let node = NodeFacts {
                        name: instance.name.clone(),
                        provider_id: Some(instance.id.clone()),
                        ..NodeFacts::default()
                    };
                    right.find(&node, None).await;
                }
                Ok(sweep)
            }
            Sin::ForgetsWhatASweepKnows => {
                let sweep = right.sweep().await?;
                let plain = |instance: &Instance| Instance {
                    zone: None,
                    ..instance.clone()
                };
                let all: Vec<_> = sweep.instances().map(plain).collect();
                Ok(Sweep::complete(sweep.scope().clone(), sweep.taken(), all))
            }
            _ => right.sweep().await,
        }
    }

    async fn find(&self, node: &NodeFacts, sighting: Option<&Sighting>) -> Existence {
        let right = self.instances_of_right();
        match self.sin {
            Sin::MatchesByPrefix if node.provider_id.is_none() => {
                let found = self.fitting(|i| i.name.starts_with(&node.name)).await;
                found.unwrap_or(Existence::Unknown(Doubt::NoMatch {
                    looked_for: node.name.clone(),
                }))
            }
            Sin::NeedsAnId if node.provider_id.is_none() => Existence::Unknown(Doubt::NoMatch {
                looked_for: node.name.clone(),
            }),
            Sin::BelievesEmptyLists if node.provider_id.is_some() => {
                let rules = self.cloud.faults().rules();
                if rules.iter().any(|rule| rule.fault == Fault::EmptyList) {
                    gone(node)
                } else {
                    right.find(node, sighting).await
                }
            }
            Sin::AsksByNameNotById => right.find(&nameless(node), sighting).await,
            Sin::TakesAbsenceFromAListForGone if node.provider_id.is_some() => {
                let sweep = right.sweep().await;
                let id = node.provider_id.as_ref().unwrap();
                match sweep {
                    Ok(sweep) if sweep.get(id).is_none() => gone(node),
                    _ => right.find(node, sighting).await,
                }
            }
            Sin::AsksAboutForeignIds => {
                let _ = right.sweep().await;
                right.find(node, sighting).await
            }
            _ => match (right.find(node, sighting).await, self.sin) {
                (Existence::Unknown(Doubt::NoAnswer(_)), Sin::TakesErrorsForGone)
                    if node.provider_id.is_some() =>
                {
                    gone(node)
                }
                (Existence::Unknown(Doubt::NothingElseSeen { .. }), Sin::NeedsNoWitness) => {
                    gone(node)
                }
                (Existence::Present(mut found), Sin::ShowsEverythingAsRunning) => {
                    found.state = InstanceState::Running;
                    Existence::Present(found)
                }
                (Existence::Present(mut found), Sin::ForgetsAddresses) => {
                    found.addresses.clear();
                    Existence::Present(found)
                }
                (answer, _) => answer,
            },
        }
    }
}
