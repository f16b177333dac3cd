//! The documented metrics are those that are exposed.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Ready, ready};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use cloudkeel_api::{BudgetRecord, CallRecord, ErrorKind, Priority};
use cloudkeel_controllers::ipam::IpamObserver as _;
use cloudkeel_controllers::lifecycle::LifecycleObserver as _;
use cloudkeel_controllers::node::NodeObserver as _;
use cloudkeel_controllers::service::ServiceObserver as _;
use http::{Request, Response};
use jiff::Timestamp;
use tower_layer::Layer as _;
use tower_service::Service;

use super::*;

fn metrics() -> Metrics {
    Metrics::new(
        &BuildInfo::of_version("1.2.3"),
        Timestamp::from_millisecond(1_700_000_000_250).unwrap(),
    )
}

/// Gives every metric with labels one series.
fn touch_everything(metrics: &Metrics) {
    metrics.instance_checked("success");
    metrics.node_deleted("fsn");
    metrics.deletions_stopped("fsn", true);
    metrics.published("fsn", Duration::from_secs(1));
    metrics.drifted("fsn");
    metrics.left_over("fsn", 1);
    metrics.reloads.rejected("fsn");
    metrics.reloads.available("fsn", true);
    metrics.background.failed("fsn", "tagging");
    metrics.dry_run.set(std::iter::empty());
    metrics.routes.syncs.with(["noop", "periodic"]);
    let cidr = "10.0.0.0/16".parse().unwrap();
    metrics.has_blocks(cidr, 256);
    metrics.allocated(cidr, 1);
    metrics.released(cidr, 1);
    metrics.usage(cidr, 0, 256);
    metrics.tried(cidr, 2);
    metrics.running.set("cloud-node", true);
    metrics.queues.observer("Nodes");
    metrics.election.follow("lease", || ElectionState {
        leading: true,
        slow_paths: 1,
    });
    metrics
        .webhooks
        .answered("labels", 200, Duration::from_millis(1));
    let api_server = metrics.rest_client.of(&"https://api.test".parse().unwrap());
    api_server.count_retry(&http::Method::GET, http::StatusCode::TOO_MANY_REQUESTS);
    let observer = metrics.clouds.observer("fsn");
    observer.call_finished(&call("GET /servers", None));
    observer.call_delayed("GET /servers", Duration::from_millis(1500));
    observer.budget_seen(BudgetRecord {
        limit: 3600,
        remaining: 1200,
    });
}

fn call(operation: &str, error: Option<ErrorKind>) -> CallRecord<'_> {
    CallRecord {
        operation,
        mutating: false,
        priority: Priority::Normal,
        status: Some(200),
        error,
        duration: Duration::from_millis(20),
        attempt: 1,
    }
}

/// What a scraper sees: for every name its type and its labels (without `le`).
fn exposed(text: &str) -> BTreeMap<String, (String, BTreeSet<String>)> {
    let mut families = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(description) = line.strip_prefix("# TYPE ") {
            let (name, kind) = description.split_once(' ').unwrap();
            current = name.to_owned();
            families.insert(current.clone(), (kind.to_owned(), BTreeSet::new()));
        } else if !line.starts_with('#') {
            let name_end = line.find(['{', ' ']).unwrap();
            assert!(
                line[..name_end].starts_with(&current),
                "{line} under {current}"
            );
            let labels = &mut families.get_mut(&current).unwrap().1;
            labels.extend(label_names(line));
        }
    }
    families
}

fn label_names(sample: &str) -> Vec<String> {
    let Some((_, rest)) = sample.split_once('{') else {
        return Vec::new();
    };
    let (labels, _) = rest.rsplit_once('}').unwrap();
    labels
        .split("\",")
        .map(|label| label.split_once("=\"").unwrap().0.to_owned())
        .filter(|name| name != "le")
        .collect()
}

