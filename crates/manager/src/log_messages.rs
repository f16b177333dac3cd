//! The manager's documented log messages; `docs/reference/logs.md` is printed from this table.

cloudkeel_api::log_messages! {
    // Start and end of the process.
    STARTING: Info "starting cloudkeel",
        "The first line of every start, with the version.",
        "Nothing.";
    DRY_RUN: Info "this is a dry run, nothing is written",
        "cloudkeel runs with `--dry-run`: the controllers work, and what they would do is only recorded. Messages about \
         Nodes and load balancers say what they would have done.",
        "Nothing.";
    DRY_RUN_STEP: Info "dry run found a step",
        "`controller` would do what `step` says, to the cluster or to `cloud`.",
        "Nothing.";
    FLAG_IGNORED: Warn "command-line flag needs attention",
        "A flag is deprecated, has no effect here, or has a value that was corrected; `note` says which and why.",
        "Remove or change the flag as `note` says.";
    RUN_FAILED: Error "cloudkeel failed",
        "The manager could not start or could not go on, and exits with code 1; `err` says why.",
        "Correct what `err` names. The Pod restarts by itself.";
    PANIC: Error "observed a panic",
        "A bug in the program. The work on an object, a loop and a request fail alone, and are retried. After a panic in a \
         watch or a port, what this process knows may be wrong: it releases the lease and exits with code 1. \
         `cloudkeel_panics_total` counts all of them, and `/status` shows the last one.",
        "Report it with the text of `panic`.";
    CORE_DUMPS_ENABLED: Warn "failed to disable core dumps",
        "The kernel refused to turn off core dumps for this process. A core dump would contain credentials.",
        "Set `ulimit -c 0` for the container, or allow `prctl(PR_SET_DUMPABLE)`.";
    SHUTDOWN_SIGNAL: Info "received shutdown signal, stopping",
        "SIGTERM or SIGINT arrived. Controllers finish what they are doing, then cloudkeel releases the lease.",
        "Nothing.";
    SECOND_SHUTDOWN_SIGNAL: Warn "received second shutdown signal, exiting at once",
        "The process ends without finishing its work and without releasing the lease.",
        "Nothing; the next leader takes over when the lease expires.";
    SHUTDOWN_TIMED_OUT: Warn "shutdown timed out, exiting",
        "Something did not stop within the time that a shutdown may take. The process exits anyway.",
        "Nothing, if it is rare. Otherwise raise `--shutdown-grace-period` and `terminationGracePeriodSeconds`.";
    CONTROLLERS_TIMED_OUT: Info "controllers did not finish within the shutdown grace period",
        "Unfinished work is left to the next leader, which starts from what it observes.",
        "Raise `--shutdown-grace-period` if cloud calls take longer than that.";
    PROVIDER_CLOSE_TIMED_OUT: Info "provider close timed out",
        "A provider did not end its sessions with the cloud within 5 s. They expire by themselves.",
        "Nothing.";

    // The API server.
    API_SERVER_UNAVAILABLE: Warn "waiting for the API server",
        "The API server does not answer, or does not accept this ServiceAccount yet. The start continues when it does.",
        "Check `--kubeconfig` or `--master`, the network, and the ServiceAccount, as `err` says.";
    CREDENTIALS_IN_CLEAR_TEXT: Warn "--master uses http://, credentials of the kubeconfig are sent in clear text",
        "Anyone on the path to the API server can read the credentials.",
        "Give an `https://` address, or the address without a scheme.";
    TOKEN_REQUEST_FAILED: Warn "failed to renew ServiceAccount token, using the current one",
        "TokenRequest failed for the ServiceAccount of a controller (`--use-service-account-credentials`). cloudkeel \
         retries until it succeeds; the current token works until it expires.",
        "Allow `create` on `serviceaccounts/token` in kube-system.";
    CLUSTER_UID_UNAVAILABLE: Warn "failed to get the cluster UID",
        "cloudkeel cannot read the namespace kube-system, so new cloud resources have no label with the cluster's \
         UID. It retries every minute, later every hour.",
        "Allow `get` on the namespace `kube-system`. The Go CCMs' roles do not; everything else works without it.";
    NO_CLUSTER_ID: Warn "detected a cloud without a ClusterID",
        "The provider does not label its cloud resources with an ID of this cluster, so resources do not show which \
         of two clusters in one account they belong to.",
        "Configure the cluster's ID for the provider, or accept this with `--allow-untagged-cloud`.";

    // Leader election.
    LEASE_ACQUIRED: Info "successfully acquired lease",
        "This replica leads from now on.",
        "Nothing.";
    LEASE_ACQUIRED_TOO_LATE: Warn "acquired lease too late, not leading",
        "The answer to the write took longer than the renew deadline, so the lease may have expired already.",
        "Check the latency of the API server.";
    LEASE_ACQUIRE_FAILED: Warn "failed to acquire lease",
        "Reading or writing the Lease failed. cloudkeel retries every `--leader-elect-retry-period`.",
        "Allow `get`, `create` and `update` on `leases` in the Lease's namespace, or wait for the API server.";
    LEASE_RENEW_FAILED: Warn "failed to renew lease",
        "One renewal failed. Leadership ends only when none succeeds within `--leader-elect-renew-deadline`.",
        "Nothing, if it is rare; otherwise check the API server.";
    LEASE_RELEASE_FAILED: Warn "failed to release lease",
        "Releasing the Lease at shutdown failed. The next leader waits until it expires.",
        "Nothing.";
    LEASE_WATCH_FORBIDDEN: Warn "not allowed to watch the lease, polling it",
        "Failover takes a few seconds longer than with a watch.",
        "Allow `watch` on `leases` in the Lease's namespace.";
    LEASE_EVENTS_FORBIDDEN: Warn "not allowed to record leader election events",
        "Changes of leadership do not show as Events on the Lease.",
        "Allow `create` on `events` in the Lease's namespace.";
    LEADER_ELECTION_LOST: Error "leaderelection lost",
        "This replica could not renew the lease, or another replica holds it. All writes stop and the process exits \
         with code 1, so that it starts clean.",
        "Nothing, if it is rare; otherwise check the API server, and the CPU limit and clock of the node.";

    // Controllers and clouds.
    CLOUD_BUILT: Info "cloud provider initialized",
        "The provider of a cloud is built; `capabilities` lists what it supports.",
        "Nothing.";
    CLOUD_UNAVAILABLE: Error "cloud unavailable since the start, retrying",
        "The cloud could not be connected to, or rejects the credential; `err` says why. Its Nodes count as unknown and \
         are never deleted, its Services keep their finalizers, and all other clouds work. cloudkeel retries after 5 s, \
         later every minute; a rejected credential after 30 s, later every 5 minutes, and when its file changes. Logged \
         when the cause changes, and shown by `/status`.",
        "Correct the credential or the endpoint, or wait for the cloud, as `err` says.";
    CLOUD_AVAILABLE: Info "cloud available",
        "A cloud that was unavailable since the start is connected; its controllers begin.",
        "Nothing.";
    CLOUD_SLOW: Info "waiting for the cloud to answer",
        "The first request to the cloud has taken more than 2 s. The start continues when it answers.",
        "Check the endpoint, the network and the proxy settings if it lasts.";
    INSTANCES_UNSUPPORTED: Warn "cloud provider does not support instances, controller not started",
        "No configured cloud can list instances, which this controller needs.",
        "Nothing, if that is intended; otherwise disable the controller in `--controllers`.";
    LOAD_BALANCERS_UNSUPPORTED: Warn "the cloud provider does not support external load balancers",
        "No configured cloud has load balancers. Services of type LoadBalancer get an Event that says so.",
        "Nothing, if that is intended; otherwise disable the controller with `--controllers=*,-service-lb-controller`.";
    ROUTES_UNSUPPORTED: Warn "cloud provider does not support routes, controller not started",
        "`--configure-cloud-routes` is set, but no configured cloud has routes.",
        "Set `--configure-cloud-routes=false`.";
    CLUSTER_CIDR_MISSING: Warn "--cluster-cidr is not set, route controller not started",
        "Routes need the network of all Pods. Logged as INFO unless `--controllers` names the route controller.",
        "Set `--cluster-cidr`, or `--configure-cloud-routes=false` if the Pod network needs no routes in the cloud.";
    PROVIDER_CONTROLLER_FAILED: Error "provider controller failed",
        "A controller of a provider returned, failed or panicked. It restarts after `retry_after`.",
        "Correct what `err` names.";

    // Settings and credentials.
    SETTINGS_RELOADED: Info "cloud settings reloaded",
        "cloudkeel rebuilt the provider with the new settings or credential, and the cloud answered a request.",
        "Nothing.";
    SETTINGS_REJECTED: Error "failed to reload cloud settings, keeping the current ones",
        "The new configuration or credential does not work; `err` says why. cloudkeel retries, after 30 s at first.",
        "Correct the configuration file or the Secret. The cloud keeps working with the current settings.";
    SCOPE_CHANGED: Warn "credential scope changed",
        "The new credential shows another account, project or region than the last one (`was`, `now`). No Node is \
         deleted until it shows an instance that is already known.",
        "Check that the credential belongs to this cluster's project. If it does, nothing.";

    // Serving.
    CLIENT_CA_UNAVAILABLE: Warn "failed to load client CA, keeping the last good one",
        "Reading the CA file, or the ConfigMap kube-system/extension-apiserver-authentication, failed. cloudkeel \
         rejects clients with a certificate of a new CA.",
        "Grant the role `extension-apiserver-authentication-reader`, or correct the file that `source` names.";
    CLIENT_CA_UNUSABLE: Warn "client CA bundle contains unusable certificates",
        "cloudkeel cannot parse some certificates of the bundle, and ignores them.",
        "Remove or replace them.";
    TOKEN_REVIEW_FAILED: Warn "TokenReview failed",
        "The API server did not check a bearer token, so its request got 401. The same cause is logged once in 10 \
         minutes.",
        "Allow `create` on `tokenreviews`, for example with the role `system:auth-delegator`.";
    SUBJECT_ACCESS_REVIEW_FAILED: Warn "SubjectAccessReview failed",
        "The API server did not say whether a request is allowed, so it got 500. The same cause is logged once in 10 \
         minutes.",
        "Allow `create` on `subjectaccessreviews`, for example with the role `system:auth-delegator`.";
    ADMISSION_REQUEST_FAILED: Warn "failed to answer admission request",
        "A webhook got a request that it could not read or answer. What happens to the object depends on the \
         webhook's `failurePolicy`.",
        "Correct what `err` names.";
    VOLUME_NOT_LABELLED: Warn "failed to label PersistentVolume",
        "The cloud did not say where the disk of a new PersistentVolume is, so the volume was created without zone and \
         region. Pods that use it may be scheduled where the disk cannot be attached.",
        "Correct what `err` names, then create the PersistentVolume again or label it by hand.";
    WEBHOOK_CERTIFICATE_FAILED: Warn "failed to keep the webhook certificate",
        "The leader could not read or write the Secret of the webhook certificate, or the MutatingWebhookConfiguration of \
         the same name. The API server does not call webhooks whose certificate it does not trust; with `failurePolicy: \
         Ignore` objects are written without them. Logged when the cause changes, and retried every 30 s.",
        "Apply the manifest of the webhook, which has the Secret, the configuration and the role for both.";
    WEBHOOK_CERTIFICATE_RENEWED: Info "webhook certificate renewed",
        "The leader made a new certificate for the webhook port, and the API server trusts it.",
        "Nothing.";
    REQUEST_PANICKED: Error "request panicked",
        "A bug in the program. The request to `path` was answered with 500, and all others go on.",
        "Report it with the text of `panic` and the line `observed a panic` before it.";
    OPEN_REQUESTS_DROPPED: Warn "graceful shutdown timed out, closing open connections",
        "Requests did not finish within 5 s after the port was asked to close.",
        "Nothing.";
    CERTIFICATE_RELOADED: Info "serving certificate reloaded",
        "New connections get the new certificate, which expires at `expires`.",
        "Nothing.";
    CERTIFICATE_REJECTED: Warn "failed to reload serving certificate, keeping the current one",
        "The files of the serving certificate changed, but cannot be used.",
        "Correct the files that `err` names.";
    CERTIFICATE_NOT_SAVED: Warn "failed to save self-signed certificate, serving it from memory",
        "cloudkeel cannot write to `--cert-dir`. Clients see another certificate after the next start.",
        "Make the directory writable, or give `--tls-cert-file` and `--tls-private-key-file`.";
    INSECURE_CIPHER_SUITE: Warn "use of insecure cipher suite detected, ignoring it",
        "`--tls-cipher-suites` names an insecure suite, which cloudkeel does not offer.",
        "Remove it from the flag.";
    INSECURE_TLS_VERSION: Warn "insecure TLS version, using VersionTLS12",
        "`--tls-min-version` is lower than TLS 1.2, which is the lowest version served.",
        "Set `VersionTLS12` or `VersionTLS13`.";
}
