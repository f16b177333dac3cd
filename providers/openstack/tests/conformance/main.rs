//! The OpenStack provider on the emulator of OpenStack's services, through the conformance kit.

mod cloud;
mod state;

use cloudkeel_testkit::conformance::{adapter, run, verify};

const NO_TOTALS: &str = "OpenStack's lists do not say how long they are";
const PORTS: &str = "the addresses of servers take a list of ports, too";
const NOT_SHOWN: &str = "a deleted server is not shown any more";
const CREATE_ONLY: &str = "a load balancer keeps its flavor";
const NO_TARGETS: &str = "the port of a check is said of each target, and the check has none";
const NO_LIMIT: &str = "Octavia names no limit";
const SHARED_BY_SERVICES: &str = "load balancers are shared by Services, each with its tag";
const NONE: &str = "OpenStack's provider has none";

const GAPS: &[(&str, &str)] = &[
    ("instances/truncated-page-is-an-error", NO_TOTALS),
    ("instances/lost-page-is-an-error", NO_TOTALS),
    ("instances/list-costs-its-pages", PORTS),
    ("instances/terminated-*", NOT_SHOWN),
    ("load-balancers/foreign-parts-*", SHARED_BY_SERVICES),
    ("load-balancers/size", CREATE_ONLY),
    ("load-balancers/size-taken-back", CREATE_ONLY),
    ("load-balancers/health-check-by-http", NO_TARGETS),
    ("load-balancers/health-check-per-port", NO_TARGETS),
    (
        "load-balancers/stale-reads-create-no-second",
        "Octavia's reads do not lag, and its names are not unique",
    ),
    (
        "load-balancers/affinity",
        "Octavia lets clients stick to a target without an end",
    ),
    (
        "load-balancers/dual-stack",
        "a load balancer has one address",
    ),
    (
        "load-balancers/protected-is-kept",
        "Octavia does not protect load balancers",
    ),
    ("load-balancers/targets-over-the-limit", NO_LIMIT),
    ("load-balancers/listeners-over-the-limit", NO_LIMIT),
    (
        "load-balancers/refused-target-is-reported",
        "Octavia takes any address as a target",
    ),
    ("webhooks/*", NONE),
    ("background/*", NONE),
];

#[tokio::test(start_paused = true)]
async fn the_openstack_provider_conforms_and_the_page_says_so() {
    let report = run(&adapter("openstack", GAPS, cloud::new)).await;
    verify(&report, env!("CARGO_MANIFEST_DIR")).unwrap_or_else(|why| panic!("{why}"));
}
