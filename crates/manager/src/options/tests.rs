use std::time::Duration;

use super::*;
use crate::flags::{FlagTable, parse};

fn read(line: &str) -> Result<Options, String> {
    let line = parse(&FlagTable::new(&[]), line.split_whitespace()).map_err(|p| p.to_string())?;
    Options::read(&line, &[]).map_err(|problems| problems.to_string())
}

#[test]
fn an_empty_command_line_gives_the_defaults() {
    let options = read("").unwrap();
    assert_eq!(options.generic.cluster_name, "kubernetes");
    assert_eq!(options.generic.controllers, ["*"]);
    assert!(options.election.enabled && options.election.release_on_exit);
    assert_eq!(options.election.lease_duration, Duration::from_secs(15));
    assert_eq!(
        options.api_server.qps, None,
        "no client-side cap unless asked for"
    );
    assert_eq!(
        options.node.concurrent_status_updates,
        options.node.concurrent_syncs
    );
    assert_eq!(options.serving.port, 10258);
    assert_eq!(options.webhook_serving.port, 10260);
    assert_eq!(options.serving.http2_streams, 100);
    assert_eq!(
        options.authorization.always_allow_paths,
        ["/healthz", "/readyz", "/livez"]
    );
    assert!(!options.gates.webhooks());
}

#[test]
fn the_flags_of_the_hetzner_chart_are_understood() {
    let options = read(
        "--allow-untagged-cloud --cloud-provider=hcloud \
         --feature-gates=CloudControllerManagerWatchBasedRoutesReconciliation=true \
         --route-reconciliation-period=30s --webhook-secure-port=0 \
         --allocate-node-cidrs=true --cluster-cidr=10.244.0.0/16 --leader-elect=false",
    )
    .unwrap();
    assert_eq!(options.generic.cloud_provider.as_deref(), Some("hcloud"));
    assert_eq!(
        options.generic.cluster_cidrs,
        ["10.244.0.0/16".parse().unwrap()]
    );
    assert_eq!(options.route.period, Duration::from_secs(30));
    let resync = options.route.resync(&options.gates);
    assert_eq!(resync, Duration::from_hours(1), "the gate is on");
    assert_eq!(options.webhook_serving.port, 0);
    assert!(options.ipam.enabled && !options.election.enabled);
}

#[test]
fn routes_are_looked_at_as_often_as_asked_unless_they_follow_the_watch_by_request() {
    let gate = "--feature-gates=CloudControllerManagerWatchBasedRoutesReconciliation";
    let period = "--route-reconciliation-period=30s";
    let (hour, half_a_minute) = (Duration::from_hours(1), Duration::from_secs(30));
    for (case, line, expected) in [
        ("nothing is said", String::new(), hour),
        ("the period", period.to_owned(), half_a_minute),
        ("the gate", format!("{gate}=true"), hour),
        ("both", format!("{gate}=true {period}"), hour),
        (
            "the gate is off",
            format!("{gate}=false"),
            Duration::from_secs(10),
        ),
        (
            "off, and the period",
            format!("{gate}=false {period}"),
            half_a_minute,
        ),
    ] {
        let options = read(&line).unwrap();
        assert_eq!(options.route.resync(&options.gates), expected, "{case}");
    }
}

#[test]
fn gates_of_the_api_server_library_are_accepted_as_upstream_accepts_them() {
    let options = read("--feature-gates=WatchList=true,ComponentStatusz=false").unwrap();
    assert!(options.gates.is_on("WatchList"));
    assert!(!options.gates.is_on("ComponentStatusz"));
}

#[test]
fn what_a_chart_of_a_go_ccm_may_set_is_noted_and_not_refused() {
    for (line, expected) in [
        (
            "--kube-api-burst=10",
            &["--kube-api-burst has no effect without --kube-api-qps: there is no limit"][..],
        ),
        ("--kube-api-burst=10 --kube-api-qps=5", &[]),
        (
            "--feature-gates=CloudControllerManagerWebhok=true,WatchList=true",
            &[
                "--feature-gates: \"CloudControllerManagerWebhok\" is not known and has no effect: \
               did you mean CloudControllerManagerWebhook?",
            ],
        ),
        (
            "--feature-gates=Zzz=false",
            &["--feature-gates: \"Zzz\" is not known and has no effect"],
        ),
    ] {
        let options = read(line).unwrap();
        assert_eq!(options.notes, expected, "{line}");
    }
}

#[test]
fn lists_can_be_given_with_commas_or_repeated_and_can_be_emptied() {
    let options = read("--controllers=*,-route --controllers=service").unwrap();
    assert_eq!(options.generic.controllers, ["*", "-route", "service"]);
    let options = read("--authorization-always-allow-paths=").unwrap();
    assert_eq!(
        options.authorization.always_allow_paths,
        Vec::<String>::new()
    );
}

