//! The proxy in front of a server that the engine does not know, for three styles of API: commands in forms with answers
//! in XML, SOAP, and REST with pages by marker.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::{get, post};
use bytes::Bytes;
use cloudkeel_emulation::interposer::{Classifier, Interposer, Proxy, Rule};
use cloudkeel_emulation::{
    CallOutcome, CommonFault, FaultInjector as _, FaultMatch, ListShape, Served,
};
use cloudkeel_http::{HyperTransport, TlsSettings, Transport as _, TransportError};
use http::{Request, Response};

use crate::proxy::client;

/// How the calls of one style of API are named, and two of them.
struct Style {
    classifier: Classifier,
    shape: ListShape,
    list: Call,
    change: Call,
    /// What an answer has once for each machine.
    item: &'static str,
}

struct Call {
    operation: &'static str,
    method: &'static str,
    path: &'static str,
    header: (&'static str, &'static str),
    body: &'static str,
}

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const SOAP_ACTION: (&str, &str) = ("soapaction", "urn:vim25/8.0");
const JSON: (&str, &str) = ("content-type", "application/json");

const QUERY: Style = Style {
    classifier: Classifier {
        rules: &[Rule::Param {
            param: "Action",
            reads: &["Describe"],
        }],
        page_param: None,
    },
    shape: ListShape::Xml {
        item: "item",
        next: "nextToken",
    },
    list: Call {
        operation: "DescribeInstances",
        method: "POST",
        path: "/",
        header: FORM,
        body: "Action=DescribeInstances&Version=2016-11-15&MaxResults=100",
    },
    change: Call {
        operation: "RunInstances",
        method: "POST",
        path: "/",
        header: FORM,
        body: "Action=RunInstances&Version=2016-11-15&MinCount=1",
    },
    item: "<item>",
};

const SOAP: Style = Style {
    classifier: Classifier {
        rules: &[Rule::Soap {
            reads: &["Retrieve"],
        }],
        page_param: None,
    },
    shape: ListShape::Xml {
        item: "objects",
        next: "token",
    },
    list: Call {
        operation: "RetrievePropertiesEx",
        method: "POST",
        path: "/sdk",
        header: SOAP_ACTION,
        body: "<s:Envelope><s:Body><RetrievePropertiesEx/></s:Body></s:Envelope>",
    },
    change: Call {
        operation: "CloneVM_Task",
        method: "POST",
        path: "/sdk",
        header: SOAP_ACTION,
        body: "<s:Envelope><s:Body><CloneVM_Task/></s:Body></s:Envelope>",
    },
    item: "<objects>",
};

const REST: Style = Style {
    classifier: Classifier {
        rules: &[
            Rule::Path {
                method: "GET",
                path: "/v2.1/servers/detail",
                operation: "list-servers",
                mutating: false,
            },
            Rule::Path {
                method: "POST",
                path: "/v2.1/servers",
                operation: "create-server",
                mutating: true,
            },
        ],
        page_param: None,
    },
    shape: ListShape::Json {
        is_list: "/servers",
        next: &["/servers_links"],
        totals: &[],
        last_page: &[],
    },
    list: Call {
        operation: "list-servers",
        method: "GET",
        path: "/v2.1/servers/detail?limit=100&marker=m-0",
        header: JSON,
        body: "",
    },
    change: Call {
        operation: "create-server",
        method: "POST",
        path: "/v2.1/servers",
        header: JSON,
        body: "{\"server\":{}}",
    },
    item: "\"id\"",
};

/// How many machines the server has.
type Machines = Arc<Mutex<usize>>;

/// A server of all three styles, which knows nothing of the engine.
fn server(machines: &Machines) -> Router {
    let command = async |State(machines): State<Machines>, body: String| {
        let mut machines = machines.lock().unwrap();
        if body.contains("RunInstances") || body.contains("CloneVM_Task") {
            *machines += 1;
            return "<ok/>".to_owned();
        }
        let item = if body.contains("Envelope") {
            "objects"
        } else {
            "item"
        };
        let items = format!("<{item}>m</{item}>").repeat(*machines);
        format!("<answer><set>{items}</set><nextToken>t</nextToken><token>t</token></answer>")
    };
    let list = async |State(machines): State<Machines>| {
        let servers = vec![serde_json::json!({"id": "m"}); *machines.lock().unwrap()];
        axum::Json(serde_json::json!({"servers": servers, "servers_links": [{"rel": "next"}]}))
    };
    let create = async |State(machines): State<Machines>| *machines.lock().unwrap() += 1;
    Router::new()
        .route("/", post(command))
        .route("/sdk", post(command))
        .route("/v2.1/servers/detail", get(list))
        .route("/v2.1/servers", post(create))
        .with_state(Arc::clone(machines))
}

