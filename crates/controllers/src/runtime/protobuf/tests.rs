use std::sync::{Arc, Mutex};

use futures::StreamExt as _;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Resource as _};

use super::*;
use crate::view::{NodeView, SlimNode, View as _};

/// A field whose value has a length.
fn field(number: u8, value: impl AsRef<[u8]>) -> Vec<u8> {
    let value = value.as_ref();
    let length = u8::try_from(value.len()).unwrap();
    assert!(length < 128, "longer lengths take more than a byte");
    [&[number << 3 | 2, length], value].concat()
}

/// A field that is a small number.
fn number(field: u8, value: u8) -> Vec<u8> {
    vec![field << 3, value]
}

fn object(kind: &str, raw: impl AsRef<[u8]>) -> Vec<u8> {
    let kind = [field(1, "v1"), field(2, kind)].concat();
    [b"k8s\0".to_vec(), field(1, kind), field(2, raw)].concat()
}

fn node(name: &str) -> Vec<u8> {
    let metadata = [field(1, name), field(6, "7")].concat();
    let spec = field(3, "local://p/1");
    let image = field(8, field(1, "an image that is not read"));
    [field(1, metadata), field(2, spec), field(3, image)].concat()
}

fn event(kind: &str, object: &[u8]) -> Vec<u8> {
    let event = [field(1, kind), field(2, field(1, object))].concat();
    let length = u32::try_from(event.len()).unwrap().to_be_bytes();
    [length.to_vec(), event].concat()
}

fn gone() -> Vec<u8> {
    let status = [
        field(2, "Failure"),
        field(3, "too old"),
        field(4, "Expired"),
        number(6, 42),
    ];
    object("Status", status.concat())
}

/// An API server that answers everything with this, and what it was asked for.
fn server(status: u16, kind: &'static str, body: Vec<u8>) -> (Client, Arc<Mutex<Vec<String>>>) {
    let accepted = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&accepted);
    let client = answering(move |request: Request<Body>| {
        let accept = request.headers().get(ACCEPT).unwrap().to_str().unwrap();
        seen.lock().unwrap().push(accept.to_owned());
        let answer = Response::builder()
            .status(status)
            .header(CONTENT_TYPE, kind);
        answer.body(Full::from(body.clone())).unwrap()
    });
    (client_in_protobuf(client), accepted)
}

fn answering(
    answer: impl Fn(Request<Body>) -> Response<Full<Bytes>> + Clone + Send + 'static,
) -> Client {
    let service = service_fn(move |request| std::future::ready(Ok::<_, BoxError>(answer(request))));
    Client::new(service, "default")
}

async fn list(kind: &'static str, body: Vec<u8>) -> kube::Result<Vec<NodeView>> {
    let nodes: Api<SlimNode> = Api::all(server(200, kind, body).0);
    let list = nodes.list(&ListParams::default()).await?;
    Ok(list.items.iter().map(NodeView::of).collect())
}

/// What a watch shows: the kind of each event with the name or the reason in it, or the error.
async fn watch(body: Vec<u8>) -> Vec<String> {
    let kind = "application/vnd.kubernetes.protobuf;stream=watch";
    let nodes: Api<SlimNode> = Api::all(server(200, kind, body).0);
    let events = nodes.watch(&WatchParams::default(), "0").await.unwrap();
    let name = |node: SlimNode| node.meta().name.clone().unwrap();
    events
        .map(|event| match event {
            Ok(WatchEvent::Added(node)) => format!("added {}", name(node)),
            Ok(WatchEvent::Modified(node)) => format!("modified {}", name(node)),
            Ok(WatchEvent::Deleted(node)) => format!("deleted {}", name(node)),
            Ok(WatchEvent::Bookmark(it)) => format!("bookmark {}", it.metadata.resource_version),
            Ok(WatchEvent::Error(status)) => format!("error {}", status.reason),
            Err(_) => "broken".to_owned(),
        })
        .collect()
        .await
}

