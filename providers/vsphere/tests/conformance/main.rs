//! The vSphere provider on a simulated vCenter, through the conformance kit.

mod cloud;

use cloudkeel_http::TlsSettings;
use cloudkeel_testkit::conformance::{InterposedAdapter, run, verify};

const GAPS: &str = "
    instances/terminated-*: a deleted virtual machine is not shown any more
    instances/truncated-page-is-an-error, instances/lost-page-is-an-error: vCenter's lists announce no total; what they lack is looked up
    load-balancers/*, routes/*: load balancers and routes of NSX-T are not supported
    volumes/*, webhooks/*, background/*: vSphere's provider has none
";

#[tokio::test(start_paused = true)]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn the_vsphere_provider_conforms_and_the_page_says_so() {
    let adapter = InterposedAdapter::new("vsphere", &[GAPS], cloud::interposer, |interposed| {
        Box::pin(cloud::open(interposed))
    });
    let adapter = adapter
        .with_tls(TlsSettings::default().insecure(true))
        .with_concurrency(4);
    let report = run(&adapter).await;
    verify(&report, env!("CARGO_MANIFEST_DIR")).unwrap_or_else(|why| panic!("{why}"));
}
