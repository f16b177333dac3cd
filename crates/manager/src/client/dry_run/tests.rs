use std::sync::Mutex;

use cloudkeel_controllers::runtime::{NodeWriter, ServiceWriter, WriteError};
use cloudkeel_controllers::view::NodeView;
use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Node};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};

use super::*;

/// An API server with one Node and one Service, which notes every request.
#[derive(Default)]
struct Server(Mutex<Vec<String>>);

impl Server {
    fn client(self: &Arc<Self>) -> Client {
        let server = Arc::clone(self);
        let answer = service_fn(move |request: Request<Body>| {
            let server = Arc::clone(&server);
            async move { server.answer(&request) }
        });
        Client::new(answer, "default")
    }

    fn answer(&self, request: &Request<Body>) -> Result<Response<Body>, BoxError> {
        let line = format!("{} {}", request.method(), request.uri());
        let is_review = line.starts_with("POST /apis/authentication.k8s.io");
        self.0.lock().unwrap().push(line);
        let meta = json!({"name": "n", "uid": "u", "resourceVersion": "7"});
        match request.uri().path() {
            "/api/v1/nodes/n" => {
                object_answer(StatusCode::OK, &json!({"metadata": meta, "spec": {}}))
            }
            "/api/v1/namespaces/default/services" => object_answer(
                StatusCode::OK,
                &json!({"metadata": {}, "items": [{"metadata": {"name": "s", "uid": "u"}}]}),
            ),
            _ if is_review => object_answer(StatusCode::CREATED, &json!({"spec": {}})),
            _ => refuse(StatusCode::NOT_FOUND, "nothing there"),
        }
    }

    /// The requests so far that could have changed something.
    fn writes(&self) -> Vec<String> {
        let requests = self.0.lock().unwrap();
        requests
            .iter()
            .filter(|line| !line.starts_with("GET"))
            .cloned()
            .collect()
    }
}

fn setting() -> (Arc<Server>, Arc<Recorder>, Client) {
    let (server, recorder) = (Arc::<Server>::default(), Arc::<Recorder>::default());
    let client = recording_client(
        server.client(),
        Arc::clone(&recorder),
        "cloud-node-controller",
    );
    (server, recorder, client)
}

fn texts(recorder: &Recorder) -> Vec<String> {
    let steps = recorder.report().steps.into_iter();
    steps
        .map(|step| format!("{}: {}", step.object, step.text))
        .collect()
}

fn node(uid: &str) -> NodeView {
    let mut node = NodeView {
        resource_version: "7".into(),
        ..NodeView::default()
    };
    node.facts.name = "n".into();
    node.facts.uid = uid.into();
    node
}

#[tokio::test]
async fn writes_of_nodes_and_services_are_recorded_and_answered() {
    let (server, recorder, client) = setting();
    let nodes = NodeWriter::new(client.clone()).with_patches_only();
    let cidrs = ["10.0.1.0/24".parse().unwrap()];
    let written = nodes.write_pod_cidrs(&node("u"), &cidrs).await.unwrap();
    assert_eq!(
        written.facts.pod_cidrs, cidrs,
        "the controller counts on what it has written"
    );
    nodes.delete(&node("u")).await.unwrap();
    let services = ServiceWriter::new(client);
    let service = ServiceRef {
        namespace: "default".into(),
        name: "s".into(),
        uid: "u".into(),
    };
    let patch = json!({"metadata": {"uid": "u", "finalizers": ["ours"]}});
    services.patch(&service, &patch).await.unwrap();
    assert_eq!(
        texts(&recorder),
        [
            "Node n: delete Node n, its instance is gone",
            "Node n: set Pod CIDRs 10.0.1.0/24",
            "Service default/s: add finalizer ours",
        ]
    );
    assert_eq!(server.writes(), [] as [&str; 0]);
}

