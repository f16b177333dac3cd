//! The Hetzner provider on the emulator of Hetzner's APIs, through the conformance kit.

mod cloud;
mod robot;

use cloudkeel_testkit::conformance::{adapter, run, run_instances, verify};

const CLOUD_GAPS: &str = "
    instances/ambiguous-name-*: names of servers are unique
    instances/terminated-*: a deleted server is not shown any more
    load-balancers/source-ranges, load-balancers/affinity, load-balancers/chosen-address, load-balancers/drain: Hetzner's balancers do not have it
    load-balancers/udp, load-balancers/sctp, load-balancers/mixed-protocols: Hetzner's balancers forward TCP only
    load-balancers/shared-*: each Service has a balancer of its own
    routes/ipv6: Hetzner's networks route IPv4 only
    volumes/*, webhooks/*, background/*: Hetzner's provider has none
";

const ROBOT_GAPS: &str = "
    instances/other-account-proves-nothing: the emulator has one Robot account
    instances/truncated-page-is-an-error, instances/lost-page-is-an-error, instances/list-costs-its-pages: Robot's list has no pages
    instances/lookups-cost-one-call-each: whether a server runs is another call
    instances/terminated-*: a deleted server is not shown any more
    instances/stale-reads-only-delay: the emulator keeps no history of Robot
";

#[tokio::test(start_paused = true)]
async fn the_hetzner_provider_conforms_and_the_page_says_so() {
    // One after the other: both write the page.
    let cloud = run(&adapter("hcloud", &[CLOUD_GAPS], cloud::new)).await;
    let robot = run_instances(&adapter("hcloud robot", &[ROBOT_GAPS], robot::new)).await;
    for report in [cloud, robot] {
        verify(&report, env!("CARGO_MANIFEST_DIR")).unwrap_or_else(|why| panic!("{why}"));
    }
}
