//! The controllers' documented log messages; `docs/reference/logs.md` is printed from this table.

cloudkeel_api::log_messages! {
    // Watches and writes.
    WATCH_FAILED: Warn "watch failed, retrying",
        "Listing or watching Nodes or Services (`kind`) failed. Controllers work with what they know, and delete no \
         Node meanwhile.",
        "Wait for the API server, or allow `list` and `watch`, as `err` says.";
    WATCH_RECOVERED: Info "watch recovered",
        "The watch works again, and everything that changed meanwhile has been read.",
        "Nothing.";
    EVENTS_FORBIDDEN: Warn "not allowed to write events, some will be missing",
        "The API server refused an Event. Logged once; everything else works.",
        "Allow `create` and `patch` on `events`.";
    NODE_UPDATE_FORBIDDEN: Warn "not allowed to update nodes by PUT, patching them",
        "The role has no `update` on `nodes`, so cloudkeel sends changes as patches. Logged once.",
        "Nothing, or allow `update` on `nodes`.";

    // Queues.
    WORK_PANICKED: Error "reconcile panicked, retrying",
        "A bug in the program stopped the work on one object, `key`. It counts as a failure and is retried with backoff; \
         all other work goes on. `/status` shows the last one, `cloudkeel_workqueue_panics_total` counts them.",
        "Report it with the text of `panic` and the line `observed a panic` before it.";
    LOOP_PANICKED: Error "loop panicked, restarting",
        "A bug in the program stopped what a controller or the reload of settings does from time to time (`loop`). It \
         begins anew after `retry_after`; the work on objects goes on. `cloudkeel_panics_total` counts it.",
        "Report it with the text of `panic` and the line `observed a panic` before it.";
    TARGETS_PANICKED: Error "comparing targets panicked, requeuing the service",
        "A bug in the program stopped the comparison of a Service's targets with the Nodes. The Service is requeued, and \
         the targets of all other Services follow the Nodes.",
        "Report it with the text of `panic` and the line `observed a panic` before it.";

    // Nodes.
    NODE_INITIALIZED: Info "successfully initialized node with cloud provider",
        "The Node has its provider ID, addresses and labels, and the taint `uninitialized` is removed.",
        "Nothing.";
    NODE_NOT_INITIALIZED: Warn "failed to initialize node with cloud provider",
        "The Node has waited for 10 s; `err` says for what. cloudkeel retries until it succeeds. Logged once for each \
         Node, with the Event `InitializationDelayed`.",
        "Correct what `err` names.";
    NODE_PAUSED: Info "node is paused",
        "The annotation `cloudkeel.dev/paused` is on the Node: cloudkeel does not write to it, does not delete it, and \
         changes none of its routes. Balancers keep it as a target.",
        "Nothing, or remove the annotation.";
    NODE_RESUMED: Info "node is not paused any more",
        "The annotation is gone, and cloudkeel takes care of the Node again.",
        "Nothing.";
    NODE_DIFFERS: Warn "node differs from its instance",
        "The cloud's data about the instance differ from the Node, and cloudkeel does not write them to it; `reason` \
         and `err` are those of the Event on the Node. Logged once until it changes.",
        "Do what the Event says.";
    NODE_UPDATE_FAILED: Warn "failed to update node",
        "Addresses or labels changed in the cloud, and writing them to the Node failed. cloudkeel retries.",
        "Wait for the API server, or allow `patch` on `nodes` and `nodes/status`, as `err` says.";
    INSTANCE_LIST_FAILED: Warn "failed to list instances",
        "The cloud did not answer a list of instances. cloudkeel retries after `retry_after`; Nodes stay as they are. \
         Logged with the first failure of a series.",
        "Correct the credential or the endpoint, or wait for the cloud, as `err` says.";
    INSTANCES_LISTED_AGAIN: Info "listed instances again",
        "A list succeeded after failures.",
        "Nothing.";

    // Node lifecycle.
    DELETING_NODE: Info "deleting node since it is no longer present in cloud provider",
        "The cloud proved several times that the instance is gone; `proof` is the last answer.",
        "Nothing.";
    NODE_DELETE_FAILED: Warn "unable to delete node",
        "The API server refused to delete a Node. cloudkeel retries, and logs a missing permission once.",
        "Allow `delete` on `nodes`.";
    NODE_NOT_READ: Warn "failed to get node, not deleting it",
        "cloudkeel reads a Node from the API server right before it deletes it. That failed, so the Node is kept for \
         now.",
        "Allow `get` on `nodes`, or wait for the API server.";
    DELETIONS_STOPPED: Error "stopped deleting nodes",
        "The cloud's answers contradict the cluster, so cloudkeel deletes no Node of this cloud; `err` says what it \
         found. Deletions resume by themselves.",
        "Check that the credential belongs to this cluster's project and that the cloud lists every instance.";
    DELETIONS_RESUMED: Info "resumed deleting nodes",
        "The cause of the stop is gone.",
        "Nothing.";
    SHUTDOWN_TAINT_UPDATED: Info "updated shutdown taint",
        "The instance was shut down or started again, and its Node got or lost the taint.",
        "Nothing.";
    TAINT_PATCH_FAILED: Warn "error patching node taints",
        "Adding or removing the shutdown taint failed. cloudkeel retries.",
        "Allow `patch` on `nodes`, or wait for the API server.";
    LEASE_LIST_FORBIDDEN: Warn "not allowed to list node leases, getting each one",
        "This costs a request for each Node that is checked. Logged once.",
        "Allow `list` on `leases` in kube-node-lease.";
    LEASE_GET_FORBIDDEN: Warn "not allowed to get node leases, deleting nodes without that check",
        "cloudkeel deletes Nodes without checking that their kubelet has stopped renewing its Lease. Logged once.",
        "Allow `get` on `leases` in kube-node-lease.";
    NODE_LEASE_FAILED: Warn "failed to get node lease",
        "cloudkeel could not read whether the kubelet still renews its Lease, so it does not delete the Node now.",
        "Wait for the API server.";

    // Services.
    SERVICE_FAILED: Warn "error processing service",
        "Ensuring or deleting the load balancer, or writing the Service, failed; `err` says which and why, and when \
         the next try is. A missing permission is logged once.",
        "Correct what `err` names; the Service has the same text as an Event.";
    SERVICE_NOT_READ: Warn "failed to get service",
        "If a Service is missing from the watch, cloudkeel reads it from the API server before it deletes the load \
         balancer. That failed. cloudkeel retries.",
        "Wait for the API server.";
    SERVICE_DELETED_WITHOUT_FINALIZER: Info "service was deleted without its finalizer, deleting its load balancer",
        "Another client removed the finalizer.",
        "Nothing.";
    SERVICE_PAUSED: Info "service is paused",
        "The annotation `cloudkeel.dev/paused` is on the Service: cloudkeel neither writes to it nor changes anything \
         for it in the cloud. `why` says if its value cannot be read.",
        "Nothing, or remove the annotation.";
    SERVICE_RESUMED: Info "service is not paused any more",
        "The annotation is gone, and the load balancer is reconciled.",
        "Nothing.";
    LOAD_BALANCER_CHANGED: Info "changed load balancer",
        "cloudkeel changed something in the cloud (`step`).",
        "Nothing.";
    LOAD_BALANCER_CHANGE_INEFFECTIVE: Warn "cloud accepted changes of load balancer without effect",
        "The cloud answered with success but shows the same state as before, so cloudkeel does not repeat these \
         `steps`.",
        "Check whether the cloud supports the option for this type of load balancer.";
    LOAD_BALANCER_DRIFTED: Info "load balancer has drifted",
        "Another client changed the load balancer in the cloud; `plan` is what differs.",
        "Nothing; `--load-balancer-drift` decides whether it is repaired.";
    LOAD_BALANCER_KEPT: Info "load balancer is kept on purpose",
        "The Service is deleted, but its load balancer stays, because it is protected from deletion or no longer \
         managed; `kept` lists it.",
        "Delete the load balancer in the cloud when it is no longer needed.";
    LOAD_BALANCERS_CHECKED: Info "checked existing load balancers",
        "After a start: how many load balancers exist (`total`), and how many need no change (`in_order`).",
        "Nothing.";
    LOAD_BALANCERS_NOT_OBSERVED: Warn "failed to observe some load balancers, retrying",
        "The cloud did not answer after a start. cloudkeel checks these load balancers again after `retry_after`.",
        "Wait for the cloud.";
    LOAD_BALANCER_UNCONFIRMED: Warn "load balancer and instances of this cluster not found, checking again",
        "The load balancer of a deleted Service is missing, but so is every instance of this cluster: the credential may \
         belong to another project. The finalizer stays.",
        "Check that the credential belongs to this cluster's project.";
    ORPHAN_CHECK_FAILED: Warn "failed to list load balancers of this cluster",
        "Looking for load balancers without a Service in `cloud` failed. cloudkeel retries with the next check.",
        "Correct the credential or the endpoint, or wait for the cloud, as `err` says.";
    ORPHAN_FOUND: Warn "resource of this cluster has no service, leaving it",
        "The cloud has a resource with this cluster's labels (`kind`, `id`, `name`), but its Service does not exist.",
        "Delete it in the cloud if it is not needed.";
    OTHER_CLOUD_SERVES: Warn "another cloud serves the service now",
        "A Service was moved to another cloud, and the first still has its load balancer. cloudkeel deletes it when \
         the new one works.",
        "Nothing.";

    // Routes.
    ROUTE_CREATED: Info "created route",
        "A route for the Pod CIDR of a Node (`destination`, `to`) was created.",
        "Nothing.";
    ROUTE_DELETED: Info "deleted route",
        "A route of this cluster that no Node needs any more was deleted.",
        "Nothing.";
    ROUTE_CREATE_FAILED: Warn "could not create route",
        "The cloud refused the route; the Node gets the Event `FailedToCreateRoute`. cloudkeel retries.",
        "Correct what `err` names.";
    ROUTE_DELETE_FAILED: Warn "could not delete route",
        "The cloud refused to delete a route. cloudkeel retries.",
        "Correct what `err` names.";
    ROUTES_FAILED: Warn "couldn't reconcile node routes",
        "Listing the routes of `cloud` failed, or its credential does not show this cluster's instances. cloudkeel \
         changes no route, and retries. Logged with the first failure of a series.",
        "Correct what `err` names.";
    POD_CIDR_CONFLICT: Warn "two nodes have the same pod CIDR",
        "A route can lead to one Node only: `with` has it.",
        "Delete and recreate one of the two Nodes: the Pod CIDR of a Node cannot be changed.";
    NETWORK_CONDITION_FAILED: Warn "failed to update node condition NetworkUnavailable",
        "Writing the condition failed. cloudkeel retries.",
        "Allow `patch` on `nodes/status`, or wait for the API server.";

    // Node IPAM.
    POD_CIDRS_LOADED: Info "loaded the PodCIDRs of existing nodes",
        "After a start: how many Nodes exist and how many Pod CIDRs are `free`.",
        "Nothing.";
    POD_CIDR_SET: Info "set node PodCIDR",
        "A Node got its Pod CIDRs.",
        "Nothing.";
    CIDR_RANGE_EXHAUSTED: Warn "failed to allocate cidr: CIDR range is exhausted",
        "`cluster_cidr` has no Pod CIDR left. The Node waits until another Node is deleted.",
        "Delete Nodes, or use a larger `--cluster-cidr` or a longer node mask.";
    POD_CIDR_UPDATE_FAILED: Warn "failed to update node PodCIDR",
        "The API server refused the Pod CIDRs of a Node. They are free again, and cloudkeel retries.",
        "Allow `patch` on `nodes`, or wait for the API server.";
    POD_CIDR_UPDATE_UNCONFIRMED: Warn "node PodCIDR update unconfirmed",
        "The answer to the write was lost. The Pod CIDRs stay reserved for the Node, and cloudkeel writes them again.",
        "Nothing, if it is rare; otherwise check the API server.";
    INVALID_POD_CIDR: Error "invalid node PodCIDR",
        "A Node has a Pod CIDR outside `--cluster-cidr`, or one that another Node has (`err`).",
        "Delete and recreate the Node, or correct `--cluster-cidr`.";
}
