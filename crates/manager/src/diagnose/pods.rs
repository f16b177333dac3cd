//! Which Pods look like cloud-controller-managers, and how they are.

use cloudkeel_api::Registry;
use cloudkeel_controllers::wellknown::UNINITIALIZED_TAINT;
use cloudkeel_diagnose::ManagerPod;
use k8s_openapi::api::core::v1::Toleration;

use super::slim_pod::{Container, ContainerStatus, PodSpec, SlimPod};

/// The name of our own program.
const OURS: &str = "cloudkeel";
const NOT_READY_TAINT: &str = "node.kubernetes.io/not-ready";
/// Labels by which charts name their program.
const NAME_LABELS: [&str; 4] = ["app.kubernetes.io/name", "k8s-app", "app", "component"];
/// The lease of the Go framework.
const USUAL_LEASE: &str = "cloud-controller-manager";
const LEASE_FLAG: &str = "--leader-elect-resource-name=";

/// The Pod, if it looks like a manager.
pub(super) fn manager_pod(pod: &SlimPod, registry: &Registry) -> Option<ManagerPod> {
    let spec = pod.spec.as_ref()?;
    let (program, provider) = program(pod, spec, registry)?;
    let status = pod.status.as_ref();
    let conditions = || status.iter().flat_map(|it| &it.conditions);
    let condition =
        |kind: &str, value: &str| conditions().find(|it| it.kind == kind && it.status == value);
    let containers = || status.iter().flat_map(|it| &it.container_statuses);
    let tolerates = |taint: &str| spec.tolerations.iter().any(|it| is_for(it, taint));
    let first = spec.containers.first();
    Some(ManagerPod {
        namespace: pod.metadata.namespace.clone().unwrap_or_default(),
        name: pod.metadata.name.clone().unwrap_or_default(),
        program,
        provider,
        image: first.and_then(|it| it.image.clone()).unwrap_or_default(),
        phase: status.and_then(|it| it.phase.clone()).unwrap_or_default(),
        is_ready: condition("Ready", "True").is_some(),
        unscheduled: condition("PodScheduled", "False").map(|it| {
            let reason = it.reason.clone().unwrap_or_default();
            it.message.clone().unwrap_or(reason)
        }),
        waiting: containers().find_map(waiting),
        last_failure: containers().find_map(last_failure),
        restarts: containers().map(|it| it.restart_count).sum(),
        has_host_network: spec.host_network,
        tolerates_uninitialized: tolerates(UNINITIALIZED_TAINT),
        tolerates_not_ready: tolerates(NOT_READY_TAINT),
        service_account: spec.service_account_name.clone().unwrap_or_default(),
        lease: first.map_or_else(|| Some(USUAL_LEASE.to_owned()), lease),
    })
}

