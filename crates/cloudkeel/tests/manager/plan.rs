//! `cloudkeel plan` and `--dry-run`, with an account and a credential that can only read.

use cloudkeel_testkit::cluster::eventually;

use crate::harness::DEADLINE;
use crate::plan_fixture::{PlanWorld, steps};

#[tokio::test]
async fn a_plan_shows_what_would_be_done_and_changes_nothing() {
    let plans = PlanWorld::new().await;
    plans.with_work().await;
    let before = plans.versions().await;
    plans.world.cloud.reset_calls();

    let plan = plans.planned(&["--exit-code"], 2).await;

    let steps = steps(&plan);
    let web = "Service default/web";
    for expected in [
        "~ Node new: set provider ID local://",
        "~ Node new: set addresses Hostname new, InternalIP",
        "~ Node stays: set addresses Hostname stays, InternalIP",
        "- Node gone: delete Node gone, its instance is gone, after 2 more confirmations",
        &format!("~ {web}: add finalizer service.kubernetes.io/load-balancer-cleanup"),
        &format!("+ {web}: create"),
        "+ route 10.244.1.0/24: create route 10.244.1.0/24 to stays",
    ] {
        let found = steps.iter().any(|step| step.starts_with(expected));
        assert!(found, "{expected:?} in {plan:#}");
    }
    assert_eq!(plan["complete"], true, "{plan:#}");
    assert_eq!(plan["problems"].as_array().map(Vec::len), Some(0), "{plan:#}");
    assert_eq!(plans.versions().await, before, "nothing was written");
    let calls = plans.world.cloud.calls();
    assert_eq!(calls.mutations(), 0);
    assert_eq!(plan["clouds"][0]["made"].as_u64(), Some(calls.reads()), "{plan:#}");
    assert!(plans.world.cloud.balancers().is_empty());
    assert!(plans.routes().is_empty());

    let text = plans.plan(&[]).await;
    let printed = String::from_utf8_lossy(&text.stdout);
    assert_eq!(text.status.code(), Some(0), "without --exit-code");
    assert!(printed.contains("To do: "), "{printed}");
    assert!(!printed.contains('\u{1b}'), "plain when piped: {printed:?}");
}

#[tokio::test]
async fn a_plan_is_empty_where_all_is_as_it_should_be() {
    let plans = PlanWorld::new().await;
    plans.joined("one", "10.244.1.0/24").await;
    let made = plans.service("web").create(&plans.world.client).await;
    made.expect("the service is made");
    plans.world.write_config(crate::harness::TOKEN);
    let mut manager = plans.world.start(&[crate::plan_fixture::CLUSTER_CIDR]);
    eventually("the manager has done its work", DEADLINE, || async {
        let plan = plans.planned(&[], 0).await;
        let steps = steps(&plan);
        if steps.is_empty() { Ok(true) } else { Err(format!("{steps:#?}")) }
    })
    .await;
    manager.signal("TERM");
    manager.ended().await;
    let plan = plans.planned(&["--exit-code"], 0).await;
    assert_eq!(plan["complete"], true, "{plan:#}");
}

#[tokio::test]
async fn a_cloud_that_does_not_answer_makes_the_plan_incomplete() {
    let plans = PlanWorld::new().await;
    plans.with_work().await;
    plans.world.write_config("unknown-token");
    let output = plans.plan(&["--timeout=20s"]).await;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("error: "), "{errors}");
}
