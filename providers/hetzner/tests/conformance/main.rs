//! The Hetzner provider on the emulator of Hetzner's APIs, through the conformance kit.

mod cloud;
mod robot;

use cloudkeel_testkit::conformance::{adapter, run, run_instances, verify};

const TCP: &str = "Hetzner's balancers forward TCP only";
const OWN: &str = "each Service has a balancer of its own";
const NOT_HERE: &str = "Hetzner's balancers do not have it";
const NOT_SHOWN: &str = "a deleted server is not shown any more";
const NONE: &str = "Hetzner's provider has none";

const CLOUD_GAPS: &[(&str, &str)] = &[
    ("instances/ambiguous-name-*", "names of servers are unique"),
    ("instances/terminated-*", NOT_SHOWN),
    ("load-balancers/source-ranges", NOT_HERE),
    ("load-balancers/affinity", NOT_HERE),
    ("load-balancers/chosen-address", NOT_HERE),
    ("load-balancers/drain", NOT_HERE),
    ("load-balancers/udp", TCP),
    ("load-balancers/sctp", TCP),
    ("load-balancers/mixed-protocols", TCP),
    ("load-balancers/shared-*", OWN),
    ("routes/ipv6", "Hetzner's networks route IPv4 only"),
    ("volumes/*", NONE),
    ("webhooks/*", NONE),
    ("background/*", NONE),
];

const PAGES: &str = "Robot's list has no pages";
const STATUS: &str = "whether a server runs is another call";
const HISTORY: &str = "the emulator keeps no history of Robot";
const ACCOUNT: &str = "the emulator has one Robot account";

const ROBOT_GAPS: &[(&str, &str)] = &[
    ("instances/other-account-proves-nothing", ACCOUNT),
    ("instances/truncated-page-is-an-error", PAGES),
    ("instances/lost-page-is-an-error", PAGES),
    ("instances/list-costs-its-pages", PAGES),
    ("instances/lookups-cost-one-call-each", STATUS),
    ("instances/terminated-*", NOT_SHOWN),
    ("instances/stale-reads-only-delay", HISTORY),
];

#[tokio::test(start_paused = true)]
async fn the_hetzner_provider_conforms_and_the_page_says_so() {
    // One after the other: both write the page.
    let cloud = run(&adapter("hcloud", CLOUD_GAPS, cloud::new)).await;
    let robot = run_instances(&adapter("hcloud robot", ROBOT_GAPS, robot::new)).await;
    for report in [cloud, robot] {
        verify(&report, env!("CARGO_MANIFEST_DIR")).unwrap_or_else(|why| panic!("{why}"));
    }
}
