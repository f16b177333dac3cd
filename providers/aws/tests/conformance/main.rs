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

const BOTH: &str = "
    load-balancers/adopted-on-request, load-balancers/other-clusters-not-adopted,
    load-balancers/removed-labels-come-back, load-balancers/released-may-be-adopted,
    load-balancers/foreign-parts-*: AWS's tags do not name a Service by its UID
    load-balancers/sctp, load-balancers/affinity, load-balancers/algorithm, load-balancers/chosen-address,
    load-balancers/dual-stack, load-balancers/name, load-balancers/name-taken-back, load-balancers/size,
    load-balancers/size-taken-back, load-balancers/drain: AWS's load balancers do not have it
    load-balancers/internal: the scheme of a load balancer cannot be changed
    load-balancers/hostname: a load balancer publishes a name, not addresses
    load-balancers/targets-over-the-limit: a load balancer takes a thousand targets or more
    load-balancers/shared-*: each Service has a load balancer of its own
    load-balancers/slow-jobs-are-pending: moto's load balancers are there at once
";

const CLASSIC: &str = "
    instances/truncated-page-is-an-error, instances/lost-page-is-an-error, instances/list-costs-its-pages: EC2 announces no total, so a page that is cut short is not seen; a page has 1,000 instances
    load-balancers/udp, load-balancers/mixed-protocols, load-balancers/protected-is-kept,
    load-balancers/targets-by-address: AWS's load balancers do not have it
    load-balancers/health-check-by-traffic-policy, load-balancers/health-check-per-port: a classic load balancer has one health check, of its first port
    routes/ipv6: only IPv4 is routed to instances, as by the Go CCM
    webhooks/*: the provider has none
";

const NLB: &str = "
    load-balancers/mixed-protocols: the Go CCM refuses it, and so does this
    load-balancers/proxy-protocol: it is an attribute of target groups, with an annotation of its own
    load-balancers/quota-is-limit-exceeded: the limit is a quota of the account, which moto does not have
    load-balancers/source-ranges: they are rules of the targets' security groups, and the check has no targets
";

#[tokio::test(start_paused = true)]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn the_aws_provider_conforms_and_the_page_says_so() {
    // One after the other: both write the page.
    let classic = cloud::open(BalancerType::Classic);
    let classic = InterposedAdapter::new("aws", &[BOTH, CLASSIC], interposer, classic);
    let classic = run(&classic.with_concurrency(CONCURRENCY)).await;
    let nlb = cloud::open(BalancerType::Nlb);
    let nlb = InterposedAdapter::new("aws nlb", &[BOTH, NLB], balancer_interposer, nlb)
        .with_concurrency(CONCURRENCY);
    let nlb = run_some(&nlb, |name| name.starts_with("load-balancers/")).await;
    let verified = [classic, nlb].map(|report| verify(&report, env!("CARGO_MANIFEST_DIR")));
    let wrong: Vec<_> = verified.into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
