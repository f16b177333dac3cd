use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

fn health() -> Health {
    Health::new(Timestamp::UNIX_EPOCH)
}

fn excluding(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn without_checks_every_endpoint_passes() {
    let health = health();
    for endpoint in Endpoint::ALL {
        let report = health.examine(endpoint, &[]);
        assert!(report.passed());
        assert_eq!(report.body(false), "ok");
        let name = endpoint.as_str();
        assert_eq!(
            report.body(true),
            format!("[+]ping ok\n{name} check passed\n")
        );
    }
}

#[test]
fn a_check_counts_for_the_endpoints_of_its_scope() {
    use Endpoint::{Healthz, Livez, Readyz};
    for (scope, endpoint, passes) in [
        (Scope::Everywhere, Healthz, false),
        (Scope::Everywhere, Livez, false),
        (Scope::Everywhere, Readyz, false),
        (Scope::Liveness, Healthz, false),
        (Scope::Liveness, Livez, false),
        (Scope::Liveness, Readyz, true),
        (Scope::Readiness, Healthz, true),
        (Scope::Readiness, Livez, true),
        (Scope::Readiness, Readyz, false),
    ] {
        let health = health();
        health.register("check", scope, || Err("broken".to_owned()));
        let passed = health.examine(endpoint, &[]).passed();
        assert_eq!(passed, passes, "{scope:?} at {endpoint:?}");
    }
}

#[test]
fn a_failure_is_listed_check_by_check_in_order_without_its_reason() {
    let health = health();
    health.register("leaderElection", Scope::Liveness, || Ok(()));
    health.register("service-lb-controller", Scope::Liveness, || {
        Err("the token hunter2 expired".to_owned())
    });
    let report = health.examine(Endpoint::Healthz, &[]);
    for verbose in [false, true] {
        assert_eq!(
            report.body(verbose),
            "[+]leaderElection ok\n\
             [-]service-lb-controller failed: reason withheld\n\
             healthz check failed\n"
        );
    }
    let why = health.examine_named(Endpoint::Healthz, "service-lb-controller");
    assert_eq!(why, Some(Err("the token hunter2 expired".to_owned())));
}

#[test]
fn excluded_checks_do_not_count_and_unknown_ones_are_warned_about() {
    let health = health();
    health.register("a", Scope::Everywhere, || Err("broken".to_owned()));
    health.register("b", Scope::Everywhere, || Ok(()));
    let report = health.examine(Endpoint::Livez, &excluding(&["a", "z", "y", "z"]));
    assert!(report.passed());
    assert_eq!(report.body(false), "ok");
    assert_eq!(
        report.body(true),
        "[+]a excluded: ok\n\
         [+]b ok\n\
         warn: some health checks cannot be excluded: no matches for \"y\",\"z\"\n\
         livez check passed\n"
    );
}

#[test]
fn a_check_of_the_same_name_replaces_the_former() {
    let health = health();
    health.register("a", Scope::Everywhere, || Err("broken".to_owned()));
    health.register("a", Scope::Everywhere, || Ok(()));
    let healthy = "[+]a ok\nhealthz check passed\n";
    assert_eq!(health.examine(Endpoint::Healthz, &[]).body(true), healthy);
}

#[test]
fn a_named_check_is_only_found_where_it_counts() {
    let health = health();
    health.register("caches", Scope::Readiness, || Ok(()));
    assert_eq!(
        health.examine_named(Endpoint::Readyz, "caches"),
        Some(Ok(()))
    );
    assert_eq!(health.examine_named(Endpoint::Livez, "caches"), None);
    assert_eq!(health.examine_named(Endpoint::Livez, "ping"), Some(Ok(())));
}

#[test]
fn examinations_are_counted_and_can_be_forgotten() {
    let health = health();
    let broken = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&broken);
    health.register("a", Scope::Liveness, move || {
        if seen.load(Ordering::Relaxed) {
            Err("broken".to_owned())
        } else {
            Ok(())
        }
    });
    health.examine(Endpoint::Healthz, &[]);
    health.examine(Endpoint::Healthz, &[]);
    broken.store(true, Ordering::Relaxed);
    health.examine(Endpoint::Healthz, &[]);
    health.examine(Endpoint::Healthz, &excluding(&["a"]));
    health.examine_named(Endpoint::Healthz, "a");
    let text = health.expose_slis(Format::Plain).unwrap();
    for line in [
        r#"kubernetes_healthcheck{name="a",type="healthz"} 0.0"#,
        r#"kubernetes_healthchecks_total{name="a",type="healthz",status="success"} 2"#,
        r#"kubernetes_healthchecks_total{name="a",type="healthz",status="error"} 1"#,
        "process_start_time_seconds 0.0",
    ] {
        assert!(
            text.lines().any(|seen| seen == line),
            "{line} not in\n{text}"
        );
    }
    health.reset_slis();
    let text = health.expose_slis(Format::Plain).unwrap();
    assert!(!text.contains("kubernetes_healthchecks_total{"), "{text}");
}
