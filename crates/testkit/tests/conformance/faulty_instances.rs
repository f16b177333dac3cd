//! Instances, with one mutation.

use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    CloudError, Doubt, ErrorKind, Evidence, Existence, GoneProof, Instance, InstanceList,
    InstanceState, Instances, KnownInstance, NodeFacts, Priority, ScopeFingerprint, Shared,
};
use cloudkeel_testkit::simulated_cloud::Fault;
use cloudkeel_testkit::simulated_cloud::wire::Machine;
use jiff::Timestamp;

use crate::faulty::Faulty;
use crate::mutant::Mutant;

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

/// The same list with other instances.
fn relisted(list: &InstanceList, instances: Vec<Instance>) -> InstanceList {
    InstanceList::complete(list.scope().clone(), list.taken(), instances)
}

/// For those who do not wait.
pub(crate) async fn within_a_second<T>(work: impl Future<Output = T>) -> Result<T, CloudError> {
    let patience = Duration::from_secs(1);
    let done = tokio::time::timeout(patience, work).await;
    done.map_err(|_| CloudError::new("wait", ErrorKind::Timeout, "it took a second"))
}

impl Faulty {
    /// The machines that are shown as deleted.
    fn tombstones(&self) -> Vec<Instance> {
        let gone = |machine: &Machine| !machine.is_alive();
        let machines = self.cloud.machines().into_iter().filter(gone);
        let id = |id| format!("local://demo/{id}").parse().unwrap();
        machines
            .map(|machine| Instance::new(id(machine.id), machine.name))
            .collect()
    }

    fn seen_first(&self, node: &NodeFacts) -> Option<Instance> {
        let seen = self.seen.lock().unwrap();
        seen.get(node.provider_id.as_ref()?).cloned()
    }

    /// The instance as it was when it was seen first.
    fn remembered(&self, found: Box<Instance>) -> Existence {
        let mut seen = self.seen.lock().unwrap();
        let first = seen.entry(found.id.clone()).or_insert(*found);
        Existence::present(first.clone())
    }

    /// The machine whose name fits, in the list.
    async fn fitting(&self, fits: impl Fn(&Instance) -> bool) -> Option<Existence> {
        let list = self.instances_of_correct().list().await.ok()?;
        let found = list.instances().find(|instance| fits(instance));
        found.cloned().map(Existence::present)
    }
}

#[async_trait]
impl Instances for Faulty {
    async fn list(&self) -> Result<InstanceList, CloudError> {
        let correct = self.instances_of_correct();
        match self.mutant {
            Mutant::Panics => panic!("a bug"),
            Mutant::Hangs => std::future::pending().await,
            Mutant::CannotBeEmpty => {
                let list = correct.list().await?;
                let nothing = || CloudError::invalid("list machines", "there are none");
                let any = list.instances().len() > 0;
                any.then_some(list).ok_or_else(nothing)
            }
            Mutant::ListsWhatItGets => {
                let scope = ScopeFingerprint::new("somewhere");
                let nothing = InstanceList::complete(scope, Timestamp::UNIX_EPOCH, []);
                Ok(correct.list().await.unwrap_or(nothing))
            }
            Mutant::LooksUpEachListed => {
                let list = correct.list().await?;
                for instance in list.instances() {
                    let node = NodeFacts {
                        name: instance.name.clone(),
                        provider_id: Some(instance.id.clone()),
                        ..NodeFacts::default()
                    };
                    correct.find(&node, None).await;
                }
                Ok(list)
            }
            Mutant::ListsWithoutZones => {
                let list = correct.list().await?;
                let plain = |instance: &Instance| Instance {
                    zone: None,
                    ..instance.clone()
                };
                Ok(relisted(&list, list.instances().map(plain).collect()))
            }
            Mutant::ListsTombstones => {
                let list = correct.list().await?;
                let living = list.instances().cloned();
                Ok(relisted(&list, living.chain(self.tombstones()).collect()))
            }
            Mutant::GivesUpAfterASecond => within_a_second(correct.list()).await?,
            _ => {
                self.exclusively(Mutant::StaysBusyWhenDropped, correct.list())
                    .await?
            }
        }
    }

