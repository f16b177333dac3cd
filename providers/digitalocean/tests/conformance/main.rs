//! The DigitalOcean provider on the emulator of DigitalOcean's API, through the conformance kit: with each of the two types
//! of load balancers as the default.

mod cloud;

use cloudkeel_provider_digitalocean::BalancerType;
use cloudkeel_testkit::conformance::{adapter, run, verify};

const NONE: &str = "DigitalOcean's provider has none";
const NOT_HERE: &str = "DigitalOcean's load balancers do not have it";
const OWN: &str = "each Service has a load balancer of its own";
const NO_LIMIT: &str = "the API names no limit";

const GAPS: &[(&str, &str)] = &[
    (
        "instances/terminated-*",
        "a destroyed droplet is not shown any more",
    ),
    ("load-balancers/sctp", NOT_HERE),
    ("load-balancers/affinity", "sessions stick by cookie only"),
    (
        "load-balancers/algorithm",
        "the API no longer lets it be chosen",
    ),
    (
        "load-balancers/internal",
        "it is made internal, and cannot change later",
    ),
    (
        "load-balancers/health-check-per-port",
        "a load balancer has one check",
    ),
    ("load-balancers/node-selector", NONE),
    ("load-balancers/drain", NOT_HERE),
    ("load-balancers/targets-by-address", NOT_HERE),
    ("load-balancers/targets-over-the-limit", NO_LIMIT),
    ("load-balancers/listeners-over-the-limit", NO_LIMIT),
    ("load-balancers/shared-*", OWN),
    (
        "load-balancers/protected-is-kept",
        "nothing is protected from deletion",
    ),
    ("routes/*", NONE),
    ("volumes/*", NONE),
];

/// What passes packets on can add nothing to them.
const NETWORK: &[(&str, &str)] = &[("load-balancers/proxy-protocol", NOT_HERE)];

const REGIONAL: &[(&str, &str)] = &[(
    "load-balancers/chosen-address",
    "it is given, and an IPv6 address besides",
)];

#[tokio::test(start_paused = true)]
async fn the_digitalocean_provider_conforms_and_the_page_says_so() {
    // One after the other: both write the page.
    let with = |more| [GAPS, more].concat().leak();
    let network = adapter("digitalocean", with(NETWORK), || {
        Ok(cloud::new(BalancerType::Network))
    });
    let regional = adapter("digitalocean regional", with(REGIONAL), || {
        Ok(cloud::new(BalancerType::Regional))
    });
    for report in [run(&network).await, run(&regional).await] {
        verify(&report, env!("CARGO_MANIFEST_DIR")).unwrap_or_else(|why| panic!("{why}"));
    }
}
