//! The OpenStack provider on the emulator of OpenStack's services, through the conformance kit.

mod cloud;
mod state;

use cloudkeel_testkit::conformance::{adapter, run, verify};

const GAPS: &str = "
    instances/truncated-page-is-an-error, instances/lost-page-is-an-error: OpenStack's lists do not say how long they are
    instances/list-costs-its-pages: the addresses of servers take a list of ports, too
    instances/terminated-*: a deleted server is not shown any more
    load-balancers/size, load-balancers/size-taken-back: a load balancer keeps its flavor
    load-balancers/health-check-by-http, load-balancers/health-check-per-port: the port of a check is said of each target, and the check has none
    load-balancers/stale-reads-create-no-second: Octavia's reads do not lag, and its names are not unique
    load-balancers/affinity: Octavia lets clients stick to a target without an end
    load-balancers/dual-stack: a load balancer has one address
    load-balancers/protected-is-kept: Octavia does not protect load balancers
    load-balancers/targets-over-the-limit, load-balancers/listeners-over-the-limit: Octavia names no limit
    load-balancers/refused-target-is-reported: Octavia takes any address as a target
    webhooks/*, background/*: OpenStack's provider has none
";

#[tokio::test(start_paused = true)]
async fn the_openstack_provider_conforms_and_the_page_says_so() {
    let report = run(&adapter("openstack", &[GAPS], || Ok(cloud::new()))).await;
    verify(&report, env!("CARGO_MANIFEST_DIR")).unwrap_or_else(|why| panic!("{why}"));
}
