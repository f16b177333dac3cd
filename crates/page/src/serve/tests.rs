use std::sync::Mutex;

use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower_service::Service as _;

use super::*;
use crate::{Action, NodeRow};

struct Sample;

#[async_trait]
impl Source for Sample {
    async fn data(&self) -> PageData {
        let node = NodeRow {
            name: "web-1".to_owned(),
            actions: vec![Action::new("destroy", "Destroy").on("web-1").destructive()],
            ..NodeRow::default()
        };
        PageData {
            title: "sample".to_owned(),
            nodes: vec![node],
            ..PageData::default()
        }
    }
}

#[derive(Default)]
struct Noted(Mutex<Vec<Press>>);

#[async_trait]
impl Buttons for Noted {
    async fn press(&self, press: Press) -> Result<String, String> {
        let known = press.id == "destroy";
        self.0.lock().unwrap().push(press);
        if known {
            Ok("destroyed".to_owned())
        } else {
            Err("no such button".to_owned())
        }
    }
}

async fn answer(router: &mut Router, request: Request<Body>) -> (StatusCode, HeaderMap, String) {
    let answer = router.call(request).await.unwrap();
    let (head, body) = answer.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let body = String::from_utf8(body.to_vec()).unwrap();
    (head.status, head.headers, body)
}

fn read(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).unwrap()
}

fn pressing(press: &Value) -> Request<Body> {
    Request::post("/press")
        .header(CONTENT_TYPE, "application/json")
        .header(PRESSED, "yes")
        .body(Body::from(press.to_string()))
        .unwrap()
}

#[tokio::test]
async fn every_file_of_the_page_is_served_and_guarded() {
    let mut router = router(Arc::new(Sample), None);
    for asset in &ASSETS {
        let (status, headers, body) = answer(&mut router, read(asset.path)).await;
        assert_eq!(status, StatusCode::OK, "{}", asset.path);
        assert_eq!(headers[CONTENT_TYPE], asset.kind, "{}", asset.path);
        assert_eq!(headers[CONTENT_SECURITY_POLICY], POLICY, "{}", asset.path);
        assert_eq!(body, asset.body, "{}", asset.path);
    }
}

#[test]
fn the_page_names_only_files_that_are_served_and_nothing_elsewhere() {
    for asset in &ASSETS {
        for quoted in asset.body.split('"').skip(1).step_by(2) {
            let file = [".css", ".js"].iter().any(|end| quoted.ends_with(end));
            let path = format!("/{}", quoted.trim_start_matches("./"));
            let served = ASSETS.iter().any(|asset| asset.path == path);
            assert!(!file || served, "{} names {quoted}", asset.path);
            assert!(!quoted.starts_with("http"), "{} names {quoted}", asset.path);
        }
        // The icon's namespace is a name, not an address that is fetched.
        let body = asset.body.replace("http://www.w3.org/2000/svg", "");
        assert!(!body.contains("://"), "{} leaves the house", asset.path);
        assert!(
            !body.contains("innerHTML"),
            "{} makes markup of text",
            asset.path
        );
    }
}

#[tokio::test]
async fn the_picture_is_a_document_with_the_names_that_the_page_reads() {
    let (status, _, body) = answer(&mut router(Arc::new(Sample), None), read("/picture")).await;
    assert_eq!(status, StatusCode::OK);
    let data: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(data["title"], "sample");
    assert_eq!(data["nodes"][0]["machineState"], "");
    let button = json!({"id": "destroy", "on": "web-1", "label": "Destroy", "destructive": true});
    assert_eq!(data["nodes"][0]["actions"], json!([button]));
}

#[tokio::test]
async fn the_picture_shows_what_is_asked_for() {
    for (query, shown) in [
        ("?nodes=web&nodesPage=0", 1),
        ("?nodes=db", 0),
        ("?nodesPage=many", 1),
        ("?unknown=1", 1),
    ] {
        let path = format!("/picture{query}");
        let (status, _, body) = answer(&mut router(Arc::new(Sample), None), read(&path)).await;
        let data: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(status, StatusCode::OK, "{query}");
        assert_eq!(data["nodes"].as_array().unwrap().len(), shown, "{query}");
        assert_eq!(data["windows"]["nodes"]["total"], 1, "{query}");
    }
}

#[tokio::test]
async fn without_buttons_nothing_can_be_pressed() {
    let press = json!({"id": "destroy", "on": "web-1"});
    let mut only_shows = router(Arc::new(Sample), None);
    let (status, ..) = answer(&mut only_shows, pressing(&press)).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_press_reaches_the_one_who_acts_and_comes_back_in_words() {
    let noted = Arc::new(Noted::default());
    let mut router = router(Arc::new(Sample), Some(Arc::<Noted>::clone(&noted)));
    for (id, status, said) in [
        ("destroy", StatusCode::OK, "destroyed"),
        ("paint", StatusCode::CONFLICT, "no such button"),
    ] {
        let press = json!({"id": id, "on": "web-1"});
        let (got, _, body) = answer(&mut router, pressing(&press)).await;
        assert_eq!(got, status, "{id}");
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["message"], said, "{id}");
    }
    let pressed = noted.0.lock().unwrap();
    assert_eq!(pressed.len(), 2);
    assert_eq!(pressed[0].on, "web-1");
}

#[tokio::test]
async fn a_foreign_host_name_for_this_machine_cannot_press_buttons() {
    let noted = Arc::new(Noted::default());
    let mut router = router(Arc::new(Sample), Some(Arc::<Noted>::clone(&noted)));
    for (host, status) in [
        ("127.0.0.1:8080", StatusCode::OK),
        ("[::1]:8080", StatusCode::OK),
        ("localhost:8080", StatusCode::OK),
        ("evil.example.com:8080", StatusCode::FORBIDDEN),
        ("127.0.0.1.example.com", StatusCode::FORBIDDEN),
        ("a b", StatusCode::FORBIDDEN),
    ] {
        let mut press = pressing(&json!({"id": "destroy"}));
        let value = HeaderValue::from_static(host);
        press.headers_mut().insert(HOST, value);
        let (got, ..) = answer(&mut router, press).await;
        assert_eq!(got, status, "{host}");
    }
    assert_eq!(noted.0.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn another_site_cannot_press_in_our_name() {
    let noted = Arc::new(Noted::default());
    let mut router = router(Arc::new(Sample), Some(Arc::<Noted>::clone(&noted)));
    let press = json!({"id": "destroy"});
    let mut without_header = pressing(&press);
    without_header.headers_mut().remove(PRESSED);
    let (status, ..) = answer(&mut router, without_header).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    let mut as_a_form = pressing(&press);
    let plain = HeaderValue::from_static("text/plain");
    as_a_form.headers_mut().insert(CONTENT_TYPE, plain);
    let (status, ..) = answer(&mut router, as_a_form).await;
    assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert!(noted.0.lock().unwrap().is_empty());
}
