//! What a case asks with, and the transcript that it leaves.

use std::sync::Mutex;

use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const JSON: &str = "application/json";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// One server, and what it said so far.
pub(crate) struct Bench {
    client: Client,
    /// A client of a user without any role.
    stranger: Client,
    /// The name of the case; its namespace has the same.
    case: String,
    transcript: Mutex<Vec<(String, Value)>>,
}

impl Bench {
    /// A bench with a namespace for the case.
    pub(crate) async fn new(client: Client, stranger: Client, case: &str) -> Self {
        let bench = Self {
            client,
            stranger,
            case: case.to_owned(),
            transcript: Mutex::new(Vec::new()),
        };
        let namespace = json!({"metadata": {"name": case}});
        let created = bench
            .raw(&Method::POST, "/api/v1/namespaces", JSON, &namespace)
            .await;
        assert_eq!(created["code"], 201, "the namespace of {case}: {created}");
        bench
    }

    /// The name of a cluster-wide object that only this case has.
    pub(crate) fn own(&self, name: &str) -> String {
        format!("{}-{name}", self.case)
    }

    /// The path of objects in the namespace of the case.
    pub(crate) fn here(&self, rest: &str) -> String {
        format!("/api/v1/namespaces/{}/{rest}", self.case)
    }

    /// The path of objects of a group in the namespace of the case.
    pub(crate) fn here_in(&self, group: &str, rest: &str) -> String {
        format!("/apis/{group}/v1/namespaces/{}/{rest}", self.case)
    }

    /// What was asked and answered.
    pub(crate) fn transcript(self) -> Vec<(String, Value)> {
        self.transcript.into_inner().expect("a transcript")
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.ask(&Method::GET, path, JSON, &Value::Null).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        self.ask(&Method::POST, path, JSON, &body).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Value {
        self.ask(&Method::PUT, path, JSON, &body).await
    }

    pub(crate) async fn merge(&self, path: &str, patch: Value) -> Value {
        self.ask(&Method::PATCH, path, MERGE, &patch).await
    }

    pub(crate) async fn strategic(&self, path: &str, patch: Value) -> Value {
        self.ask(&Method::PATCH, path, STRATEGIC, &patch).await
    }

    pub(crate) async fn json_patch(&self, path: &str, patch: Value) -> Value {
        self.ask(&Method::PATCH, path, JSON_PATCH, &patch).await
    }

    /// A patch in a language of choice.
    pub(crate) async fn patch_as(&self, path: &str, content_type: &str, patch: Value) -> Value {
        self.ask(&Method::PATCH, path, content_type, &patch).await
    }

    /// A JSON patch whose answer is not written down by itself.
    pub(crate) async fn unnoted_json_patch(&self, path: &str, patch: Value) -> Value {
        self.raw(&Method::PATCH, path, JSON_PATCH, &patch).await
    }

    /// A merge patch whose answer is not written down by itself.
    pub(crate) async fn unnoted_merge(&self, path: &str, patch: Value) -> Value {
        self.raw(&Method::PATCH, path, MERGE, &patch).await
    }

    pub(crate) async fn delete(&self, path: &str, options: Value) -> Value {
        self.ask(&Method::DELETE, path, JSON, &options).await
    }

    /// Asks as a user without any role, and writes down what was answered.
    pub(crate) async fn ask_as_stranger(&self, method: &Method, path: &str, body: &Value) {
        let as_admin = self.client.clone();
        let stranger = Self {
            client: self.stranger.clone(),
            stranger: as_admin,
            case: self.case.clone(),
            transcript: Mutex::default(),
        };
        let content_type = if method == Method::PATCH { MERGE } else { JSON };
        let answer = stranger.raw(method, path, content_type, body).await;
        self.note(format!("stranger: {method} {path} {body}"), answer);
    }

    /// Asks for protobuf, and returns the code, the content type and the bytes.
    pub(crate) async fn bytes(
        &self,
        method: &Method,
        path: &str,
        (content_type, accept): (&str, &str),
        body: Vec<u8>,
    ) -> (u16, String, Vec<u8>) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .header("accept", accept)
            .body(Body::from(body))
            .expect("a request");
        let response = self.client.send(request).await.expect("an answer");
        let code = response.status().as_u16();
        let kind = response.headers().get("content-type");
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.to_owned();
        let bytes = response.into_body().collect_bytes().await;
        (code, kind, bytes.expect("a whole answer").to_vec())
    }