    async fn find(&self, node: &NodeFacts, known_instance: Option<&KnownInstance>) -> Existence {
        let correct = self.instances_of_correct();
        match self.mutant {
            Mutant::MatchesByPrefix if node.provider_id.is_none() => {
                let found = self.fitting(|i| i.name.starts_with(&node.name)).await;
                found.unwrap_or(Existence::Unknown(Doubt::NoMatch {
                    looked_for: node.name.clone(),
                }))
            }
            Mutant::NeedsAnId if node.provider_id.is_none() => Existence::Unknown(Doubt::NoMatch {
                looked_for: node.name.clone(),
            }),
            Mutant::BelievesEmptyLists if node.provider_id.is_some() => {
                if self.is_played(|fault| *fault == Fault::EmptyList) {
                    gone(node)
                } else {
                    correct.find(node, known_instance).await
                }
            }
            Mutant::TakesStaleForGone if self.is_stale() => gone(node),
            Mutant::GivesUpAfterASecond => {
                let found = within_a_second(correct.find(node, known_instance)).await;
                found.unwrap_or_else(|error| Existence::Unknown(Doubt::NoAnswer(error)))
            }
            Mutant::RemembersInstances if self.seen_first(node).is_some() => {
                Existence::present(self.seen_first(node).unwrap())
            }
            Mutant::LooksUpByNameOnly => correct.find(&nameless(node), known_instance).await,
            Mutant::TakesAbsenceFromAListForGone if node.provider_id.is_some() => {
                let list = correct.list().await;
                let id = node.provider_id.as_ref().unwrap();
                match list {
                    Ok(list) if list.get(id).is_none() => gone(node),
                    _ => correct.find(node, known_instance).await,
                }
            }
            Mutant::CallsForForeignIds => {
                let _ = correct.list().await;
                correct.find(node, known_instance).await
            }
            _ => match (correct.find(node, known_instance).await, self.mutant) {
                (Existence::Unknown(Doubt::NoAnswer(_)), Mutant::TakesErrorsForGone)
                    if node.provider_id.is_some() =>
                {
                    gone(node)
                }
                (
                    Existence::Unknown(Doubt::NothingElseSeen { .. }),
                    Mutant::NeedsNoKnownInstance,
                ) => gone(node),
                (Existence::Present(mut found), Mutant::ShowsEverythingAsRunning) => {
                    found.state = InstanceState::Running;
                    Existence::Present(found)
                }
                (Existence::Present(found), Mutant::RemembersInstances) => self.remembered(found),
                (Existence::Gone(proof), Mutant::KeepsTombstones)
                    if matches!(proof.evidence(), Evidence::Terminated { .. }) =>
                {
                    Existence::present(Instance::new(proof.machine().clone(), &node.name))
                }
                (Existence::Present(mut found), Mutant::ReversesAddresses) => {
                    found.addresses.reverse();
                    Existence::Present(found)
                }
                (Existence::Present(mut found), Mutant::ForgetsAddresses) => {
                    found.addresses.clear();
                    Existence::Present(found)
                }
                (answer, _) => answer,
            },
        }
    }

    async fn find_many(
        &self,
        nodes: &[Shared<NodeFacts>],
        known_instance: Option<&KnownInstance>,
    ) -> Vec<Existence> {
        let mut answers = Vec::with_capacity(nodes.len());
        for node in nodes {
            let answer = self.find(node, known_instance).await;
            answers.push(match answer {
                Existence::Present(mut found) if self.mutant == Mutant::BatchesWithoutRegion => {
                    found.region = None;
                    Existence::Present(found)
                }
                answer => answer,
            });
        }
        answers
    }

    async fn describe(
        &self,
        mut instances: Vec<Instance>,
        priority: Priority,
    ) -> Vec<Result<Instance, CloudError>> {
        if self.mutant == Mutant::DescribesInAnotherOrder {
            instances.sort_by(|a, b| a.id.cmp(&b.id));
        }
        let count = instances.len();
        let described = self.instances_of_correct().describe(instances, priority);
        let described = self.exclusively(Mutant::StaysBusyWhenDescribeIsDropped, described);
        let busy = || CloudError::new("describe", ErrorKind::Busy, "still at it");
        let refused = |_| (0..count).map(|_| Err(busy())).collect();
        described.await.unwrap_or_else(refused)
    }
}
