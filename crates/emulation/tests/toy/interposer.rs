//! The interposer in front of software that knows nothing of it, in process.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::{get, post};
use bytes::Bytes;
use cloudkeel_emulation::interposer::{Classifier, InterposedTransport, Interposer, Rule};
use cloudkeel_emulation::{
    CallOutcome, CommonFault, FaultInjector as _, FaultMatch, FaultTiming, InProcess, ListShape,
};
use cloudkeel_http::{Transport, TransportError};
use http::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use tokio::time::Instant;

pub(crate) const CLASSIFIER: Classifier = Classifier {
    rules: &[
        Rule::Path {
            method: "GET",
            path: "/disks",
            operation: "list-disks",
            mutating: false,
        },
        Rule::Path {
            method: "POST",
            path: "/disks",
            operation: "create-disk",
            mutating: true,
        },
        Rule::Param {
            param: "Action",
            reads: &["Describe"],
        },
        Rule::Soap {
            reads: &["Retrieve"],
        },
    ],
    page_param: Some("page"),
};

pub(crate) const SHAPE: ListShape = ListShape::Json {
    is_list: "/total",
    next: &["/next"],
    totals: &["/total"],
    last_page: &[],
};

pub(crate) type Disks = Arc<Mutex<Vec<String>>>;

/// A server with disks.
pub(crate) fn app(disks: &Disks) -> Router {
    let list = async |State(disks): State<Disks>| {
        let disks = disks.lock().unwrap().clone();
        let list = json!({"disks": disks, "total": disks.len(), "next": "/disks?page=2"});
        axum::Json(list)
    };
    let create = async |State(disks): State<Disks>, name: String| {
        disks.lock().unwrap().push(name);
        StatusCode::CREATED
    };
    Router::new()
        .route("/disks", get(list).post(create))
        .route("/query", post(async || "<ok/>"))
        .with_state(Arc::clone(disks))
}

struct Lab {
    disks: Disks,
    interposer: Interposer,
    transport: InterposedTransport,
}

impl Lab {
    fn new() -> Self {
        let disks = Disks::default();
        let interposer = Interposer::new(CLASSIFIER).with_list_shape(SHAPE);
        let inner = InProcess::new(app(&disks));
        let transport = interposer.transport(Arc::new(inner));
        Self {
            disks,
            interposer,
            transport,
        }
    }

    async fn list(&self) -> Result<Response<Bytes>, TransportError> {
        send(&self.transport, Method::GET, "http://app/disks", "").await
    }

    async fn create(&self, name: &str) -> Result<Response<Bytes>, TransportError> {
        send(&self.transport, Method::POST, "http://app/disks", name).await
    }
}

pub(crate) async fn send(
    transport: &dyn Transport,
    method: Method,
    uri: &str,
    body: &str,
) -> Result<Response<Bytes>, TransportError> {
    let request = Request::builder().method(method).uri(uri);
    let request = request.header("authorization", "Bearer t");
    let body = Bytes::copy_from_slice(body.as_bytes());
    transport.send(request.body(body).unwrap()).await
}

pub(crate) fn body_of(answer: &Response<Bytes>) -> Value {
    serde_json::from_slice(answer.body()).unwrap_or(Value::Null)
}