#[tokio::test]
async fn the_reference_lists_exactly_what_is_exposed() {
    let metrics = metrics();
    touch_everything(&metrics);
    request_through(&metrics, Some(200)).await;
    let seen = exposed(&metrics.expose(Format::Plain).unwrap());
    let documented: BTreeMap<_, _> = metrics
        .docs()
        .iter()
        .map(|doc| {
            let labels = doc.labels.iter().map(ToString::to_string).collect();
            (doc.name.to_owned(), (doc.kind.as_str().to_owned(), labels))
        })
        .collect();
    assert_eq!(seen, documented);
    assert_eq!(documented.len(), metrics.docs().len(), "names are distinct");
}

#[test]
fn our_own_names_begin_with_our_own_name_and_no_others_do() {
    for doc in metrics().docs() {
        let ours = doc.name.starts_with("cloudkeel_");
        assert_eq!(ours, doc.origin == Origin::Cloudkeel, "{}", doc.name);
        assert!(doc.help.ends_with('.'), "{}", doc.name);
        let counts = doc.name.ends_with("_total");
        assert_eq!(counts, doc.kind == MetricKind::Counter, "{}", doc.name);
    }
}

#[test]
fn upstream_histograms_have_upstream_buckets() {
    let metrics = metrics();
    metrics.queues.observer("service");
    let text = metrics.expose(Format::Plain).unwrap();
    let bounds = |metric: &str| -> Vec<String> {
        let bucket = format!("{metric}_bucket{{");
        text.lines()
            .filter(|line| line.starts_with(&bucket))
            .map(|line| {
                line.split_once("le=\"")
                    .unwrap()
                    .1
                    .split_once('"')
                    .unwrap()
                    .0
                    .to_owned()
            })
            .collect()
    };
    for (metric, expected) in [
        (
            "node_controller_initial_node_sync_delay_seconds",
            "1 4 16 64 256 1024 +Inf",
        ),
        (
            "node_controller_cloud_provider_taint_removal_delay_seconds",
            "1 4 16 64 256 1024 +Inf",
        ),
        (
            "cloud_node_lifecycle_controller_monitor_nodes_duration_seconds",
            "0.001 0.002 0.004 0.008 0.016 0.032 0.064 0.128 0.256 0.512 1.024 2.048 4.096 8.192 16.384 +Inf",
        ),
        (
            "service_controller_nodesync_latency_seconds",
            "1 2 4 8 16 32 64 128 256 512 1024 2048 4096 8192 16384 +Inf",
        ),
        (
            "workqueue_queue_duration_seconds",
            "1e-08 1e-07 1e-06 9.999999999999999e-06 9.999999999999999e-05 0.001 0.01 0.1 1 10 +Inf",
        ),
    ] {
        assert_eq!(bounds(metric).join(" "), expected, "{metric}");
    }
}

fn assert_lines(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(
            text.lines().any(|seen| seen == *line),
            "{line} not in\n{text}"
        );
    }
}

