//! Whose the Nodes are, and which instances are theirs: what the controllers' functions say of the lists.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use cloudkeel_api::{Instance, InstanceList, Match, NodeAddress, NodeFacts, Priority, ProviderId};
use cloudkeel_controllers::clouds::{Cloud, Owner, Snapshot as Listed, owner_of};
use cloudkeel_controllers::wellknown::UNINITIALIZED_TAINT;
use cloudkeel_diagnose::{CloudState, InstanceMatch, LookUp, NodeOwner, NodeState};

/// The list of each cloud, in the order of the clouds; `None` if it could not be read or there is none.
type Lists = [Option<Arc<Listed>>];

/// Enters owners and instances of all Nodes, and which instances are no Node's.
pub(super) async fn match_instances(
    nodes: &mut [NodeState],
    clouds: &[Arc<Cloud>],
    lists: &Lists,
    states: &mut [CloudState],
) {
    let mut owners = Vec::with_capacity(nodes.len());
    for node in nodes.iter_mut() {
        let owner = owner_of(&node.view.facts, clouds);
        node.owner = owner_state(&owner);
        owners.push(owner);
    }
    for (cloud, list) in clouds.iter().zip(lists) {
        let provider = cloud.provider();
        let Some(instances) = provider.instances() else {
            continue;
        };
        let mut taken = BTreeSet::new();
        let mut summaries = BTreeMap::new();
        let mut index = None;
        for (place, (node, owner)) in nodes.iter_mut().zip(&owners).enumerate() {
            if let (Some(list), Some(id)) = (list, &node.view.facts.provider_id) {
                let shown = list.list.get(id).map(|instance| instance.id.clone());
                taken.extend(shown);
            }
            if !owner.may_be(cloud) {
                continue;
            }
            let found = match list {
                None => InstanceMatch::Unread,
                Some(list) => match cloud.identify(&node.view.facts, &list.list) {
                    Match::One(instance) => {
                        taken.insert(instance.id.clone());
                        if instance.is_summary {
                            summaries.insert(place, instance.clone());
                        }
                        InstanceMatch::One {
                            instance: Box::new(instance.clone()),
                            addresses: instances.addresses(instance, &node.view.facts),
                        }
                    }
                    Match::Many(all) => {
                        let ids: Vec<_> = all.iter().map(|it| it.id.clone()).collect();
                        taken.extend(ids.iter().cloned());
                        InstanceMatch::Many(ids)
                    }
                    Match::None => {
                        let index = index.get_or_insert_with(|| Addresses::of(&list.list));
                        InstanceMatch::None {
                            lookalike: lookalike(node, &list.list, index),
                        }
                    }
                },
            };
            node.matches.insert(cloud.name.clone(), found);
        }
        describe(nodes, cloud, summaries).await;
        let state = states.iter_mut().find(|state| state.name == cloud.name);
        if let (Some(list), Some(Some(Ok(state)))) = (list, state.map(|it| it.instances.as_mut())) {
            let without = list.list.instances().filter(|it| !taken.contains(&it.id));
            state.without_node = without.map(|it| (it.name.clone(), it.id.clone())).collect();
        }
    }
}

fn owner_state(owner: &Owner) -> NodeOwner {
    match owner {
        Owner::Cloud(cloud) => NodeOwner::Cloud(cloud.name.clone()),
        Owner::Ask(clouds) => {
            NodeOwner::Undecided(clouds.iter().map(|cloud| cloud.name.clone()).collect())
        }
        Owner::Unowned { why, is_malformed } => NodeOwner::Unowned {
            why: why.clone(),
            is_malformed: *is_malformed,
        },
    }
}

/// Completes what a list showed as summaries, in one call.
async fn describe(
    nodes: &mut [NodeState],
    cloud: &Arc<Cloud>,
    summaries: BTreeMap<usize, Instance>,
) {
    let provider = cloud.provider();
    let Some(instances) = provider.instances() else {
        return;
    };
    if summaries.is_empty() {
        return;
    }
    let (places, summaries): (Vec<_>, Vec<_>) = summaries.into_iter().unzip();
    let described = instances.describe(summaries, Priority::default()).await;
    for (place, instance) in places.into_iter().zip(described) {
        if let (Some(node), Ok(instance)) = (nodes.get_mut(place), instance) {
            let addresses = instances.addresses(&instance, &node.view.facts);
            let found = InstanceMatch::One {
                instance: Box::new(instance),
                addresses,
            };
            node.matches.insert(cloud.name.clone(), found);
        }
    }
}

/// Instances by their addresses.
struct Addresses(HashMap<String, ProviderId>);

impl Addresses {
    fn of(list: &InstanceList) -> Self {
        let all = list.instances().flat_map(|instance| {
            let addresses = instance.addresses.iter().filter(|it| it.ip().is_some());
            addresses.map(|it| (it.address.clone(), instance.id.clone()))
        });
        Self(all.collect())
    }

    fn any(&self, addresses: &[NodeAddress]) -> Option<&ProviderId> {
        addresses.iter().find_map(|it| self.0.get(&it.address))
    }
}

/// The instance that is this Node's by its UUID or its address, and has another name.
fn lookalike(
    node: &NodeState,
    list: &InstanceList,
    index: &Addresses,
) -> Option<(String, ProviderId)> {
    if !node.view.has_taint(UNINITIALIZED_TAINT) {
        return None;
    }
    let facts: &NodeFacts = &node.view.facts;
    let uuid = facts.system_uuid.as_deref();
    let by_uuid = uuid.and_then(|uuid| list.with_system_uuid(uuid).first().copied());
    let by_address = || list.get(index.any(&facts.addresses)?);
    let found = by_uuid.or_else(by_address)?;
    Some((found.name.clone(), found.id.clone()))
}

/// Asks the clouds for this very Node, as the lifecycle controller does.
pub(super) async fn look_up(node: &mut NodeState, clouds: &[Arc<Cloud>], lists: &Lists) {
    for (cloud, list) in clouds.iter().zip(lists) {
        let provider = cloud.provider();
        let (Some(instances), Some(id)) = (provider.instances(), &node.view.facts.provider_id)
        else {
            continue;
        };
        if !node.matches.contains_key(&cloud.name) {
            continue;
        }
        let known = list
            .as_ref()
            .and_then(|list| list.list.known_instance_besides(id, |_| true));
        let answer = instances.find(&node.view.facts, known.as_ref()).await;
        node.looked_up.push(LookUp {
            cloud: cloud.name.clone(),
            answer: Arc::new(answer),
        });
    }
}
