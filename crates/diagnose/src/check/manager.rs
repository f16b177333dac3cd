//! The cloud-controller-manager itself: its Pods, its lease, its permissions, and others of its kind.

use std::collections::{BTreeMap, BTreeSet};

use cloudkeel_api::nearest;

use crate::catalogue::{
    LEASE_CLOCK, LEASE_NOT_HELD, MANAGER_FAILING, MANAGER_MISSING, MANAGER_NEEDS_CNI,
    MANAGER_NO_TOLERATION, MANAGER_SECOND, MANAGER_UNSCHEDULED, MANAGER_VERSIONS,
    PERMISSION_MISSING,
};
use crate::finding::Finding;
use crate::snapshot::{LeaseState, ManagerPod, Snapshot};
use crate::text::{age, duration, first_few};

pub(super) fn findings(snapshot: &Snapshot) -> Vec<Finding> {
    let pods = snapshot.pods.as_deref().unwrap_or_default();
    let mut findings = Vec::new();
    findings.extend(leader(snapshot, pods));
    findings.extend(clock(snapshot));
    findings.extend(second_manager(snapshot, pods));
    findings.extend(pods.iter().flat_map(pod));
    findings.extend(templates(pods));
    findings.extend(versions(pods));
    findings.extend(permissions(snapshot));
    findings
}

/// Whether anything leads.
fn leader(snapshot: &Snapshot, pods: &[ManagerPod]) -> Option<Finding> {
    let settings = &snapshot.settings;
    let leases = snapshot.leases.as_deref().ok()?;
    let lease = snapshot.lease();
    let is_held = lease.is_some_and(|lease| lease.is_fresh(snapshot.now));
    let name = format!("Lease {}/{}", settings.lease_namespace, settings.lease);
    if is_held || (!settings.elects && !pods.is_empty()) {
        return None;
    }
    if pods.is_empty() && snapshot.pods.is_ok() {
        let what = match lease {
            None => "no Pod looks like a cloud-controller-manager, and the lease does not exist"
                .to_owned(),
            Some(lease) => format!(
                "no Pod looks like a cloud-controller-manager, and the lease is {}",
                state_of(lease, snapshot)
            ),
        };
        let what = match nearest(&settings.lease, leases.iter().map(|it| it.name.as_str())) {
            Some(near) if lease.is_none() => {
                format!(
                    "{what}; there is one of the name {near:?}: see --leader-elect-resource-name"
                )
            }
            _ => what,
        };
        return Some(MANAGER_MISSING.found(name, what));
    }
    let what = lease.map_or_else(
        || "the lease does not exist: no replica has led yet".to_owned(),
        |lease| format!("the lease is {}", state_of(lease, snapshot)),
    );
    let first = pods.first();
    let finding = LEASE_NOT_HELD.found(name, what);
    Some(match first {
        Some(pod) => finding.fix(format!("kubectl logs -n {} {}", pod.namespace, pod.name)),
        None => finding,
    })
}

fn state_of(lease: &LeaseState, snapshot: &Snapshot) -> String {
    match (&lease.holder, lease.renewed) {
        (Some(holder), Some(renewed)) => format!(
            "held by {holder}, but was renewed {} ago and is valid for {}",
            age(renewed, snapshot.now),
            duration(lease.duration)
        ),
        (Some(holder), None) => format!("held by {holder}, but was never renewed"),
        (None, _) => "released: no replica holds it".to_owned(),
    }
}

fn clock(snapshot: &Snapshot) -> Option<Finding> {
    let lease = snapshot.lease()?;
    let ahead = lease.renewed?.duration_since(snapshot.now);
    let ahead = std::time::Duration::try_from(ahead).ok()?;
    (ahead > lease.duration).then(|| {
        let what = format!(
            "it was renewed {} in the future by this machine's clock",
            duration(ahead)
        );
        LEASE_CLOCK.found(format!("Lease {}", lease.name), what)
    })
}