#[test]
fn old_tls_versions_that_go_takes_are_taken_too() {
    let options = read("--tls-min-version=VersionTLS10").unwrap();
    assert_eq!(options.serving.min_version, "VersionTLS10");
}

#[test]
fn certificates_by_server_name_are_split() {
    let options = read(
        "--tls-sni-cert-key=/a.crt,/a.key:a.example,b.example --tls-sni-cert-key=/b.crt,/b.key",
    )
    .unwrap();
    let names: Vec<_> = options
        .serving
        .sni
        .iter()
        .map(|pair| pair.names.len())
        .collect();
    assert_eq!(names, [2, 0]);
}

/// A command line, and the warnings about it.
const BAD_VALUES: &[(&str, &str)] = &[
    (
        "--concurrent-node-syncs=0",
        "--concurrent-node-syncs: \"0\": expected 1 or more",
    ),
    (
        "--concurrent-node-lifecycle-syncs=0",
        "--concurrent-node-lifecycle-syncs: \"0\": expected 1 or more",
    ),
    (
        "--node-monitor-period=0",
        "--node-monitor-period: \"0\": expected more than nothing",
    ),
    (
        "--cluster-cidr=10.0.0.0/16,10.1.0.0/16",
        "--cluster-cidr: \"10.0.0.0/16,10.1.0.0/16\": expected at most one network of each IP family",
    ),
    (
        "--cluster-cidr=10.0.0.0",
        "--cluster-cidr: \"10.0.0.0\": expected a network such as `10.244.0.0/16`",
    ),
    (
        "--leader-elect-resource-lock=endpoints",
        "--leader-elect-resource-lock: \"endpoints\": expected leases",
    ),
    (
        "--secure-port=70000",
        "--secure-port: \"70000\": expected a whole number from 0 to 65535",
    ),
    (
        "--tls-min-version=TLS12",
        "--tls-min-version: \"TLS12\": expected VersionTLS12 or VersionTLS13",
    ),
    (
        "--tls-cert-file=/x",
        "--tls-private-key-file: is required: --tls-cert-file and --tls-private-key-file go together",
    ),
    (
        "--feature-gates=X",
        "--feature-gates: \"X\": expected `Name=true` or `Name=false`",
    ),
    (
        "--logging-format=xml",
        "--logging-format: \"xml\": expected text or json",
    ),
    (
        "--webhooks=* --webhook-secure-port=10258",
        "--webhook-secure-port: \"10258\": expected a port other than --secure-port",
    ),
    (
        "--node-cidr-mask-size=24 --node-cidr-mask-size-ipv4=24",
        "--node-cidr-mask-size: excludes --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6",
    ),
    (
        "--node-cidr-mask-size-ipv4=33",
        "--node-cidr-mask-size-ipv4: \"33\": expected a mask from 0 to 32",
    ),
    (
        "--allocate-node-cidrs --cidr-allocator-type=CloudAllocator",
        "--cidr-allocator-type: \"CloudAllocator\": expected RangeAllocator",
    ),
    (
        "--load-balancer-drift=mend",
        "--load-balancer-drift: \"mend\": expected `repair`, `report` or `off`",
    ),
    (
        "--load-balancer-health-checks=tcp",
        "--load-balancer-health-checks: \"tcp\": expected `auto`, `compatible`, `node-port` or `kube-proxy`",
    ),
    (
        "--load-balancer-drift-check-period=0s",
        "--load-balancer-drift-check-period: \"0\": expected more than nothing",
    ),
    (
        "--bind-address=localhost",
        "--bind-address: \"localhost\": expected an IP address such as `0.0.0.0` or `::`",
    ),
];

#[test]
fn every_bad_value_is_refused_with_what_would_be_right() {
    for (line, expected) in BAD_VALUES {
        assert_eq!(read(line).unwrap_err(), *expected, "{line}");
    }
}

#[test]
fn all_bad_values_are_reported_together() {
    let problems = read("--v=x --concurrent-service-syncs=0 --leader-elect=maybe").unwrap_err();
    assert_eq!(problems.lines().count(), 3, "{problems}");
}

#[test]
fn the_former_name_of_the_drift_check_period_still_works_and_is_reported_as_deprecated() {
    const FORMER: &str = "--load-balancer-sweep-period=7m";
    let table = FlagTable::new(&[]);
    for (line, expected) in [
        ("", 20),
        (FORMER, 7),
        ("--load-balancer-drift-check-period=5m", 5),
        (
            "--load-balancer-drift-check-period=5m --load-balancer-sweep-period=7m",
            5,
        ),
    ] {
        let options = read(line).unwrap();
        assert_eq!(
            options.service.list_period,
            Duration::from_mins(expected),
            "{line}"
        );
    }
    let notes = parse(&table, [FORMER]).unwrap().notes;
    let expected =
        "--load-balancer-sweep-period is deprecated: use --load-balancer-drift-check-period";
    assert_eq!(notes, [expected]);
}
