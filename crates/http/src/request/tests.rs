use http::header::{AUTHORIZATION, CONTENT_TYPE, IF_MATCH};
use serde_json::json;

use super::*;

fn base() -> BaseUrl {
    BaseUrl::parse("https://api.example.com/v1").unwrap()
}

#[test]
fn a_request_is_on_the_wire_what_it_says() {
    let request = Request::post("/load_balancers/{id}/actions/add_target")
        .param("id", 7)
        .query("label_selector", "k in (a,b)&x=1")
        .if_match("\"abc\"")
        .json(json!({"type": "server"}));
    let wire = request.to_http(&base()).unwrap();
    assert_eq!(wire.method(), Method::POST);
    assert_eq!(
        wire.uri(),
        "https://api.example.com/v1/load_balancers/7/actions/add_target?label_selector=k%20in%20%28a%2Cb%29%26x%3D1"
    );
    assert_eq!(wire.headers()[IF_MATCH], "\"abc\"");
    assert_eq!(wire.headers()[CONTENT_TYPE], "application/json");
    assert!(!wire.headers().contains_key(AUTHORIZATION));
    assert_eq!(wire.body(), &Bytes::from_static(br#"{"type":"server"}"#));
}

#[test]
fn a_request_without_a_body_sends_none() {
    let wire = Request::get("/servers").to_http(&base()).unwrap();
    assert!(wire.body().is_empty());
    assert!(wire.headers().is_empty());
}

#[test]
fn values_cannot_escape_their_place_in_the_path() {
    let path = |value: &str| Request::get("/servers/{id}/x").param("id", value).path();
    assert_eq!(path("a/b?c#d%2e").unwrap(), "/servers/a%2Fb%3Fc%23d%252e/x");
    for value in ["", ".", ".."] {
        let error = path(value).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{value:?}");
        assert!(error.to_string().contains("{id}"), "{error}");
    }
}

#[test]
fn a_resource_id_keeps_its_slashes_but_cannot_climb() {
    let path = |id: &str| {
        Request::get("/{id}/backendAddressPools")
            .param_path("id", id)
            .path()
    };
    assert_eq!(
        path("/subscriptions/a b/x/").unwrap(),
        "/subscriptions/a%20b/x/backendAddressPools"
    );
    for id in ["/subscriptions/../x", "a//b", "/"] {
        assert_eq!(path(id).unwrap_err().kind(), ErrorKind::Invalid, "{id}");
    }
}

#[test]
fn a_template_and_its_values_must_fit() {
    for (case, request, needle) in [
        (
            "missing",
            Request::get("/servers/{id}"),
            "lacks a value for {id}",
        ),
        (
            "misspelled",
            Request::get("/servers/{id}").param("ID", 1),
            "lacks a value for {id}",
        ),
        (
            "left over",
            Request::get("/servers").param("id", 1),
            "takes 0 values, 1 were given",
        ),
        (
            "unclosed",
            Request::get("/servers/{id").param("id", 1),
            "unclosed",
        ),
        ("no slash", Request::get("servers"), "start with a slash"),
        (
            "bad header",
            Request::get("/x").header("a b", "c"),
            "not a header name",
        ),
        (
            "bad value",
            Request::get("/x").header("a", "b\n"),
            "is not text",
        ),
    ] {
        let error = request.to_http(&base()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{case}");
        assert!(error.to_string().contains(needle), "{case}: {error}");
    }
}

#[test]
fn what_may_be_repeated_follows_from_the_method_unless_said_otherwise() {
    for (case, request, mutating, idempotent) in [
        ("get", Request::get("/x"), false, true),
        ("put", Request::put("/x"), true, true),
        ("delete", Request::delete("/x"), true, true),
        ("post", Request::post("/x"), true, false),
        ("patch", Request::patch("/x"), true, false),
        (
            "idempotent post",
            Request::post("/x").idempotent(true),
            true,
            true,
        ),
        (
            "fragile put",
            Request::put("/x").idempotent(false),
            true,
            false,
        ),
        (
            "search by post",
            Request::post("/x").read_only(),
            false,
            true,
        ),
    ] {
        assert_eq!(request.is_mutating(), mutating, "{case}");
        assert_eq!(request.is_idempotent(), idempotent, "{case}");
    }
}

#[test]
fn a_query_parameter_can_be_replaced() {
    let request = Request::get("/servers")
        .query("page", 1)
        .query("per_page", 50)
        .set_query("page", 2);
    assert_eq!(request.query_value("page"), Some("2"));
    let wire = request.to_http(&base()).unwrap();
    assert_eq!(wire.uri().query(), Some("per_page=50&page=2"));
}

#[test]
fn a_link_is_followed_with_its_own_query_and_nowhere_else() {
    let link = "https://api.example.com/v1/servers?marker=a%20b";
    let request = Request::follow("list servers", link);
    assert_eq!(request.operation(), "list servers");
    assert_eq!(request.to_http(&base()).unwrap().uri(), link);

    let error = Request::follow("list servers", "https://evil.example.com/?token=hunter2")
        .to_http(&base())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
    assert!(error.to_string().contains("evil.example.com"), "{error}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[test]
fn a_form_is_encoded() {
    let wire = Request::post("/token")
        .form([
            ("grant_type", "client_credentials"),
            ("client_secret", "a&b=c d"),
        ])
        .to_http(&base())
        .unwrap();
    assert_eq!(
        wire.body(),
        &Bytes::from_static(b"grant_type=client_credentials&client_secret=a%26b%3Dc%20d")
    );
    assert_eq!(
        wire.headers()[CONTENT_TYPE],
        "application/x-www-form-urlencoded"
    );
}

#[test]
fn a_pair_of_a_form_can_be_replaced() {
    let first = Request::post("/").form([("Action", "List"), ("NextToken", "a")]);
    let next = first.clone().set_form("NextToken", "b");
    let body = |request: &Request| request.to_http(&base()).unwrap().into_body();
    assert_eq!(body(&first), "Action=List&NextToken=a");
    assert_eq!(body(&next), "Action=List&NextToken=b");
    assert_eq!(body(&Request::post("/").set_form("a", "b")), "a=b");
}

#[test]
fn printing_a_request_shows_no_secret() {
    let request = Request::post("/login/{tenant}")
        .param("tenant", "acme")
        .query("api_key", "hunter2")
        .query("page", 3)
        .header("X-Auth-Token", "hunter2")
        .json(json!({"user": {"name": "joe", "password": "hunter2"}}));
    let printed = format!("{request:?}");
    assert!(!printed.contains("hunter2"), "{printed}");
    for shown in ["/login/acme", "page=3", "joe", "X-Auth-Token"] {
        assert!(printed.contains(shown), "{shown} in {printed}");
    }
    let form = Request::post("/token").form([("client_secret", "hunter2")]);
    assert!(!format!("{form:?}").contains("hunter2"));
    let bare = Request::post("/session").json(json!("hunter2"));
    assert!(format!("{bare:?}").contains("hunter2"), "nothing marks it");
    assert!(!format!("{:?}", bare.confidential()).contains("hunter2"));
}
