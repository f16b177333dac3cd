//! The vSphere provider on a simulated vCenter, through the conformance kit.

mod cloud;

use cloudkeel_http::TlsSettings;
use cloudkeel_testkit::conformance::{InterposedAdapter, run, verify};

const NSX: &str = "load balancers and routes of NSX-T are not supported";
const NONE: &str = "vSphere's provider has none";
const NO_TOTAL: &str = "vCenter's lists announce no total; what they lack is looked up";

const GAPS: &[(&str, &str)] = &[
    (
        "instances/terminated-*",
        "a deleted virtual machine is not shown any more",
    ),
    ("instances/truncated-page-is-an-error", NO_TOTAL),
    ("instances/lost-page-is-an-error", NO_TOTAL),
    ("load-balancers/*", NSX),
    ("routes/*", NSX),
    ("volumes/*", NONE),
    ("webhooks/*", NONE),
    ("background/*", NONE),
];

#[tokio::test(start_paused = true)]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn the_vsphere_provider_conforms_and_the_page_says_so() {
    let adapter = InterposedAdapter::new("vsphere", GAPS, cloud::interposer, |interposed| {
        Box::pin(cloud::open(interposed))
    });
    let adapter = adapter
        .with_tls(TlsSettings::default().insecure(true))
        .with_concurrency(4);
    let report = run(&adapter).await;
    verify(&report, env!("CARGO_MANIFEST_DIR")).unwrap_or_else(|why| panic!("{why}"));
}