    /// Asks, and writes down what was answered. The answer comes with its `code` in it.
    async fn ask(&self, method: &Method, path: &str, content_type: &str, body: &Value) -> Value {
        let answer = self.raw(method, path, content_type, body).await;
        self.note(format!("{method} {path} {body}"), answer.clone());
        answer["body"].clone()
    }

    pub(crate) fn note(&self, asked: String, answer: Value) {
        self.transcript
            .lock()
            .expect("a transcript")
            .push((asked, answer));
    }

    /// The lines of a watch that ends by itself.
    pub(crate) async fn watch(&self, path: &str) -> Vec<Value> {
        let lines = self.unnoted_watch(path).await;
        let reported = lines.iter().filter(|line| line["type"] != "BOOKMARK");
        let asked = path.split("resourceVersion").next().unwrap_or(path);
        self.note(format!("WATCH {asked}"), reported.cloned().collect());
        lines
    }

    /// The lines of a watch, not written down by themselves.
    pub(crate) async fn unnoted_watch(&self, path: &str) -> Vec<Value> {
        let text = self.text(&Method::GET, path, JSON, &Value::Null).await.1;
        let lines = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("a line of JSON"));
        lines.collect()
    }

    /// The columns and cells of what `kubectl get` shows, but how old things are.
    pub(crate) async fn table(&self, path: &str) {
        let (_, text) = self
            .send(&Method::GET, path, (JSON, TABLE), &Value::Null)
            .await;
        let table: Value = serde_json::from_str(&text).expect("a table");
        let columns = table["columnDefinitions"].as_array().expect("columns");
        let reported: Vec<_> = columns
            .iter()
            .map(|column| json!([column["name"], column["priority"], column["format"]]))
            .collect();
        let rows = table["rows"].as_array().expect("rows").iter();
        let is_age =
            |name: &Value| matches!(name.as_str(), Some("Age" | "Last Seen" | "First Seen"));
        let rows: Vec<_> = rows
            .map(|row| {
                let cells = row["cells"].as_array().expect("cells").iter().zip(columns);
                let known = cells.filter(|(_, column)| !is_age(&column["name"]));
                let cells: Vec<_> = known.map(|(cell, _)| cell.clone()).collect();
                json!([row["object"]["kind"], cells])
            })
            .collect();
        self.note(
            format!("TABLE {path}"),
            json!([table["kind"], reported, rows]),
        );
    }

    pub(crate) async fn unnoted_get(&self, path: &str) -> Value {
        self.raw(&Method::GET, path, JSON, &Value::Null).await["body"].clone()
    }

    pub(crate) async fn unnoted_post(&self, path: &str, body: Value) -> Value {
        self.raw(&Method::POST, path, JSON, &body).await["body"].clone()
    }

    pub(crate) async fn unnoted_delete(&self, path: &str) -> Value {
        self.raw(&Method::DELETE, path, JSON, &Value::Null).await["body"].clone()
    }

    async fn raw(&self, method: &Method, path: &str, content_type: &str, body: &Value) -> Value {
        let (code, text) = self.text(method, path, content_type, body).await;
        let body: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        json!({"code": code, "body": body})
    }

    async fn text(
        &self,
        method: &Method,
        path: &str,
        content_type: &str,
        body: &Value,
    ) -> (u16, String) {
        self.send(method, path, (content_type, JSON), body).await
    }

    async fn send(
        &self,
        method: &Method,
        path: &str,
        (content_type, accept): (&str, &str),
        body: &Value,
    ) -> (u16, String) {
        let body = match body {
            Value::Null => Body::empty(),
            body => Body::from(body.to_string().into_bytes()),
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .header("accept", accept)
            .body(body)
            .expect("a request");
        let response = self.client.send(request).await.expect("an answer");
        let code = response.status().as_u16();
        let bytes = response
            .into_body()
            .collect_bytes()
            .await
            .expect("a whole answer");
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        (code, text)
    }
}