/// A server behind a proxy.
struct Lab {
    machines: Machines,
    interposer: Interposer,
    proxy: Proxy,
    client: HyperTransport,
    _served: Served,
}

impl Lab {
    async fn new(style: &Style) -> Self {
        let machines = Machines::new(Mutex::new(3));
        let served = Served::on_loopback(server(&machines)).await.unwrap();
        let interposer = Interposer::new(style.classifier).with_list_shape(style.shape);
        let proxy = Proxy::start(&interposer, &served.url()).await.unwrap();
        Self {
            machines,
            interposer,
            proxy,
            client: client(TlsSettings::default()),
            _served: served,
        }
    }

    async fn send(&self, call: &Call) -> Result<Response<Bytes>, TransportError> {
        let uri = format!("{}{}", self.proxy.url(), call.path);
        let request = Request::builder().method(call.method).uri(uri);
        let request = request.header(call.header.0, call.header.1);
        let body = Bytes::from_static(call.body.as_bytes());
        self.client.send(request.body(body).unwrap()).await
    }

    async fn listed(&self, style: &Style) -> usize {
        let answer = self.send(&style.list).await.unwrap();
        String::from_utf8_lossy(answer.body())
            .matches(style.item)
            .count()
    }

    fn made(&self) -> usize {
        *self.machines.lock().unwrap() - 3
    }
}

#[tokio::test]
async fn calls_are_named_and_counted() {
    for style in [QUERY, SOAP, REST] {
        let lab = Lab::new(&style).await;
        assert_eq!(lab.listed(&style).await, 3);
        for _ in 0..2 {
            assert_eq!(lab.send(&style.change).await.unwrap().status(), 200);
        }
        let (list, change) = (style.list.operation, style.change.operation);
        assert_eq!(lab.interposer.calls_of(list), 1, "{list}");
        assert_eq!(lab.interposer.calls_of(change), 2, "{change}");
        let totals = lab.interposer.call_totals();
        assert_eq!((totals.total, totals.mutating), (3, 2), "{change}");
        assert_eq!(lab.made(), 2, "{change}");
    }
}

#[tokio::test]
async fn refusals_silence_and_lost_answers_are_played_by_operation() {
    for style in [QUERY, SOAP, REST] {
        let lab = Lab::new(&style).await;
        let change = || FaultMatch::operation(style.change.operation);
        for (fault, status) in [
            (CommonFault::throttled(7), 429),
            (CommonFault::status(500), 500),
        ] {
            lab.interposer.once(change(), fault);
            assert_eq!(lab.listed(&style).await, 3, "another operation");
            let refused = lab.send(&style.change).await.unwrap();
            assert_eq!(refused.status(), status);
        }
        lab.interposer.once(change(), CommonFault::NoAnswer);
        let silence = tokio::time::timeout(Duration::from_millis(50), lab.send(&style.change));
        assert!(silence.await.is_err(), "there is no answer");
        assert_eq!(lab.made(), 0, "nothing has happened so far");
        lab.interposer.once(change(), CommonFault::BrokenAfter);
        let lost = lab.send(&style.change).await;
        assert!(lost.is_err(), "{lost:?}");
        assert_eq!(lab.made(), 1, "it happened");
        let outcomes: Vec<_> = lab.interposer.call_log();
        let last = outcomes.last().unwrap();
        assert_eq!(last.outcome, CallOutcome::BrokenAfter);
        assert_eq!(lab.interposer.call_totals().mutating, 4);
    }
}

#[tokio::test]
async fn lists_are_made_wrong_on_their_way() {
    for style in [QUERY, SOAP, REST] {
        let lab = Lab::new(&style).await;
        let list = || FaultMatch::operation(style.list.operation);
        for (fault, expected) in [
            (CommonFault::EmptyList, 0),
            (CommonFault::TruncatedPage, 2),
            (CommonFault::LostNextPage, 3),
        ] {
            lab.interposer.once(list(), fault.clone());
            let answer = lab.send(&style.list).await.unwrap();
            let text = String::from_utf8_lossy(answer.body());
            let (count, name) = (text.matches(style.item).count(), style.list.operation);
            assert_eq!(count, expected, "{name} {fault:?}: {text}");
        }
        assert_eq!(lab.listed(&style).await, 3, "the script is used up");
    }
}
