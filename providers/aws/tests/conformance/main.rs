//! The AWS provider on moto, through the conformance kit: once with classic and once with network load balancers.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail loudly, and JSON that lacks a field is null"
)]

mod cloud;
#[path = "../support/mod.rs"]
mod support;

use cloudkeel_provider_aws::BalancerType;
use cloudkeel_testkit::conformance::{InterposedAdapter, run, run_some, verify};

use self::support::{balancer_interposer, interposer};

/// moto answers one request while another check prepares the next.
const CONCURRENCY: usize = 4;

const NO_TOTAL: &str =
    "EC2 announces no total, so a page that is cut short is not seen; a page has 1,000 instances";
const NO_UID: &str = "AWS's tags do not name a Service by its UID";
const NOT_HERE: &str = "AWS's load balancers do not have it";
const OWN: &str = "each Service has a load balancer of its own";
const FIXED: &str = "the scheme of a load balancer cannot be changed";
const NAMES: &str = "a load balancer publishes a name, not addresses";
const ONE_CHECK: &str = "a classic load balancer has one health check, of its first port";
const AT_ONCE: &str = "moto's load balancers are there at once";
const ADJUSTABLE: &str = "the limit is a quota of the account, which moto does not have";
const NONE: &str = "the provider has none";

const GAPS: &[(&str, &str)] = &[
    ("instances/truncated-page-is-an-error", NO_TOTAL),
    ("instances/lost-page-is-an-error", NO_TOTAL),
    ("instances/list-costs-its-pages", NO_TOTAL),
    ("load-balancers/owned-are-listed", NO_UID),
    ("load-balancers/udp", NOT_HERE),
    ("load-balancers/sctp", NOT_HERE),
    ("load-balancers/mixed-protocols", NOT_HERE),
    ("load-balancers/affinity", NOT_HERE),
    ("load-balancers/algorithm", NOT_HERE),
    ("load-balancers/internal", FIXED),
    ("load-balancers/chosen-address", NOT_HERE),
    ("load-balancers/dual-stack", NOT_HERE),
    ("load-balancers/name", NOT_HERE),
    ("load-balancers/name-taken-back", NOT_HERE),
    ("load-balancers/size", NOT_HERE),
    ("load-balancers/size-taken-back", NOT_HERE),
    ("load-balancers/hostname", NAMES),
    ("load-balancers/health-check-by-traffic-policy", ONE_CHECK),
    ("load-balancers/health-check-per-port", ONE_CHECK),
    ("load-balancers/drain", NOT_HERE),
    ("load-balancers/targets-by-address", NOT_HERE),
    ("load-balancers/targets-over-the-limit", ADJUSTABLE),
    ("load-balancers/listeners-over-the-limit", ADJUSTABLE),
    ("load-balancers/adopted-on-request", NO_UID),
    ("load-balancers/other-clusters-not-adopted", NO_UID),
    ("load-balancers/removed-labels-make-no-second", NO_UID),
    ("load-balancers/released-may-be-adopted", NO_UID),
    ("load-balancers/shared-*", OWN),
    ("load-balancers/foreign-parts-*", NO_UID),
    ("load-balancers/protected-is-kept", NOT_HERE),
    ("load-balancers/slow-jobs-are-pending", AT_ONCE),
    (
        "routes/ipv6",
        "only IPv4 is routed to instances, as by the Go CCM",
    ),
    ("webhooks/*", NONE),
];

const NLB_GAPS: &[(&str, &str)] = &[
    ("load-balancers/owned-are-listed", NO_UID),
    ("load-balancers/sctp", NOT_HERE),
    (
        "load-balancers/mixed-protocols",
        "the Go CCM refuses it, and so does this",
    ),
    ("load-balancers/affinity", NOT_HERE),
    ("load-balancers/algorithm", NOT_HERE),
    (
        "load-balancers/proxy-protocol",
        "it is an attribute of target groups, with an annotation of its own",
    ),
    ("load-balancers/internal", FIXED),
    ("load-balancers/chosen-address", NOT_HERE),
    ("load-balancers/dual-stack", NOT_HERE),
    ("load-balancers/name", NOT_HERE),
    ("load-balancers/name-taken-back", NOT_HERE),
    ("load-balancers/size", NOT_HERE),
    ("load-balancers/size-taken-back", NOT_HERE),
    ("load-balancers/hostname", NAMES),
    ("load-balancers/drain", NOT_HERE),
    ("load-balancers/targets-by-address", NOT_HERE),
    ("load-balancers/targets-over-the-limit", ADJUSTABLE),
    ("load-balancers/listeners-over-the-limit", ADJUSTABLE),
    ("load-balancers/quota-is-limit-exceeded", ADJUSTABLE),
    ("load-balancers/adopted-on-request", NO_UID),
    ("load-balancers/other-clusters-not-adopted", NO_UID),
    ("load-balancers/removed-labels-make-no-second", NO_UID),
    ("load-balancers/released-may-be-adopted", NO_UID),
    ("load-balancers/shared-*", OWN),
    ("load-balancers/foreign-parts-*", NO_UID),
    ("load-balancers/slow-jobs-are-pending", AT_ONCE),
    (
        "load-balancers/source-ranges",
        "they are rules of the targets' security groups, and the check has no targets",
    ),
];

#[tokio::test(start_paused = true)]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn the_aws_provider_conforms_and_the_page_says_so() {
    // One after the other: both write the page.
    let classic = cloud::open(BalancerType::Classic);
    let classic = InterposedAdapter::new("aws", GAPS, interposer, classic);
    let classic = run(&classic.with_concurrency(CONCURRENCY)).await;
    let nlb = cloud::open(BalancerType::Nlb);
    let nlb = InterposedAdapter::new("aws nlb", NLB_GAPS, balancer_interposer, nlb)
        .with_concurrency(CONCURRENCY);
    let nlb = run_some(&nlb, |name| name.starts_with("load-balancers/")).await;
    let verified = [classic, nlb].map(|report| verify(&report, env!("CARGO_MANIFEST_DIR")));
    let wrong: Vec<_> = verified.into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