/// Managers for the same cloud that do not exclude each other.
fn second_manager(snapshot: &Snapshot, pods: &[ManagerPod]) -> Option<Finding> {
    let settings = &snapshot.settings;
    let concerns_us = |pod: &&ManagerPod| {
        let mut clouds = snapshot.clouds.iter();
        let is_other = |provider: &String| clouds.all(|cloud| cloud.provider != *provider);
        pod.phase == "Running" && !pod.provider.as_ref().is_some_and(is_other)
    };
    let mut active: BTreeSet<(String, Option<String>)> = pods
        .iter()
        .filter(concerns_us)
        .map(|pod| (pod.program.clone(), pod.lease.clone()))
        .collect();
    let leases = snapshot.leases.as_deref().unwrap_or_default().iter();
    let of_managers = leases.filter(|it| it.name.ends_with("cloud-controller-manager"));
    for lease in of_managers.filter(|it| it.is_fresh(snapshot.now)) {
        let is_known = active
            .iter()
            .any(|(_, known)| known.as_ref() == Some(&lease.name));
        if !is_known && lease.name != settings.lease {
            let holder = lease.holder.clone().unwrap_or_default();
            active.insert((
                format!("{holder} (lease {})", lease.name),
                Some(lease.name.clone()),
            ));
        }
    }
    let held = snapshot
        .lease()
        .is_some_and(|lease| lease.is_fresh(snapshot.now));
    if held
        && !active
            .iter()
            .any(|(_, lease)| lease.as_ref() == Some(&settings.lease))
    {
        let name = format!("the holder of lease {}", settings.lease);
        active.insert((name, Some(settings.lease.clone())));
    }
    let leases: BTreeSet<_> = active.iter().map(|(_, lease)| lease).collect();
    let excludes_itself = leases.len() <= 1 && !(leases.contains(&None) && active.len() > 1);
    let names = first_few(active.iter().map(|(name, _)| name));
    (!excludes_itself).then(|| {
        let what = format!("{names} are active at once, and no common lease excludes one of them");
        MANAGER_SECOND.found("cloud-controller-managers", what)
    })
}

fn pod(pod: &ManagerPod) -> Vec<Finding> {
    let object = format!("Pod {}/{}", pod.namespace, pod.name);
    let mut findings = Vec::new();
    if let Some(why) = &pod.unscheduled {
        let missing = match (pod.tolerates_uninitialized, pod.tolerates_not_ready) {
            (false, _) => "the toleration of node.cloudprovider.kubernetes.io/uninitialized",
            (true, false) => "the toleration of node.kubernetes.io/not-ready",
            (true, true) => "",
        };
        let finding = MANAGER_UNSCHEDULED.found(&object, why);
        findings.push(match missing {
            "" => finding.fix("Free a control plane Node for it, or correct its affinity."),
            missing => finding.fix(format!("Add {missing} to its Pod template.")),
        });
    }
    if let Some(why) = pod.waiting.as_ref().or(pod.last_failure.as_ref()) {
        let is_up = pod.is_ready && pod.waiting.is_none();
        let what = format!("{why}; restarted {} times", pod.restarts);
        let fix = format!("kubectl logs --previous -n {} {}", pod.namespace, pod.name);
        let finding = MANAGER_FAILING.found(&object, what).fix(fix);
        findings.extend((!is_up).then_some(finding));
    }
    findings
}

/// What the Pod templates lack, once for each program.
fn templates(pods: &[ManagerPod]) -> Vec<Finding> {
    let programs: BTreeMap<&str, &ManagerPod> =
        pods.iter().map(|pod| (pod.program.as_str(), pod)).collect();
    let mut findings = Vec::new();
    for (program, pod) in programs {
        let object = format!("Pod template of {program}");
        if !pod.tolerates_uninitialized {
            let what = format!("Pod {} has no such toleration", pod.name);
            findings.push(MANAGER_NO_TOLERATION.found(&object, what));
        }
        if !pod.has_host_network {
            let what = format!("Pod {} does not use the host network", pod.name);
            findings.push(MANAGER_NEEDS_CNI.found(&object, what));
        } else if !pod.tolerates_not_ready {
            let what = format!(
                "Pod {} does not tolerate Nodes that are not ready",
                pod.name
            );
            findings.push(MANAGER_NEEDS_CNI.found(&object, what));
        }
    }
    findings
}

fn versions(pods: &[ManagerPod]) -> Option<Finding> {
    let ours = pods.iter().filter(|pod| pod.program == "cloudkeel");
    let images: BTreeSet<_> = ours.map(|pod| pod.image.as_str()).collect();
    (images.len() > 1).then(|| {
        let what = format!("replicas run {}", first_few(images));
        MANAGER_VERSIONS.found("Pods of cloudkeel", what)
    })
}

fn permissions(snapshot: &Snapshot) -> Vec<Finding> {
    let access = &snapshot.access;
    let Some(subject) = &access.subject else {
        return Vec::new();
    };
    let missing = access.checks.iter().filter(|check| !check.is_allowed);
    missing
        .map(|check| {
            let permission = check.permission;
            let what = format!(
                "it may not {}: {}",
                permission.describe(),
                permission.without
            );
            PERMISSION_MISSING.found(format!("account {subject}"), what)
        })
        .collect()
}
