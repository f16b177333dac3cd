//! The DigitalOcean provider on the emulator of DigitalOcean's API, through the conformance kit: with each of the two types
//! of load balancers as the default.

mod cloud;

use cloudkeel_testkit::conformance::{adapter, run, verify};

const GAPS: &str = "
    instances/terminated-*: a destroyed droplet is not shown any more
    load-balancers/sctp, load-balancers/drain, load-balancers/targets-by-address: DigitalOcean's load balancers do not have it
    load-balancers/affinity: sessions stick by cookie only
    load-balancers/algorithm: the API no longer lets it be chosen
    load-balancers/internal: it is made internal, and cannot change later
    load-balancers/health-check-per-port: a load balancer has one check
    load-balancers/node-selector, routes/*, volumes/*: DigitalOcean's provider has none
    load-balancers/targets-over-the-limit, load-balancers/listeners-over-the-limit: the API names no limit
    load-balancers/shared-*: each Service has a load balancer of its own
    load-balancers/protected-is-kept: nothing is protected from deletion
";

/// What passes packets on can add nothing to them.
const NETWORK: &str = "
    load-balancers/proxy-protocol: DigitalOcean's load balancers do not have it
";

const REGIONAL: &str = "
    load-balancers/chosen-address: it is given, and an IPv6 address besides
";

#[tokio::test(start_paused = true)]
async fn the_digitalocean_provider_conforms_and_the_page_says_so() {
    // One after the other: both write the page.
    let network = || Ok(cloud::new("REGIONAL_NETWORK"));
    let network = adapter("digitalocean", &[GAPS, NETWORK], network);
    let regional = || Ok(cloud::new("REGIONAL"));
    let regional = adapter("digitalocean regional", &[GAPS, REGIONAL], regional);
    for report in [run(&network).await, run(&regional).await] {
        verify(&report, env!("CARGO_MANIFEST_DIR")).unwrap_or_else(|why| panic!("{why}"));
    }
}
