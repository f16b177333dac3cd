//! Gaps: declared, printed, and never stale.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::CloudProvider;
use cloudkeel_testkit::conformance::{
    Connecting, SimulatedAdapter, Verdict, mandatory, names, run, run_some,
};
use cloudkeel_testkit::simulated_cloud::SimulatedCloud;

fn local(cloud: SimulatedCloud, context: cloudkeel_api::ProviderContext) -> Connecting {
    Box::pin(async move {
        let provider = cloud.provider(&context).await?;
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
        let groups = [
            "instances",
            "credentials",
            "load-balancers",
            "routes",
            "volumes",
            "webhooks",
            "background",
        ];
        assert!(group.is_some_and(|group| groups.contains(&group)), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_declared_gap_that_works_is_a_failure() {
    let gaps = &["load-balancers/udp: not built yet"];
    let adapter = SimulatedAdapter::new("local", local).with_gaps(gaps);
    let report = run_some(&adapter, |name| name == "load-balancers/udp").await;
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
    let gaps = &["load-balancers/sctp: not built yet"];
    let adapter = SimulatedAdapter::new("local", local).with_gaps(gaps);
    let report = run_some(&adapter, |name| name == "load-balancers/sctp").await;
    let why = "not built yet".to_owned();
    assert_eq!(
        report.verdict("load-balancers/sctp"),
        Some(&Verdict::Gap { why })
    );
    assert!(report.is_clean());
}

#[tokio::test(start_paused = true)]
async fn a_gap_that_names_no_check_or_no_reason_is_a_failure() {
    for (gap, name, expected) in [
        (
            "load-balancers/no-such-thing: renamed meanwhile",
            "load-balancers/no-such-thing",
            "there is no check of this name",
        ),
        (
            "load-balancers/sctp",
            "load-balancers/sctp",
            "it is declared without a reason",
        ),
    ] {
        let adapter = SimulatedAdapter::new("local", local).with_gaps(&[gap]);
        let report = run_some(&adapter, |_| false).await;
        let why = expected.to_owned();
        assert_eq!(
            report.verdict(name),
            Some(&Verdict::Failed { why }),
            "{gap}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_panics_or_hangs_before_it_is_there_fails_and_stops_no_other_check() {
    let panics = SimulatedAdapter::new("panics", |_, _| Box::pin(async { panic!("a bug") }));
    let hangs = SimulatedAdapter::new("hangs", |_, _| Box::pin(std::future::pending()));
    for (adapter, words) in [(panics, "panicked: a bug"), (hangs, "it hung")] {
        let report = run_some(&adapter, |name| name.starts_with("routes/")).await;
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
async fn a_provider_that_is_only_a_name_fails_what_is_mandatory_and_what_is_not_declared() {
    let connect = |_, _| -> Connecting {
        Box::pin(async { Ok(Arc::new(OnlyAName) as Arc<dyn CloudProvider>) })
    };
    let gaps = &["routes/*: it has no routes\nvolumes/*: it has no disks"];
    let adapter = SimulatedAdapter::new("plain", connect).with_gaps(gaps);
    let report = run(&adapter).await;
    for name in mandatory() {
        let verdict = report.verdict(name).unwrap();
        assert!(
            matches!(verdict, Verdict::Failed { .. }),
            "{name}: {verdict:?}"
        );
    }
    let why = "it has no routes".to_owned();
    assert_eq!(
        report.verdict("routes/deleted"),
        Some(&Verdict::Gap { why })
    );
    let why = "the adapter declares no gap, but the provider has no webhooks".to_owned();
    let undeclared = report.verdict("webhooks/survive-any-object");
    assert_eq!(undeclared, Some(&Verdict::Failed { why }));
}

#[tokio::test(start_paused = true)]
async fn a_mandatory_check_cannot_be_declared_as_a_gap() {
    for (gaps, name) in [
        ("instances/found-by-id: no", "instances/found-by-id"),
        ("instances/*: no", "instances/gone-with-proof"),
    ] {
        let adapter = SimulatedAdapter::new("local", local).with_gaps(&[gaps]);
        let report = run_some(&adapter, |check| check == name).await;
        let Some(Verdict::Failed { why }) = report.verdict(name) else {
            panic!("{report}");
        };
        assert!(why.contains("it is mandatory"), "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_that_cannot_be_played_fails_unless_it_is_declared() {
    const NAME: &str = "load-balancers/shared-serves-both";
    let adapter = SimulatedAdapter::new("local", local);
    let report = run_some(&adapter, |check| check == NAME).await;
    let why = "the adapter declares no gap, but Services do not share balancers".to_owned();
    assert_eq!(report.verdict(NAME), Some(&Verdict::Failed { why }));
    let gaps = &["load-balancers/shared-serves-both: one balancer per Service"];
    let report = run_some(&adapter.with_gaps(gaps), |check| check == NAME).await;
    let why = "one balancer per Service".to_owned();
    assert_eq!(report.verdict(NAME), Some(&Verdict::Gap { why }));
}
