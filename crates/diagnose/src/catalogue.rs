//! Every finding there is: what you see, why it matters, what to do. `docs/reference/findings.md` is printed from it.

use crate::finding::{Area, Rule, Severity};

macro_rules! rules {
    ($($area:ident { $($name:ident: $severity:ident $id:literal, $symptom:literal, $why:literal, $remedy:literal;)* })*) => {
        $($(pub(crate) static $name: Rule = Rule {
            id: $id,
            severity: Severity::$severity,
            area: Area::$area,
            symptom: $symptom,
            why: $why,
            remedy: $remedy,
        };)*)*

        /// All of them, in the order in which they are reported.
        pub static RULES: &[&Rule] = &[$($(&$name),*),*];
    };
}

rules! {
    ApiServer {
        API_UNREACHABLE: Error "api-unreachable",
            "The API server does not answer.",
            "Nothing can be read of the cluster, and no controller works without it.",
            "Check `--kubeconfig` or `--master`, the network and any proxy (`NO_PROXY`).";
        NOT_READABLE: Warning "not-readable",
            "Something of the cluster cannot be read with these credentials.",
            "What cannot be read is not checked, so a problem there stays unseen.",
            "Use credentials that may read it; the ClusterRole `view` and `get` on `nodes` are enough for most.";
        VERSION_SKEW: Warning "version-skew",
            "A kubelet is newer than the API server, or more than three minor versions older.",
            "Kubernetes does not support that combination: fields may be missing or misread.",
            "Upgrade what is older; the API server always first.";
    }
    Configuration {
        CONFIG_INVALID: Error "config-invalid",
            "A flag or a key of the configuration is unknown or has a wrong value.",
            "The manager does not start with it, and refuses it on reload.",
            "Correct it as the message says; `cloudkeel providers NAME` lists the keys of a provider.";
        CONFIG_DEPRECATED: Warning "config-deprecated",
            "A flag is deprecated or has no effect.",
            "It does not do what its name promises, and a later version may refuse it.",
            "Remove or replace it as the message says.";
    }
    Manager {
        MANAGER_MISSING: Error "manager-missing",
            "No cloud-controller-manager runs: no Pod looks like one, and its lease is not held.",
            "New Nodes keep their taint, and Services get no load balancer.",
            "Install one: `kubectl apply -k deploy/manifests`, see docs/install.md.";
        LEASE_NOT_HELD: Error "lease-not-held",
            "A manager is there, but its lease is not held or was not renewed in time.",
            "Without a leader nothing is reconciled.",
            "Look at the logs of the Pods: `kubectl logs -n kube-system -l app.kubernetes.io/name=cloudkeel`.";
        LEASE_CLOCK: Warning "lease-clock",
            "The lease was renewed in the future.",
            "The clock of the leader or of this machine is wrong; after a crash a Go CCM would wait that long.",
            "Synchronise the clocks: `chronyc tracking` on the machine of the leader.";
        MANAGER_SECOND: Error "manager-second",
            "Two different cloud-controller-managers are active.",
            "They write the same Nodes and load balancers, and each undoes what the other does.",
            "Stop one of them; docs/migrate.md says in which order.";
        MANAGER_UNSCHEDULED: Error "manager-unscheduled",
            "A Pod of the manager is not scheduled.",
            "The Nodes that it would initialise are tainted, and it may be what they wait for.",
            "Give the Pod template the tolerations of deploy/manifests/daemonset/daemonset.yaml.";
        MANAGER_FAILING: Error "manager-failing",
            "A container of the manager does not start, or ends again and again.",
            "Without a manager that stays up nothing is reconciled.",
            "Read why it ended: `kubectl logs --previous`.";
        MANAGER_NO_TOLERATION: Warning "manager-no-toleration",
            "The Pod of the manager does not tolerate `node.cloudprovider.kubernetes.io/uninitialized`.",
            "After a loss of all Nodes it could not be scheduled anywhere: it waits for Nodes that wait for it.",
            "Add the toleration `{key: node.cloudprovider.kubernetes.io/uninitialized, operator: Exists}`.";
        MANAGER_NEEDS_CNI: Warning "manager-needs-cni",
            "The Pod of the manager does not use the host network, or does not tolerate Nodes that are not ready.",
            "It waits for the Pod network, and most Pod networks wait for Nodes that it initialises.",
            "Set `hostNetwork: true` and tolerate `node.kubernetes.io/not-ready`.";
        PERMISSION_MISSING: Error "permission-missing",
            "The account of the manager lacks a permission.",
            "The API server refuses what the controllers do.",
            "Apply the roles again: `kubectl apply -k deploy/manifests/rbac`.";
        MANAGER_VERSIONS: Info "manager-versions",
            "Replicas of the manager run different images, or another one than this program.",
            "During an update that is normal. If it stays, a fail-over changes the behaviour.",
            "Wait for the rollout: `kubectl rollout status -n kube-system daemonset/cloudkeel`.";
    }
    Clouds {
        CLOUD_NOT_BUILT: Error "cloud-not-built",
            "A cloud of the configuration cannot be used at all.",
            "The manager does not start, or keeps its old settings.",
            "Correct the settings that the message names.";
        CLOUD_CREDENTIAL: Error "cloud-credential",
            "The cloud refuses the credential.",
            "Nothing in this cloud can be read or changed.",
            "Put a valid credential in place; a running manager takes it without a restart.";
        CLOUD_DENIED: Error "cloud-denied",
            "The credential is valid, but may not do something.",
            "The controller that needs it fails on every attempt.",
            "Give the credential this permission; docs/providers lists what each cloud needs.";
        CLOUD_UNREACHABLE: Error "cloud-unreachable",
            "The cloud does not answer, or not in a way that can be used.",
            "Nodes and load balancers stay as they are until it does; nothing is deleted.",
            "Check the endpoint, the proxy (`NO_PROXY`) and the status page of the cloud.";
        CLOUD_THROTTLED: Warning "cloud-throttled",
            "The cloud throttles requests, or nearly nothing is left of the request budget.",
            "Changes take longer. Another tool with the same credential may use the budget.",
            "Give the manager a credential of its own, or raise the limit.";
        CLOUD_BLIND_SPOT: Warning "cloud-blind-spot",
            "A part of the cloud could not be listed.",
            "Nodes whose machines are there keep their taint, or cannot be deleted.",
            "Look at why this part does not answer.";
        CLOUD_OTHER_PROJECT: Error "cloud-other-project",
            "The cloud answers, but shows none of the machines of this cluster's Nodes.",
            "The credential is probably that of another project. Nothing is matched, created or deleted with it.",
            "Put the credential of this cluster's project in place.";
        CLOUD_UNTAGGED: Warning "cloud-untagged",
            "The resources of the cloud carry no ID of this cluster.",
            "Two clusters in one account cannot be distinguished.",
            "Configure the cluster's ID for the provider, or accept it with `--allow-untagged-cloud`.";
        MACHINE_WITHOUT_NODE: Info "machine-without-node",
            "The cloud has machines that are no Node's.",
            "They may belong to something else. If one should be a Node, its kubelet did not register.",
            "Look at the kubelet on the machine, or ignore it.";
        BALANCER_ORPHANED: Warning "balancer-orphaned",
            "The cloud has a resource with this cluster's owner labels, and no Service that needs it.",
            "It costs money and holds an address. cloudkeel never deletes it by itself.",
            "Delete it in the cloud if nothing uses it.";
    }
    Nodes {
        NODE_NO_MACHINE: Error "node-no-machine",
            "A Node is tainted as uninitialized, and no cloud has a machine of its name.",
            "No Pod is scheduled there. A machine is found by its name until the Node has a provider ID.",
            "Make the Node's name that of the machine (kubelet `--hostname-override`), or delete the Node.";
        NODE_WRONG_NAME: Error "node-wrong-name",
            "A Node is tainted, and the machine with its UUID or address has another name.",
            "The name is all by which a machine is found at first, so the Node stays tainted.",
            "Set `--hostname-override` of the kubelet to the name of the machine, or rename the machine.";
        NODE_TWO_MACHINES: Error "node-two-machines",
            "A Node is tainted, and several machines have its name.",
            "A provider ID can never be changed, so cloudkeel does not guess.",
            "Rename or delete all but one, or set `--provider-id` of the kubelet.";
        NODE_TWO_CLOUDS: Error "node-two-clouds",
            "A Node is tainted, and machines of several clouds have its name.",
            "Exactly one cloud may know a Node without a provider ID.",
            "Label it: `kubectl label node NAME cloudkeel.dev/cloud=CLOUD`.";
        NODE_FOREIGN_ID: Error "node-foreign-id",
            "A Node is tainted, and its provider ID is of a cloud or an account that is not configured here.",
            "No cloud here initialises it.",
            "Add that cloud to the configuration, or delete the Node and correct `--provider-id` of its kubelet.";
        NODE_MALFORMED_ID: Error "node-malformed-id",
            "The provider ID of a Node is none that a cloud issues.",
            "It can never be changed, so the Node is never initialised, followed or deleted.",
            "`kubectl delete node NAME`, correct `--provider-id` of the kubelet and restart it.";
        NODE_DUPLICATE_ID: Error "node-duplicate-id",
            "Two Nodes have the same provider ID.",
            "Both follow one machine: addresses, routes and targets of one of them are wrong.",
            "Delete the Node that is not this machine's, and correct its kubelet.";
        NODE_UNMANAGED: Warning "node-unmanaged",
            "A Node is tainted, and a label or selector takes it out of every cloud here.",
            "The taint stays until another component removes it.",
            "`kubectl label node NAME cloudkeel.dev/unmanaged-`, or label it with its cloud.";
        NODE_MACHINE_NOT_READY: Warning "node-machine-not-ready",
            "A Node is tainted, and its machine is not complete yet.",
            "It is initialised as soon as the cloud shows what is missing.",
            "Wait; if it lasts, look at the machine in the cloud.";
        NODE_ADDRESS_UNKNOWN: Error "node-address-unknown",
            "The kubelet has a `--node-ip` that the cloud does not know as an address of the machine.",
            "The Node is not initialised, or keeps old addresses.",
            "Correct `--node-ip`, or attach the address to the machine in the cloud.";
        NODE_WAITS: Error "node-waits",
            "A Node is tainted although exactly one machine is its own.",
            "The manager could initialise it and has not: it does not lead, is denied a write, or is stuck.",
            "Read the Events: `kubectl describe node NAME`, then the log of the leader.";
        KUBELET_NOT_EXTERNAL: Warning "kubelet-not-external",
            "A Node has neither a provider ID nor the taint that says that it waits for one.",
            "Its kubelet runs without `--cloud-provider=external`, so no cloud ever initialises it.",
            "Start the kubelet with `--cloud-provider=external`, delete the Node and restart the kubelet.";
        NODE_NOT_READY: Warning "node-not-ready",
            "A Node is not Ready although its machine runs.",
            "Its Pods are evicted, and balancers lose a target.",
            "Look at the kubelet and the Pod network on the machine.";
        NODE_SHUT_DOWN: Info "node-shut-down",
            "The machine of a Node is shut down.",
            "The Node is kept and tainted; its volumes stay attached until it is deleted.",
            "Start the machine, or delete the Node.";
        NODE_MACHINE_GONE: Info "node-machine-gone",
            "A Node that is not Ready has no machine in the cloud's list.",
            "It is deleted once the cloud has proven it: docs/when-a-node-is-deleted.md.",
            "See what is missing: `cloudkeel explain node NAME`.";
        NODE_HELD: Warning "node-held",
            "A Node without a machine is kept by the annotation `cloudkeel.dev/hold`.",
            "It is never deleted by itself.",
            "`kubectl annotate node NAME cloudkeel.dev/hold-`";
        NODE_PAUSED: Info "node-paused",
            "A Node has the annotation `cloudkeel.dev/paused`.",
            "cloudkeel does not initialise, write or delete it, and changes none of its routes.",
            "`kubectl annotate node NAME cloudkeel.dev/paused-` when you are done.";
        NODE_READY_NOT_LISTED: Error "node-ready-not-listed",
            "A Node is Ready, and the cloud does not list its machine.",
            "Either the list lags, or the credential does not see all of the project. If more of them are missing, deletions stop.",
            "Check that the credential sees every zone and the right project.";
        NODE_ADDRESSES_DIFFER: Warning "node-addresses-differ",
            "The addresses of a Node are not those that the cloud shows.",
            "Routes, targets and `kubectl logs` use the old ones. A leader corrects that within minutes.",
            "If it lasts, look at the log of the leader.";
        NODE_TOPOLOGY_DIFFERS: Warning "node-topology-differs",
            "Zone or region of a Node's labels are not those of its machine.",
            "Volumes depend on the labels, so they are not changed by themselves.",
            "Recreate the Node, or set `--follow-topology`.";
    }
    Routes {
        ROUTE_MISSING: Error "route-missing",
            "A Pod network of a Node has no route.",
            "Pods on other Nodes do not reach the Pods there.",
            "Look at the Events of the Node and the permissions of the credential; `cloudkeel explain node NAME`.";
        ROUTE_WRONG: Error "route-wrong",
            "A route in the cluster's network leads to the wrong Node or to an old address.",
            "Traffic for these Pods goes astray. A leader replaces it.",
            "If it lasts, look at the log of the leader.";
        ROUTE_SUSPECT: Warning "route-suspect",
            "A route in the cluster's network leads nowhere.",
            "It belonged to a machine that is gone, and takes a place in the route table.",
            "A leader deletes it when a second list shows it too; otherwise delete it in the cloud.";
        POD_CIDR_CONFLICT: Error "pod-cidr-conflict",
            "Two Nodes have the same Pod network.",
            "Only one of them can have the route, so Pods of the other cannot be reached.",
            "Delete one Node and let it register again; check that only one component allocates Pod CIDRs.";
        POD_CIDR_MISSING: Warning "pod-cidr-missing",
            "A Node has no Pod CIDR, although routes are configured.",
            "There is nothing to route, so its Pods cannot be reached.",
            "Let kube-controller-manager allocate (`--allocate-node-cidrs`), or cloudkeel (docs/routes.md).";
        NETWORK_UNAVAILABLE: Error "network-unavailable",
            "A Node says `NetworkUnavailable`.",
            "No Pod is scheduled there until its route exists.",
            "Look at why its route is missing; without routes, let the Pod network set the condition.";
    }
    Services {
        SERVICE_PENDING: Error "service-pending",
            "A Service has no address after two minutes.",
            "No client can reach it.",
            "Do what its Events say: `kubectl describe service -n NAMESPACE NAME`.";
        SERVICE_PAUSED: Info "service-paused",
            "A Service has the annotation `cloudkeel.dev/paused`.",
            "Its load balancer follows neither the Service nor the Nodes, and is not deleted with it.",
            "`kubectl annotate service -n NAMESPACE NAME cloudkeel.dev/paused-` when you are done.";
        SERVICE_NOT_SERVED: Warning "service-not-served",
            "A Service of type LoadBalancer has a class that no cloud here serves, and no address.",
            "It waits for another controller, which may not exist.",
            "Set `loadBalancers.class` or `loadBalancers.default` in the configuration, or remove the class.";
        SERVICE_INVALID: Error "service-invalid",
            "A Service asks for something that makes no sense.",
            "Its load balancer is neither made nor changed.",
            "Correct the field or annotation that the message names.";
        SERVICE_OPTION_IGNORED: Warning "service-option-ignored",
            "An annotation or field of a Service has no effect: it is misspelt, or this cloud cannot do it.",
            "The load balancer is not what its owner believes.",
            "Correct or remove it.";
        SERVICE_NO_TARGETS: Error "service-no-targets",
            "The load balancer of a Service has no targets.",
            "Clients connect and get no answer.",
            "Check the node selector and the label `node.kubernetes.io/exclude-from-external-load-balancers`.";
        SERVICE_TARGETS_DOWN: Error "service-targets-down",
            "No target of a Service's load balancer can serve: none is Ready, or the cloud finds all unhealthy.",
            "Clients get no answer.",
            "Look at the Nodes, the health check and the firewall between balancer and Nodes.";
        SERVICE_TARGETS_UNHEALTHY: Warning "service-targets-unhealthy",
            "The cloud finds some targets of a load balancer unhealthy.",
            "The others take their traffic.",
            "Look at the Nodes that are named, and at the health check.";
        SERVICE_NO_ENDPOINTS: Warning "service-no-endpoints",
            "No Pod of a Service is ready.",
            "The load balancer works, and nothing answers behind it.",
            "`kubectl get pods` with the selector of the Service.";
        SERVICE_LOCAL_ELSEWHERE: Error "service-local-elsewhere",
            "A Service has `externalTrafficPolicy: Local`, and no target has a Pod of it.",
            "With that policy only Nodes with a ready Pod answer, so every health check fails.",
            "Run its Pods on Nodes that are targets, or set `externalTrafficPolicy: Cluster`.";
        SERVICE_BALANCER_MISSING: Error "service-balancer-missing",
            "A Service publishes an address, and the cloud has no load balancer for it.",
            "Clients go to an address that nothing answers. cloudkeel makes a new one only when it is certain.",
            "`cloudkeel explain service NAMESPACE/NAME`; check that the credential is that of the right project.";
        SERVICE_ADDRESS_DIFFERS: Error "service-address-differs",
            "The address that a Service publishes is not that of its load balancer.",
            "Clients and DNS go to the wrong place. A leader corrects that.",
            "If it lasts, look at the Events of the Service.";
        SERVICE_DIFFERS: Warning "service-differs",
            "The load balancer is not what the Service asks for.",
            "Another client changed it, or a change is under way.",
            "A leader repairs it; see what differs with `cloudkeel explain service NAMESPACE/NAME`.";
        SERVICE_NOT_OURS: Error "service-not-ours",
            "A load balancer that belongs to another owner is in the way of a Service.",
            "cloudkeel does not change what belongs to another cluster or Service.",
            "Rename one of the two, or adopt it: `cloudkeel.dev/adopt: \"ID\"`.";
        SERVICE_UNREADABLE: Warning "service-unreadable",
            "The load balancer of a Service cannot be read.",
            "Whether it is as it should be is not known.",
            "Do what the message says.";
        SERVICE_STUCK: Error "service-stuck",
            "A Service is being deleted for minutes, and its load balancer is not confirmed as deleted.",
            "The finalizer keeps the Service, and its namespace, until the cloud has confirmed it.",
            "Do what its Events say; docs/load-balancers.md says for what cloudkeel waits.";
        SERVICE_FOREIGN_FINALIZER: Warning "service-foreign-finalizer",
            "A Service is being deleted for minutes, and only finalizers of other controllers keep it.",
            "cloudkeel has done its part; another controller has not, or is gone.",
            "Find the controller of that finalizer. Remove the finalizer only if the controller is gone.";
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_finding_has_its_own_id_and_says_everything() {
        let ids: BTreeSet<_> = RULES.iter().map(|rule| rule.id).collect();
        assert_eq!(ids.len(), RULES.len());
        for rule in RULES {
            let is_kebab = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(rule.id.chars().all(is_kebab), "{}", rule.id);
            for text in [rule.symptom, rule.why] {
                assert!(text.ends_with('.'), "{}: {text}", rule.id);
            }
            assert!(!rule.remedy.is_empty(), "{}", rule.id);
        }
        assert!(RULES.is_sorted_by_key(|rule| rule.area));
    }
}
