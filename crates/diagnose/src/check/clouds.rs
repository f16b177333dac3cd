//! The clouds: credentials, permissions, budgets, and what belongs to nothing in the cluster.

use std::collections::BTreeSet;

use cloudkeel_api::{ErrorKind, OwnedResource};
use cloudkeel_controllers::view::Readiness;
use cloudkeel_controllers::wellknown::UNINITIALIZED_TAINT;

use crate::catalogue::{
    BALANCER_ORPHANED, CLOUD_BLIND_SPOT, CLOUD_CREDENTIAL, CLOUD_DENIED, CLOUD_NOT_BUILT,
    CLOUD_OTHER_PROJECT, CLOUD_THROTTLED, CLOUD_UNREACHABLE, CLOUD_UNTAGGED, MACHINE_WITHOUT_NODE,
};
use crate::finding::{Finding, Rule};
use crate::snapshot::{CloudState, InstanceMatch, NodeState, Snapshot, Trouble};
use crate::text::first_few;

/// Below this share of its requests, a budget is nearly used up.
const LOW_BUDGET: u64 = 10;

pub(super) fn findings(snapshot: &Snapshot) -> Vec<Finding> {
    let clouds = snapshot.clouds.iter();
    clouds.flat_map(|cloud| of_cloud(snapshot, cloud)).collect()
}

fn of_cloud(snapshot: &Snapshot, cloud: &CloudState) -> Vec<Finding> {
    let object = format!("cloud {}", cloud.name);
    if let Some(trouble) = &cloud.build_error {
        let rule = match trouble.kind {
            ErrorKind::Invalid => Some(&CLOUD_NOT_BUILT),
            _ => rule_of(trouble),
        };
        return vec![
            rule.unwrap_or(&CLOUD_NOT_BUILT)
                .found(object, &trouble.text),
        ];
    }
    let mut findings = troubles(cloud, &object);
    findings.extend(budget(cloud, &object));
    for (part, why) in cloud.listed().iter().flat_map(|it| &it.blind_spots) {
        findings.push(CLOUD_BLIND_SPOT.found(&object, format!("{part}: {why}")));
    }
    if !cloud.has_cluster_id && !snapshot.settings.allow_untagged_cloud {
        let what = "its provider labels nothing with an ID of this cluster";
        findings.push(CLOUD_UNTAGGED.found(&object, what));
    }
    if let Some((nodes, ready)) = shows_no_known_machine(snapshot, &cloud.name) {
        let scope = cloud.scope.as_ref().and_then(|scope| scope.as_ref().ok());
        let scope = scope.map_or_else(String::new, |scope| format!(" of {scope}"));
        let count = cloud.listed().map_or(0, |it| it.count);
        let what = format!(
            "none of its {count} machines{scope} is that of one of the {nodes} Nodes with its IDs, \
             {ready} of which are Ready"
        );
        findings.push(CLOUD_OTHER_PROJECT.found(&object, what));
        return findings;
    }
    findings.extend(machines_without_node(snapshot, cloud, &object));
    findings.extend(orphans(snapshot, cloud));
    findings
}

/// What the cloud refused, each cause once.
fn troubles(cloud: &CloudState, object: &str) -> Vec<Finding> {
    let troubles = [
        cloud.scope.as_ref().and_then(|it| it.as_ref().err()),
        cloud.instances.as_ref().and_then(|it| it.as_ref().err()),
        cloud.routes.as_ref().and_then(|it| it.as_ref().err()),
        cloud.owned.as_ref().and_then(|it| it.as_ref().err()),
    ];
    let mut seen = BTreeSet::new();
    let mut findings = Vec::new();
    for trouble in troubles.into_iter().flatten() {
        let Some(rule) = rule_of(trouble) else {
            continue;
        };
        // A wrong credential fails everywhere; a missing permission is one of several.
        let cause = if rule.id == CLOUD_DENIED.id {
            trouble.text.as_str()
        } else {
            ""
        };
        if seen.insert((rule.id, cause)) {
            findings.push(rule.found(object, &trouble.text));
        }
    }
    findings
}

const fn rule_of(trouble: &Trouble) -> Option<&'static Rule> {
    Some(match trouble.kind {
        ErrorKind::Unauthenticated => &CLOUD_CREDENTIAL,
        ErrorKind::Denied => &CLOUD_DENIED,
        ErrorKind::Throttled { .. } => &CLOUD_THROTTLED,
        ErrorKind::Unsupported | ErrorKind::ImplementedElsewhere => return None,
        _ => &CLOUD_UNREACHABLE,
    })
}

fn budget(cloud: &CloudState, object: &str) -> Option<Finding> {
    let (left, of) = cloud.budget?;
    (left.saturating_mul(LOW_BUDGET) < of).then(|| {
        let what = format!("{left} of {of} requests are left in this window");
        CLOUD_THROTTLED.found(object, what)
    })
}

/// Whether a cloud lists machines, and none that is known: of how many Nodes, and how many of them are Ready.
pub(crate) fn shows_no_known_machine(snapshot: &Snapshot, cloud: &str) -> Option<(usize, usize)> {
    snapshot.cloud(cloud)?.listed()?;
    let is_its = |node: &&NodeState| {
        let is_initialised = !node.view.has_taint(UNINITIALIZED_TAINT);
        node.cloud() == Some(cloud) && node.view.facts.provider_id.is_some() && is_initialised
    };
    let nodes: Vec<_> = snapshot.known_nodes().iter().filter(is_its).collect();
    let is_seen =
        |node: &&NodeState| matches!(node.matches.get(cloud), Some(InstanceMatch::One { .. }));
    let is_ready = |node: &&&NodeState| node.view.readiness == Readiness::Ready;
    let ready = nodes.iter().filter(is_ready).count();
    (ready > 0 && !nodes.iter().any(is_seen)).then_some((nodes.len(), ready))
}

fn machines_without_node(snapshot: &Snapshot, cloud: &CloudState, object: &str) -> Option<Finding> {
    let without = &cloud.listed()?.without_node;
    if without.is_empty() || snapshot.nodes.is_err() {
        return None;
    }
    let names = first_few(without.iter().map(|(name, id)| format!("{name} ({id})")));
    let what = format!("{} machines are no Node's: {names}", without.len());
    Some(MACHINE_WITHOUT_NODE.found(object, what))
}

/// Resources whose Service is gone, or is served by another cloud.
fn orphans(snapshot: &Snapshot, cloud: &CloudState) -> Vec<Finding> {
    let (Some(Ok(owned)), Ok(services)) = (&cloud.owned, &snapshot.services) else {
        return Vec::new();
    };
    let is_needed = |resource: &&OwnedResource| {
        let made_for = resource.service.as_ref();
        let made_for = made_for.and_then(|it| {
            let mut services = services.iter();
            services.find(|service| it.is(&service.view.service))
        });
        made_for.is_some_and(|it| it.view.deleting || it.owner.as_ref() == Some(&cloud.name))
    };
    let orphans = owned.iter().filter(|resource| !is_needed(resource));
    orphans
        .map(|resource| {
            let service = resource.service.as_ref();
            let service = service.map_or_else(String::new, |it| format!(", made for {it}"));
            let what = format!(
                "{} {:?} (ID {}){service}",
                resource.kind.as_str(),
                resource.name,
                resource.id
            );
            BALANCER_ORPHANED.found(format!("cloud {}", cloud.name), what)
        })
        .collect()
}