/// Which program a Pod runs, by its images, commands and labels, and the provider that it is for.
fn program(pod: &SlimPod, spec: &PodSpec, registry: &Registry) -> Option<(String, Option<String>)> {
    let containers = spec.containers.iter();
    let images = containers
        .clone()
        .filter_map(|it| it.image.as_deref())
        .map(image_name);
    let words = containers.flat_map(|it| {
        let words = it.command.first().into_iter().chain(it.args.first());
        words.map(|word| last_part(word))
    });
    let labels = pod.metadata.labels.as_ref();
    let labels = NAME_LABELS
        .iter()
        .filter_map(|key| Some(labels?.get(*key)?.as_str()));
    let candidates: Vec<&str> = images.chain(words).chain(labels).collect();
    if candidates.contains(&OURS) {
        return Some((OURS.to_owned(), None));
    }
    let replaced = candidates.iter().find_map(|name| {
        let provider = registry.replacing(name)?;
        Some(((*name).to_owned(), Some(provider.to_owned())))
    });
    let unknown = || {
        let mut candidates = candidates.iter();
        let name = candidates.find(|name| name.ends_with("cloud-controller-manager"))?;
        Some(((*name).to_owned(), None))
    };
    replaced.or_else(unknown)
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// An image without registry, tag and digest.
fn image_name(image: &str) -> &str {
    let name = last_part(image.split('@').next().unwrap_or(image));
    name.split(':').next().unwrap_or(name)
}

fn is_for(toleration: &Toleration, taint: &str) -> bool {
    let is_its_key = match toleration.key.as_deref() {
        None | Some("") => toleration.operator.as_deref() == Some("Exists"),
        Some(key) => key == taint,
    };
    let effect = toleration.effect.as_deref().unwrap_or_default();
    is_its_key && matches!(effect, "" | "NoSchedule")
}

fn waiting(status: &ContainerStatus) -> Option<String> {
    let waiting = status.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.clone().unwrap_or_default();
    // Every container starts like that.
    if matches!(
        reason.as_str(),
        "ContainerCreating" | "PodInitializing" | ""
    ) {
        return None;
    }
    Some(match &waiting.message {
        Some(message) => format!("{reason}: {message}"),
        None => reason,
    })
}

fn last_failure(status: &ContainerStatus) -> Option<String> {
    let ended = [status.state.as_ref(), status.last_state.as_ref()];
    let ended = ended
        .into_iter()
        .flatten()
        .find_map(|state| state.terminated.as_ref())?;
    let reason = ended.reason.clone().unwrap_or_default();
    (ended.exit_code != 0).then(|| format!("{reason}, exit code {}", ended.exit_code))
}

/// The lease that a manager needs to write; `None` if it does not elect.
fn lease(container: &Container) -> Option<String> {
    let words = || container.command.iter().chain(&container.args);
    if words().any(|word| word == "--leader-elect=false") {
        return None;
    }
    let named = words().find_map(|word| word.strip_prefix(LEASE_FLAG));
    Some(named.unwrap_or(USUAL_LEASE).to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(spec: &serde_json::Value, labels: &serde_json::Value) -> SlimPod {
        let pod = json!({"metadata": {"name": "p", "labels": labels}, "spec": spec});
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn a_manager_is_known_by_image_command_or_label() {
        let registry = Registry::new();
        let container = |image: &str, command: &str| json!({"containers": [{"name": "c", "image": image, "command": [command]}]});
        for (case, spec, labels, expected) in [
            (
                "image",
                container("ghcr.io/x/cloudkeel:0.1@sha256:a", "/x"),
                json!({}),
                Some(OURS),
            ),
            (
                "label",
                container("y", "/x"),
                json!({"app.kubernetes.io/name": "cloudkeel"}),
                Some(OURS),
            ),
            (
                "any other manager, by its command",
                container("y", "/bin/some-cloud-controller-manager"),
                json!({}),
                Some("some-cloud-controller-manager"),
            ),
            (
                "something else",
                container("coredns:1", "/coredns"),
                json!({}),
                None,
            ),
        ] {
            let found = manager_pod(&pod(&spec, &labels), &registry);
            assert_eq!(found.map(|it| it.program).as_deref(), expected, "{case}");
        }
    }

    #[test]
    fn what_keeps_a_pod_from_running_is_kept() {
        let value = json!({
            "metadata": {"name": "p"},
            "spec": {
                "hostNetwork": true,
                "tolerations": [{"operator": "Exists"}],
                "containers": [{
                    "name": "c", "image": "cloudkeel:1",
                    "args": ["--leader-elect-resource-name=mine"],
                }],
            },
            "status": {
                "phase": "Running",
                "containerStatuses": [{
                    "name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 7,
                    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                    "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}},
                }],
            },
        });
        let pod = serde_json::from_value(value).unwrap();
        let pod = manager_pod(&pod, &Registry::new()).unwrap();
        assert!(pod.has_host_network && pod.tolerates_uninitialized && pod.tolerates_not_ready);
        assert_eq!(pod.lease.as_deref(), Some("mine"));
        assert_eq!(pod.waiting.as_deref(), Some("CrashLoopBackOff"));
        assert_eq!(pod.last_failure.as_deref(), Some("Error, exit code 1"));
        assert_eq!(pod.restarts, 7);
    }
}