#[tokio::test]
async fn a_list_in_protobuf_is_read_and_only_what_is_needed_of_it() {
    let metadata = [field(2, "9"), field(3, "")].concat();
    let raw = [field(1, metadata), field(2, node("a")), field(2, node("b"))].concat();
    // The envelope of a list is longer than the helpers can say in one byte.
    let kind = [field(1, "v1"), field(2, "NodeList")].concat();
    let length = u8::try_from(raw.len() & 127).unwrap() | 128;
    let rest = u8::try_from(raw.len() >> 7).unwrap();
    let envelope = [field(1, kind), vec![2 << 3 | 2, length, rest], raw].concat();
    let nodes = list(PROTOBUF, [b"k8s\0".to_vec(), envelope].concat())
        .await
        .unwrap();
    let names: Vec<_> = nodes.iter().map(NodeView::key).collect();
    assert_eq!(names, ["a", "b"]);
    let id = nodes[0].facts.provider_id.as_ref().unwrap();
    assert_eq!(id.as_str(), "local://p/1");
    assert_eq!(nodes[0].facts.created, None);
}

#[tokio::test]
async fn the_message_of_a_kubelet_that_shuts_down_is_read() {
    let condition = [
        field(1, "Ready"),
        field(2, "False"),
        field(5, "KubeletNotReady"),
        field(6, "node is shutting down"),
    ];
    let status = field(4, condition.concat());
    let raw = [field(1, field(1, "a")), field(3, status)].concat();
    let nodes: Api<SlimNode> = Api::all(server(200, PROTOBUF, object("Node", raw)).0);
    let node = NodeView::of(&nodes.get("a").await.unwrap());
    assert!(node.shutting_down, "{node:?}");
}

#[tokio::test]
async fn an_answer_in_json_is_passed_on_as_it_is() {
    let body = serde_json::json!({
        "kind": "NodeList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"},
        "items": [{"metadata": {"name": "a"}}],
    });
    let nodes = list("application/json", body.to_string().into_bytes())
        .await
        .unwrap();
    assert_eq!(nodes[0].key(), "a");
}

#[tokio::test]
async fn protobuf_is_asked_for_and_json_will_do() {
    let (client, accepted) = server(404, PROTOBUF, gone());
    let error = Api::<SlimNode>::all(client).get("n").await.unwrap_err();
    let kube::Error::Api(status) = error else {
        panic!("{error:?}");
    };
    assert_eq!((status.reason.as_str(), status.code), ("Expired", 42));
    assert_eq!(
        *accepted.lock().unwrap(),
        ["application/vnd.kubernetes.protobuf,application/json"]
    );
}

#[tokio::test]
async fn events_come_one_by_one_wherever_the_stream_is_cut() {
    let events = [
        event("ADDED", &object("Node", node("a"))),
        event("MODIFIED", &object("Node", node("b"))),
        event("DELETED", &object("Node", node("c"))),
        event("BOOKMARK", &object("Node", node(""))),
        event("ERROR", &gone()),
    ]
    .concat();
    let all = [
        "added a",
        "modified b",
        "deleted c",
        "bookmark 7",
        "error Expired",
    ];
    assert_eq!(watch(events.clone()).await, all);
    let cut = watch(events[..events.len() - 1].to_vec()).await;
    assert_eq!(
        cut,
        ["added a", "modified b", "deleted c", "bookmark 7", "broken"]
    );
}

#[tokio::test]
async fn what_is_no_node_is_an_error() {
    for (case, body) in [
        ("nothing", Vec::new()),
        ("no magic", b"{}".to_vec()),
        ("another kind", object("Pod", node("a"))),
        (
            "half an envelope",
            object("NodeList", node("a"))[..9].to_vec(),
        ),
        ("a wrong type inside", object("NodeList", number(2, 1))),
    ] {
        assert!(list(PROTOBUF, body).await.is_err(), "{case}");
    }
    let huge = [u32::MAX.to_be_bytes().to_vec(), vec![0; 64]].concat();
    for (case, stream) in [
        ("an event without end", huge),
        ("an event of nothing", vec![0, 0, 0, 0]),
        ("a time that never was", {
            let never = field(8, [&[1 << 3][..], &[0xff; 8], &[0x7f]].concat());
            event("ADDED", &object("Node", field(1, never)))
        }),
    ] {
        assert_eq!(watch(stream).await, ["broken"], "{case}");
    }
}
