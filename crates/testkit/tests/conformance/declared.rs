//! Gaps: declared, printed, and never stale.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::CloudProvider;
use cloudkeel_testkit::conformance::{Connecting, SimulatedSetup, Verdict, names, run, run_some};
use cloudkeel_testkit::simulated_cloud::SimulatedCloud;

fn local(cloud: SimulatedCloud, context: cloudkeel_api::ProviderContext) -> Connecting {
    Box::pin(async move {
        let provider = cloud.provider(&context).await;
        let provider = provider.map_err(|error| error.to_string())?;
        Ok(Arc::new(provider) as Arc<dyn CloudProvider>)
    })
}

#[test]
fn names_are_unique_and_begin_with_their_group() {
    let all: Vec<_> = names().collect();
    let unique: BTreeSet<_> = all.iter().collect();
    assert_eq!(unique.len(), all.len());
    for name in all {
        let group = name.split_once('/').map(|(group, _)| group);
        let groups = ["instances", "load-balancers", "routes"];
        assert!(group.is_some_and(|group| groups.contains(&group)), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_declared_gap_that_works_is_a_failure() {
    let gaps = &[("load-balancers/udp", "not built yet")];
    let setup = SimulatedSetup::new("local", local).with_gaps(gaps);
    let report = run_some(&setup, |name| name == "load-balancers/udp").await;
    let Some(Verdict::Failed { why }) = report.verdict("load-balancers/udp") else {
        panic!("{report}");
    };
    assert!(
        why.contains("it works, but is declared as a gap: not built yet"),
        "{why}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_declared_gap_that_fails_is_shown_with_its_reason() {
    let gaps = &[("load-balancers/sctp", "nobody asked for it")];
    let setup = SimulatedSetup::new("local", local).with_gaps(gaps);
    let report = run_some(&setup, |name| name == "load-balancers/sctp").await;
    let why = "nobody asked for it".to_owned();
    assert_eq!(
        report.verdict("load-balancers/sctp"),
        Some(&Verdict::Gap { why })
    );
    assert!(report.is_clean());
}

#[tokio::test(start_paused = true)]
async fn a_gap_that_names_no_check_is_a_failure() {
    let gaps = &[("load-balancers/no-such-thing", "renamed meanwhile")];
    let setup = SimulatedSetup::new("local", local).with_gaps(gaps);
    let report = run_some(&setup, |_| false).await;
    assert!(!report.is_clean(), "{report}");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_panics_or_hangs_before_it_is_there_fails_and_stops_no_other_check() {
    let panics = SimulatedSetup::new("panics", |_, _| Box::pin(async { panic!("a bug") }));
    let hangs = SimulatedSetup::new("hangs", |_, _| Box::pin(std::future::pending()));
    for (setup, words) in [(panics, "panicked: a bug"), (hangs, "it hung")] {
        let report = run_some(&setup, |name| name.starts_with("routes/")).await;
        let all = names().filter(|name| name.starts_with("routes/")).count();
        assert_eq!(report.failures().count(), all, "{report}");
        assert_eq!(report.to_string().matches(words).count(), all, "{report}");
    }
}

/// Nothing but a name.
struct OnlyAName;

#[async_trait]
impl CloudProvider for OnlyAName {
    fn name(&self) -> &'static str {
        "plain"
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_is_only_a_name_has_nothing_but_gaps() {
    let setup = SimulatedSetup::new("plain", |_, _| {
        Box::pin(async { Ok(Arc::new(OnlyAName) as Arc<dyn CloudProvider>) })
    });
    let report = run(&setup).await;
    assert_eq!(report.gaps().count(), names().count(), "{report}");
    let why = "declared by the provider: no routes".to_owned();
    assert_eq!(
        report.verdict("routes/deleted"),
        Some(&Verdict::Gap { why })
    );
}
