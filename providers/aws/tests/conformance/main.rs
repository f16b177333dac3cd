//! The AWS provider on moto, through the conformance kit: once with classic and once with network load balancers.

mod cloud;
#[path = "../support/mod.rs"]
mod support;

use cloudkeel_provider_aws::BalancerType;
use cloudkeel_testkit::conformance::{adapter, run, run_some, verify};

const GAPS: &[(&str, &str)] = &[];
const NLB_GAPS: &[(&str, &str)] = &[];

#[tokio::test(start_paused = true)]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn the_aws_provider_conforms_and_the_page_says_so() {
    // One after the other: both write the page.
    let classic = run(&adapter("aws", GAPS, || cloud::new(BalancerType::Classic))).await;
    let nlb = adapter("aws nlb", NLB_GAPS, || cloud::new(BalancerType::Nlb));
    let nlb = run_some(&nlb, |name| name.starts_with("load-balancers/")).await;
    for report in [classic, nlb] {
        verify(&report, env!("CARGO_MANIFEST_DIR")).unwrap_or_else(|why| panic!("{why}"));
    }
}