#[tokio::test(start_paused = true)]
async fn calls_are_counted_by_operation_and_logged() {
    let lab = Lab::new();
    lab.create("a").await.unwrap();
    lab.list().await.unwrap();
    for (uri, body) in [
        ("http://app/query?Action=DescribeDisks", ""),
        ("http://app/query?Action=DropDisk", ""),
        ("http://app/query", "<E><Body><RetrieveContent/></Body></E>"),
        ("http://app/query", "<E><Body><PowerOff/></Body></E>"),
        ("http://app/other/12345678", ""),
    ] {
        let sent = send(&lab.transport, Method::POST, uri, body).await;
        sent.unwrap();
    }
    let counts = lab.interposer.calls();
    let counts: Vec<_> = counts
        .iter()
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    assert_eq!(
        counts,
        [
            "DescribeDisks 1",
            "DropDisk 1",
            "POST /other/{id} 1",
            "PowerOff 1",
            "RetrieveContent 1",
            "create-disk 1",
            "list-disks 1",
        ]
    );
    assert_eq!(lab.interposer.calls_of("DropDisk"), 1);
    let totals = lab.interposer.call_totals();
    assert_eq!((totals.total, totals.mutating), (7, 4));
    let log = lab.interposer.call_log();
    assert_eq!(
        (log[0].token.as_str(), log[0].outcome),
        ("t", CallOutcome::Status(201))
    );
    assert_eq!(log[6].resource.as_deref(), Some("12345678"));
    assert_eq!(log[6].outcome, CallOutcome::Status(404));
    lab.interposer.reset_calls();
    assert_eq!(lab.interposer.call_totals().total, 0);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_played_before_the_cloud_is_asked() {
    let lab = Lab::new();
    let body = Some("<Error>AuthFailure</Error>".to_owned());
    for (fault, status, retry_after, text) in [
        (CommonFault::status(401), 401, None, "by script"),
        (CommonFault::status(500), 500, None, "by script"),
        (CommonFault::throttled(7), 429, Some("7"), "by script"),
        (
            CommonFault::Status {
                status: 403,
                body,
                retry_after_seconds: None,
            },
            403,
            None,
            "<Error>AuthFailure</Error>",
        ),
    ] {
        lab.interposer
            .once(FaultMatch::operation("create-disk"), fault.clone());
        let answer = lab.create("a").await.unwrap();
        assert_eq!(answer.status(), status, "{fault:?}");
        let header = answer.headers().get("retry-after");
        assert_eq!(
            header.map(|value| value.to_str().unwrap()),
            retry_after,
            "{fault:?}"
        );
        let said = String::from_utf8_lossy(answer.body());
        assert!(said.contains(text), "{fault:?}: {said}");
    }
    assert!(lab.disks.lock().unwrap().is_empty(), "nothing happened");
    assert_eq!(
        lab.create("a").await.unwrap().status(),
        201,
        "the script is used up"
    );
    assert_eq!(
        lab.interposer.calls_of("create-disk"),
        5,
        "refused calls count"
    );
}

#[tokio::test(start_paused = true)]
async fn errors_are_worded_as_the_cloud_words_them() {
    let interposer = Interposer::new(CLASSIFIER).with_errors(|status| {
        // This cloud calls a rejected credential forbidden.
        let status = if status == 401 {
            StatusCode::FORBIDDEN
        } else {
            status
        };
        let error = json!({"Code": "AuthFailure"});
        cloudkeel_emulation::Answer::xml(status, "Error", &error)
    });
    let transport = interposer.transport(Arc::new(InProcess::new(app(&Disks::default()))));
    interposer.always(FaultMatch::any(), CommonFault::status(401));
    let answer = send(&transport, Method::GET, "http://app/disks", "")
        .await
        .unwrap();
    assert_eq!(answer.status(), 403);
    assert!(
        answer
            .body()
            .ends_with(b"<Error><Code>AuthFailure</Code></Error>")
    );
    interposer.clear_faults();
    let answer = send(&transport, Method::GET, "http://app/disks", "")
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_connection_breaks_before_or_after_it_happened_or_there_is_no_answer() {
    let lab = Lab::new();
    for (fault, outcome, disks) in [
        (CommonFault::BrokenBefore, CallOutcome::BrokenBefore, 0),
        (CommonFault::BrokenAfter, CallOutcome::BrokenAfter, 1),
        (CommonFault::NoAnswer, CallOutcome::Unanswered, 1),
    ] {
        lab.interposer
            .once(FaultMatch::any().mutating(), fault.clone());
        let hour = Duration::from_hours(1);
        let answer = tokio::time::timeout(hour, lab.create("a")).await;
        assert!(!matches!(answer, Ok(Ok(_))), "{fault:?}");
        assert_eq!(lab.interposer.call_log().last().unwrap().outcome, outcome);
        assert_eq!(lab.disks.lock().unwrap().len(), disks, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_and_lists_are_corrupted_on_their_way() {
    let lab = Lab::new();
    for name in ["a", "b"] {
        lab.create(name).await.unwrap();
    }
    let next = json!("/disks?page=2");
    for (fault, disks, total, next) in [
        (
            CommonFault::TruncatedPage,
            json!(["a"]),
            json!(2),
            next.clone(),
        ),
        (
            CommonFault::LostNextPage,
            json!(["a", "b"]),
            json!(2),
            Value::Null,
        ),
        (CommonFault::EmptyList, json!([]), json!(0), Value::Null),
        (
            CommonFault::MalformedJson,
            Value::Null,
            Value::Null,
            Value::Null,
        ),
        (
            CommonFault::EmptyBody,
            Value::Null,
            Value::Null,
            Value::Null,
        ),
        (CommonFault::Html, Value::Null, Value::Null, Value::Null),
    ] {
        lab.interposer.once(FaultMatch::any(), fault.clone());
        let answer = lab.list().await.unwrap();
        let list = body_of(&answer);
        let seen = (&list["disks"], &list["total"], &list["next"]);
        assert_eq!(seen, (&disks, &total, &next), "{fault:?}");
        assert_eq!(answer.status(), 200, "{fault:?}");
    }
    let page = FaultMatch::any().for_page(2);
    lab.interposer.once(page, CommonFault::EmptyList);
    assert_eq!(
        body_of(&lab.list().await.unwrap())["total"],
        2,
        "another page"
    );
    let second = send(&lab.transport, Method::GET, "http://app/disks?page=2", "").await;
    assert_eq!(body_of(&second.unwrap())["total"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_stale_read_is_an_earlier_answer_and_a_slow_one_takes_longer() {
    let lab = Lab::new();
    let minute = Duration::from_mins(1);
    for name in ["a", "b", "c"] {
        lab.create(name).await.unwrap();
        lab.list().await.unwrap();
        tokio::time::advance(minute).await;
    }
    for (case, by, total) in [
        ("the newest that is old enough", minute, 3),
        ("an older one", minute * 2, 2),
        ("no older than the first", minute * 60, 1),
    ] {
        lab.interposer
            .once(FaultMatch::any(), CommonFault::Stale { by });
        assert_eq!(
            body_of(&lab.list().await.unwrap())["total"],
            total,
            "{case}"
        );
    }
    assert_eq!(
        body_of(&lab.list().await.unwrap())["total"],
        3,
        "it is over"
    );
    lab.interposer
        .once(FaultMatch::any(), CommonFault::Stale { by: minute });
    assert_eq!(
        lab.create("d").await.unwrap().status(),
        201,
        "a change is never stale"
    );
    lab.interposer
        .once(FaultMatch::any(), CommonFault::Slow { by: minute });
    let began = Instant::now();
    lab.list().await.unwrap();
    assert!(began.elapsed() >= minute, "on the paused clock");
}

#[tokio::test(start_paused = true)]
async fn the_kit_injects_faults_as_into_an_emulated_cloud() {
    let lab = Lab::new();
    let injected = lab
        .interposer
        .inject(FaultTiming::Mutation(2), CommonFault::status(500));
    assert!(injected);
    let mut seen = Vec::new();
    for _ in 0..3 {
        assert_eq!(lab.list().await.unwrap().status(), 200);
        seen.push(lab.create("a").await.unwrap().status().as_u16());
    }
    assert_eq!(seen, [201, 500, 201]);
    let project = "other".to_owned();
    let fault = CommonFault::OtherProject { project };
    assert!(
        !lab.interposer.inject(FaultTiming::Always, fault),
        "it knows only one"
    );
}
