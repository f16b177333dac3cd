//! `cloudkeel plan` and `--dry-run`, with an account and a credential that can only read.

use cloudkeel_testkit::cluster::eventually;

use cloudkeel_testkit::simulated_cloud::{Fault, Operation};
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::Value;

use crate::harness::DEADLINE;
use crate::plan_fixture::{PlanWorld, steps};
use crate::serving::{free_port, get};

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
    assert_eq!(
        plan["problems"].as_array().map(Vec::len),
        Some(0),
        "{plan:#}"
    );
    assert_eq!(plans.versions().await, before, "nothing was written");
    let calls = plans.world.cloud.calls();
    assert_eq!(calls.mutations(), 0);
    assert_eq!(
        plan["clouds"][0]["made"].as_u64(),
        Some(calls.reads()),
        "{plan:#}"
    );
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
        if steps.is_empty() {
            Ok(true)
        } else {
            Err(format!("{steps:#?}"))
        }
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

#[tokio::test]
async fn what_can_be_planned_is_shown_although_a_cloud_refuses_some_reads() {
    let plans = PlanWorld::new().await;
    plans.with_work().await;
    let faults = plans.world.cloud.faults();
    faults.always(Operation::ListRoutes, Fault::status(403));
    let output = plans.plan(&["--exit-code"]).await;
    let [printed, errors] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("routes cannot be read"), "{errors}");
    assert!(printed.contains("+ Service default/web"), "{printed}");
    assert!(printed.contains("The plan is incomplete."), "{printed}");
}

/// The value of a gauge.
fn gauge(metrics: &str, controller: &str, action: &str) -> Option<f64> {
    let mut lines = metrics.lines();
    let line = lines.find(|line| {
        line.starts_with("cloudkeel_dry_run_steps{")
            && line.contains(&format!("controller=\"{controller}\""))
            && line.contains(&format!("action=\"{action}\""))
    })?;
    line.rsplit_once(' ')?.1.parse().ok()
}

#[tokio::test]
async fn a_dry_run_beside_the_manager_serves_its_steps_and_writes_nothing_not_even_a_lease() {
    let plans = PlanWorld::new().await;
    plans.with_work().await;
    let before = plans.versions().await;
    plans.world.cloud.reset_calls();
    let port = free_port();
    let manager = plans.dry_run(&[
        &format!("--secure-port={port}"),
        "--authorization-always-allow-paths=/status,/metrics",
        // Its role allows neither reviews nor the CA of clients.
        "--authentication-skip-lookup",
    ]);
    let status =
        || get(port, "/status").and_then(|(_, body)| serde_json::from_str::<Value>(&body).ok());
    let shows = |step: &'static str| {
        move |status: &Value| {
            steps(&status["dryRun"])
                .iter()
                .any(|it| it.starts_with(step))
        }
    };
    let created = shows("+ Service default/web: create");
    let deleted = shows("- Node gone: delete Node gone, its instance is gone");
    let seen = eventually("the steps in /status", DEADLINE, || async {
        let status = status().ok_or("no answer")?;
        let has_routes = steps(&status["dryRun"])
            .iter()
            .any(|step| step.starts_with("+ route"));
        if created(&status) && deleted(&status) && has_routes {
            Ok(Some(status))
        } else {
            Err(format!("{:#}", status["dryRun"]))
        }
    })
    .await;
    assert!(seen["leader"]["lease"].is_null(), "{seen:#}");
    let (_, metrics) = get(port, "/metrics").expect("an answer");
    assert_eq!(
        gauge(&metrics, "service-lb-controller", "create"),
        Some(1.0),
        "{metrics}"
    );
    assert_eq!(
        gauge(&metrics, "cloud-node-lifecycle-controller", "delete"),
        Some(1.0)
    );
    assert!(
        manager.log().contains("dry run found a step"),
        "{}",
        manager.log()
    );
    assert_eq!(plans.versions().await, before, "nothing was written");
    assert_eq!(plans.world.cloud.calls().mutations(), 0);

    let services: Api<Service> = Api::namespaced(plans.world.client.clone(), "default");
    let removed = services.delete("web", &DeleteParams::default()).await;
    removed.expect("the service is deleted");
    eventually("its steps are gone", DEADLINE, || async {
        let status = status().ok_or("no answer")?;
        if created(&status) {
            Err(format!("{:#}", status["dryRun"]))
        } else {
            Ok(true)
        }
    })
    .await;
}