#[tokio::test]
async fn a_write_for_another_object_is_refused_as_the_api_server_would() {
    let (server, recorder, client) = setting();
    let nodes = NodeWriter::new(client.clone()).with_patches_only();
    let gone = nodes.delete(&node("another")).await;
    assert!(matches!(gone, Err(WriteError::Gone)), "{gone:?}");
    let api: Api<Node> = Api::all(client);
    let stale = DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some("u".into()),
            resource_version: Some("6".into()),
        }),
        ..DeleteParams::default()
    };
    let error = api.delete("n", &stale).await.unwrap_err();
    assert!(
        matches!(&error, kube::Error::Api(status) if status.code == 409),
        "{error}"
    );
    let patch = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    let missing = api.patch("missing", &PatchParams::default(), &patch).await;
    assert!(missing.is_err());
    assert!(recorder.report().is_empty());
    assert_eq!(server.writes(), [] as [&str; 0]);
}

#[tokio::test]
async fn whatever_is_written_nothing_passes_but_reviews() {
    let (server, recorder, client) = setting();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let map = ConfigMap {
        metadata: kube::api::ObjectMeta {
            name: Some("made".into()),
            ..kube::api::ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    maps.create(&PostParams::default(), &map).await.unwrap();
    let events: Api<Event> = Api::namespaced(client.clone(), "default");
    let _ = events
        .create(&PostParams::default(), &Event::default())
        .await;
    let whole =
        Request::put("/api/v1/nodes/n").header(CONTENT_TYPE, "application/vnd.kubernetes.protobuf");
    let refused = client.request::<Value>(whole.body(vec![0]).unwrap()).await;
    assert!(
        matches!(&refused, Err(kube::Error::Api(status)) if status.code == 415),
        "{refused:?}"
    );
    let elsewhere = Request::post("/metrics").body(Vec::new()).unwrap();
    assert!(client.request::<Value>(elsewhere).await.is_err());
    assert_eq!(server.writes(), [] as [&str; 0]);
    assert_eq!(
        texts(&recorder),
        ["configmaps default/made: create configmaps made"]
    );

    let reviews: Api<TokenReview> = Api::all(client);
    reviews
        .create(&PostParams::default(), &TokenReview::default())
        .await
        .unwrap();
    assert_eq!(server.writes().len(), 1, "a question is no write");
}

#[tokio::test]
async fn a_step_that_another_manager_has_done_is_forgotten() {
    let (server, recorder, client) = setting();
    let nodes = NodeWriter::new(client).with_patches_only();
    nodes.delete(&node("u")).await.unwrap();
    let labels = [("a".to_owned(), Some("b".to_owned()))].into();
    nodes
        .write_metadata(&node("u").facts, "labels", &labels)
        .await
        .unwrap();
    let reader = server.client();
    forget_finished(&reader, &recorder).await;
    assert_eq!(texts(&recorder).len(), 2, "both are still to be done");
    for mut write in recorder.writes() {
        recorder.forget_write(&write);
        match &mut write.patch {
            // As if the Node had the label by now, or had changed since.
            Some(patch) => *patch = json!({"metadata": {"uid": "u"}}),
            None => write.resource_version = Some("6".into()),
        }
        recorder.note_write(write);
    }
    forget_finished(&reader, &recorder).await;
    assert_eq!(texts(&recorder), [] as [&str; 0]);
}

#[test]
fn paths_of_the_api_are_read() {
    for (path, resource, namespace, name) in [
        ("/api/v1/nodes", "nodes", None, None),
        ("/api/v1/nodes/n/status", "nodes", None, Some("n")),
        (
            "/api/v1/namespaces/a/services/s",
            "services",
            Some("a"),
            Some("s"),
        ),
        ("/api/v1/namespaces/a", "namespaces", None, Some("a")),
        (
            "/apis/coordination.k8s.io/v1/namespaces/a/leases/l",
            "leases",
            Some("a"),
            Some("l"),
        ),
    ] {
        let read = ObjectPath::parse(path).unwrap();
        let parts = (
            read.resource.as_str(),
            read.namespace.as_deref(),
            read.name.as_deref(),
        );
        assert_eq!(parts, (resource, namespace, name), "{path}");
    }
    assert_eq!(ObjectPath::parse("/metrics"), None);
}