#[test]
fn load_balancers_are_counted_and_measured() {
    let metrics = metrics();
    metrics.hosts_updated(Duration::from_secs(3), false);
    metrics.hosts_updated(Duration::from_secs(5), true);
    metrics.nodes_followed(Duration::from_secs(9));
    metrics.published("fsn", Duration::from_secs(40));
    metrics.drifted("fsn");
    metrics.left_over("fsn", 2);
    assert_lines(
        &metrics.expose(Format::Plain).unwrap(),
        &[
            "service_controller_loadbalancer_sync_total 2",
            "service_controller_nodesync_error_total 1",
            "service_controller_update_loadbalancer_host_latency_seconds_sum 8.0",
            "service_controller_nodesync_latency_seconds_sum 9.0",
            r#"cloudkeel_load_balancer_publish_seconds_sum{cloud="fsn"} 40.0"#,
            r#"cloudkeel_load_balancer_drift_total{cloud="fsn"} 1"#,
            r#"cloudkeel_load_balancer_left_over{cloud="fsn"} 2.0"#,
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn a_queue_tells_what_waits_what_is_worked_on_and_what_hangs() {
    let metrics = metrics();
    let queue = metrics.queues.observer("Nodes");
    queue.added(1);
    queue.added(2);
    queue.taken(Duration::from_millis(50), 1);
    tokio::time::advance(Duration::from_secs(3)).await;
    queue.taken(Duration::from_secs(3), 0);
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_lines(
        &metrics.expose(Format::Plain).unwrap(),
        &[
            r#"workqueue_depth{name="Nodes"} 0.0"#,
            r#"workqueue_adds_total{name="Nodes"} 2"#,
            r#"workqueue_queue_duration_seconds_count{name="Nodes"} 2"#,
            r#"workqueue_unfinished_work_seconds{name="Nodes"} 7.0"#,
            r#"workqueue_longest_running_processor_seconds{name="Nodes"} 5.0"#,
        ],
    );
    queue.finished(Duration::from_secs(5));
    queue.retried();
    assert_lines(
        &metrics.expose(Format::Plain).unwrap(),
        &[
            r#"workqueue_work_duration_seconds_sum{name="Nodes"} 5.0"#,
            r#"workqueue_unfinished_work_seconds{name="Nodes"} 2.0"#,
            r#"workqueue_longest_running_processor_seconds{name="Nodes"} 2.0"#,
            r#"workqueue_retries_total{name="Nodes"} 1"#,
        ],
    );
}

#[test]
fn an_election_is_asked_at_every_scrape() {
    let metrics = metrics();
    let slow_paths = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&slow_paths);
    metrics.election.follow("ccm", move || ElectionState {
        leading: count.load(Ordering::Relaxed) < 3,
        slow_paths: count.load(Ordering::Relaxed),
    });
    for (total, leading) in [(0, "1.0"), (2, "1.0"), (2, "1.0"), (3, "0.0")] {
        slow_paths.store(total, Ordering::Relaxed);
        assert_lines(
            &metrics.expose(Format::Plain).unwrap(),
            &[
                &format!(r#"leader_election_master_status{{name="ccm"}} {leading}"#),
                &format!(r#"leader_election_slowpath_total{{name="ccm"}} {total}"#),
            ],
        );
    }
}

#[test]
fn what_the_node_controllers_report_is_counted() {
    let metrics = metrics();
    metrics.initialized(Duration::from_secs(3));
    metrics.instance_checked("instance_not_found");
    metrics.node_deleted("fsn");
    metrics.deletions_stopped("fsn", true);
    metrics.deletions_stopped("dc1", true);
    metrics.deletions_stopped("dc1", false);
    assert_lines(
        &metrics.expose(Format::Plain).unwrap(),
        &[
            "node_controller_cloud_provider_taint_removal_delay_seconds_sum 3.0",
            "node_controller_initial_node_sync_delay_seconds_sum 3.0",
            r#"cloud_node_lifecycle_controller_cloud_provider_calls_total{operation="instance_exists",result="instance_not_found"} 1"#,
            r#"cloudkeel_node_deletions_total{cloud="fsn"} 1"#,
            r#"cloudkeel_node_deletions_stopped{cloud="fsn"} 1.0"#,
            r#"cloudkeel_node_deletions_stopped{cloud="dc1"} 0.0"#,
        ],
    );
}

#[test]
fn a_cloud_call_counts_by_result_and_its_delay_in_seconds() {
    let metrics = metrics();
    let observer = metrics.clouds.observer("fsn");
    observer.call_finished(&call("GET /servers", None));
    observer.call_finished(&call("GET /servers", Some(ErrorKind::Denied)));
    observer.call_delayed("GET /servers", Duration::from_millis(1500));
    observer.call_delayed("GET /servers", Duration::from_millis(500));
    observer.budget_seen(BudgetRecord {
        limit: 3600,
        remaining: 1200,
    });
    let text = metrics.expose(Format::Plain).unwrap();
    for line in [
        r#"cloudkeel_cloud_calls_total{cloud="fsn",operation="GET /servers",priority="normal",result="success"} 1"#,
        r#"cloudkeel_cloud_calls_total{cloud="fsn",operation="GET /servers",priority="normal",result="denied"} 1"#,
        r#"cloudkeel_cloud_call_duration_seconds_count{cloud="fsn",operation="GET /servers"} 2"#,
        r#"cloudkeel_cloud_throttled_seconds_total{cloud="fsn"} 2.0"#,
        r#"cloudkeel_cloud_budget_remaining{cloud="fsn"} 1200.0"#,
        r#"cloudkeel_cloud_budget_limit{cloud="fsn"} 3600.0"#,
    ] {
        assert!(
            text.lines().any(|seen| seen == line),
            "{line} not in\n{text}"
        );
    }
}

#[test]
fn a_cloud_that_reports_ids_as_operations_cannot_grow_without_bound() {
    let metrics = metrics();
    let observer = metrics.clouds.observer("fsn");
    for id in 0..1000 {
        observer.call_finished(&call(&format!("GET /servers/{id}"), None));
    }
    let text = metrics.expose(Format::Plain).unwrap();
    let series: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("cloudkeel_cloud_calls_total{"))
        .collect();
    assert_eq!(series.len(), 201);
    let rest = r#"operation="other",priority="normal",result="success"} 800"#;
    assert!(series.iter().any(|line| line.ends_with(rest)), "{series:?}");
}

#[test]
fn the_build_and_the_start_are_exposed() {
    let text = metrics().expose(Format::Plain).unwrap();
    assert!(
        text.contains("process_start_time_seconds 1700000000.25\n"),
        "{text}"
    );
    assert!(text.contains(r#"kubernetes_build_info{major="1",minor="2",git_version="v1.2.3","#));
}

/// A client that always answers the same.
#[derive(Clone)]
struct Canned(Option<u16>);

impl Service<Request<()>> for Canned {
    type Response = Response<()>;
    type Error = &'static str;
    type Future = Ready<Result<Response<()>, &'static str>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        ready(match self.0 {
            Some(status) => Ok(Response::builder().status(status).body(()).unwrap()),
            None => Err("connection refused"),
        })
    }
}

async fn request_through(metrics: &Metrics, answer: Option<u16>) {
    let cluster = "https://10.0.0.1:6443/".parse().unwrap();
    let mut client = metrics.rest_client.of(&cluster).layer(Canned(answer));
    let request = Request::get("/api").body(()).unwrap();
    assert_eq!(client.call(request).await.is_ok(), answer.is_some());
}

#[tokio::test]
async fn requests_to_the_api_count_by_code_method_and_host() {
    let metrics = metrics();
    for answer in [Some(200), Some(200), Some(403), None] {
        request_through(&metrics, answer).await;
    }
    let text = metrics.expose(Format::Plain).unwrap();
    for (code, count) in [("200", 2), ("403", 1), ("<error>", 1)] {
        let line = format!(
            r#"rest_client_requests_total{{code="{code}",method="GET",host="10.0.0.1:6443"}} {count}"#
        );
        assert!(
            text.lines().any(|seen| seen == line),
            "{line} not in\n{text}"
        );
    }
    let durations =
        r#"rest_client_request_duration_seconds_count{verb="GET",host="10.0.0.1:6443"} 4"#;
    assert!(text.lines().any(|seen| seen == durations), "{text}");
}

#[test]
fn the_reference_page_is_a_table_with_a_row_per_metric() {
    let docs = metrics().docs().to_vec();
    let table = metrics_table(&docs);
    assert_eq!(table.lines().count(), docs.len() + 2);
    let row = "| `workqueue_depth` | gauge | `name` | yes | Items that wait in the queue. |";
    assert!(table.lines().any(|line| line == row), "{table}");
}

#[test]
fn what_was_spent_on_a_cloud_is_known_by_its_name() {
    let metrics = metrics();
    let observer = metrics.clouds.observer("fsn");
    observer.call_finished(&call("GET /servers", None));
    let change = CallRecord {
        mutating: true,
        ..call("POST /servers", Some(ErrorKind::Conflict))
    };
    observer.call_finished(&change);
    let budget = BudgetRecord {
        limit: 3600,
        remaining: 3598,
    };
    observer.budget_seen(budget);
    let expected = Spent {
        calls: 2,
        changes: 1,
        budget: Some(budget),
    };
    assert_eq!(metrics.clouds.spent("fsn"), expected);
    assert_eq!(metrics.clouds.spent("nbg"), Spent::default());
}
