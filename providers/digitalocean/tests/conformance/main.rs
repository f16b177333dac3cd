//! The DigitalOcean provider on the emulator of DigitalOcean's API, through the conformance kit: with each of the two types
//! of load balancers as the default.

mod cloud;

use cloudkeel_testkit::conformance::{adapter, run, verify};

const NONE: &str = "DigitalOcean's provider has none";
const NOT_HERE: &str = "DigitalOcean's load balancers do not have it";
const NOT_SHOWN: &str = "a destroyed droplet is not shown any more";
const OWN: &str = "each Service has a load balancer of its own";
const ONE_CHECK: &str = "a load balancer has one check";
const NO_LIMIT: &str = "the API names no limit";
const NO_CHOICE: &str = "the API no longer lets it be chosen";
const CREATE_ONLY: &str = "it is made internal, and cannot change later";
const NOT_SHARED: &str =
    "a change replaces all of a load balancer, so nothing of it can be left alone";
const UNPROTECTED: &str = "nothing is protected from deletion";

const GAPS: &[(&str, &str)] = &[
    ("instances/terminated-*", NOT_SHOWN),
    ("load-balancers/sctp", NOT_HERE),
    ("load-balancers/affinity", "sessions stick by cookie only"),
    ("load-balancers/algorithm", NO_CHOICE),
    ("load-balancers/internal", CREATE_ONLY),
    ("load-balancers/health-check-per-port", ONE_CHECK),
    ("load-balancers/node-selector", NONE),
    ("load-balancers/drain", NOT_HERE),
    ("load-balancers/targets-by-address", NOT_HERE),
    ("load-balancers/targets-over-the-limit", NO_LIMIT),
    ("load-balancers/listeners-over-the-limit", NO_LIMIT),
    ("load-balancers/shared-*", OWN),
    ("load-balancers/foreign-parts-*", NOT_SHARED),
    ("load-balancers/protected-is-kept", UNPROTECTED),
    ("routes/*", NONE),
    ("volumes/*", NONE),
];

/// What passes packets on can add nothing to them.
const NETWORK: &[(&str, &str)] = &[("load-balancers/proxy-protocol", NOT_HERE)];

const BESIDES: &str = "it is given, and an IPv6 address besides";
const REGIONAL: &[(&str, &str)] = &[("load-balancers/chosen-address", BESIDES)];

#[tokio::test(start_paused = true)]
async fn the_digitalocean_provider_conforms_and_the_page_says_so() {
    // One after the other: both write the page.
    let with = |more| [GAPS, more].concat().leak();
    let network = || Ok(cloud::new("REGIONAL_NETWORK"));
    let network = adapter("digitalocean", with(NETWORK), network);
    let regional = || Ok(cloud::new("REGIONAL"));
    let regional = adapter("digitalocean regional", with(REGIONAL), regional);
    for report in [run(&network).await, run(&regional).await] {
        verify(&report, env!("CARGO_MANIFEST_DIR")).unwrap_or_else(|why| panic!("{why}"));
    }
}
