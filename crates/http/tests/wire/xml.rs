//! Clouds that speak XML: SOAP with sessions, and the query protocol of AWS.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use cloudkeel_api::{CloudError, ErrorKind, Secret, SystemClock};
use cloudkeel_http::{
    Auth, Body, CallFailure, Client, CodeTable, HttpSettings, Next, Page, Refusal, Request,
    Response, Token, TokenCache, TokenSource, set_secret_header,
};
use http::header::{COOKIE, SET_COOKIE};

use crate::client;
use crate::server::{Server, answer};

/// What stands between the first two tags of this name; a provider uses a library.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (content, _) = rest.split_once(&format!("</{name}>"))?;
    Some(content)
}

/// The items of a document with this root. Without the root it is another document.
fn items(body: &[u8], root: &str) -> Result<Vec<String>, String> {
    let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
    let content = element(text, root).ok_or_else(|| format!("no <{root}>"))?;
    let parts = content.split("<item>").skip(1);
    let item = |part: &str| Some(part.split_once("</item>")?.0.to_owned());
    parts
        .map(|part| item(part).ok_or_else(|| "an item without an end".to_owned()))
        .collect()
}

// SOAP, as vSphere speaks it.

fn fault(body: &[u8]) -> Option<Refusal> {
    let fault = element(std::str::from_utf8(body).ok()?, "Fault")?;
    Some(Refusal {
        code: element(fault, "detail").map(str::to_owned),
        message: element(fault, "faultstring").map(str::to_owned),
        request_id: None,
    })
}

/// A property that could not be read because the session has ended, in an answer with status 200.
fn missing(body: &[u8]) -> Option<Refusal> {
    let code = element(std::str::from_utf8(body).ok()?, "missingSet")?;
    Some(Refusal {
        code: Some(code.to_owned()),
        ..Refusal::default()
    })
}

fn soap(method: &'static str, arguments: &str) -> Request {
    let envelope = format!("<Envelope><Body><{method}>{arguments}</{method}></Body></Envelope>");
    Request::post("/sdk").named(method).body(Body::Raw {
        content_type: "text/xml; charset=utf-8",
        bytes: Bytes::from(envelope),
    })
}

/// Logs in with a password and keeps the cookie.
struct Login(Client);

#[async_trait]
impl TokenSource for Login {
    async fn fetch(&self) -> Result<Token, CloudError> {
        let login = soap(
            "Login",
            "<userName>joe</userName><password>hunter2</password>",
        );
        let response = self.0.send(login.confidential()).await?;
        let cookie = response.header(SET_COOKIE.as_str());
        let cookie = cookie.ok_or_else(|| response.malformed("it sets no cookie"))?;
        Ok(Token {
            value: Secret::new(cookie.split(';').next().unwrap_or_default()),
            expires_at: None,
        })
    }
}

/// A vCenter whose sessions end when it is restarted.
#[derive(Default)]
struct VCenter {
    logins: u32,
    sessions: BTreeSet<String>,
}

impl VCenter {
    fn answer(&mut self, request: &http::Request<Bytes>) -> http::Response<Bytes> {
        let body = std::str::from_utf8(request.body()).unwrap();
        assert_eq!(request.headers()["content-type"], "text/xml; charset=utf-8");
        if body.contains("<Login>") {
            let password = element(body, "password").unwrap();
            if password != "hunter2" {
                return soap_fault("InvalidLogin", &format!("wrong: {password}"));
            }
            self.logins += 1;
            let session = format!("vmware_soap_session=\"s{}\"", self.logins);
            let mut answer = answer(200, "<Envelope><key>s-hunter2</key></Envelope>");
            let cookie = format!("{session}; Path=/; HttpOnly").parse().unwrap();
            answer.headers_mut().insert(SET_COOKIE, cookie);
            self.sessions.insert(session);
            return answer;
        }
        let cookie = request.headers().get(COOKIE);
        let cookie = cookie.map_or("", |cookie| cookie.to_str().unwrap());
        let is_known = self.sessions.contains(cookie);
        if body.contains("<RetrievePropertiesEx>") && !is_known {
            return answer(
                200,
                "<Envelope><returnval><missingSet>NotAuthenticated</missingSet></returnval></Envelope>",
            );
        }
        if !is_known {
            return soap_fault("NotAuthenticated", "log in");
        }
        if body.contains("<FindByUuid>") {
            return soap_fault("InvalidArgument", "uuid");
        }
        answer(
            200,
            "<Envelope><returnval><item>vm-1</item></returnval></Envelope>",
        )
    }
}

fn soap_fault(code: &str, text: &str) -> http::Response<Bytes> {
    answer(
        500,
        format!(
            "<Envelope><Fault><faultstring>{text}</faultstring><detail>{code}</detail></Fault>\
             </Envelope>"
        ),
    )
}

async fn vcenter() -> (Arc<Mutex<VCenter>>, Client) {
    let vcenter = Arc::new(Mutex::new(VCenter::default()));
    let answering = Arc::clone(&vcenter);
    let server = Server::answering(move |request| answering.lock().unwrap().answer(request)).await;
    let table = CodeTable::read_by(fault)
        .in_success(missing)
        .on("NotAuthenticated", ErrorKind::Unauthenticated)
        .on("InvalidLogin", ErrorKind::Unauthenticated)
        .on("InvalidArgument", ErrorKind::Invalid)
        .on("ManagedObjectNotFound", ErrorKind::NotFound);
    let anonymous = client(
        format!("http://{}", server.address),
        HttpSettings::default(),
    )
    .header("Accept", "text/xml")
    .error_map(table)
    .build()
    .unwrap();
    let login = Arc::new(Login(anonymous.clone()));
    let sessions = Arc::new(TokenCache::new(login, Arc::new(SystemClock)));
    let auth = Auth::renewed(sessions, |cookie: &Secret, request| {
        set_secret_header(request, &COOKIE, cookie.expose())
    });
    let client = anonymous.derive().authorizer(auth).build().unwrap();
    (vcenter, client)
}

#[tokio::test]
async fn a_session_that_has_ended_is_renewed_whatever_the_status_says() {
    for (case, method) in [
        ("a fault with status 500", "PowerOnVM_Task"),
        (
            "a fault within an answer with status 200",
            "RetrievePropertiesEx",
        ),
    ] {
        let (vcenter, client) = vcenter().await;
        client.send(soap(method, "")).await.unwrap();
        vcenter.lock().unwrap().sessions.clear();
        let calls = (0..8).map(|_| client.send(soap(method, "")));
        for call in futures::future::join_all(calls).await {
            let items = call.unwrap().decode(|body| items(body, "returnval"));
            assert_eq!(items.unwrap(), ["vm-1"], "{case}");
        }
        assert_eq!(vcenter.lock().unwrap().logins, 2, "{case}");
    }
}

#[tokio::test]
async fn a_fault_with_status_500_is_what_its_code_says() {
    let (_, client) = vcenter().await;
    let error = client.send(soap("FindByUuid", "")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.had_no_effect(), "the cloud refused: {error}");
    let failure = CallFailure::of(&error).unwrap();
    assert_eq!(failure.code.as_deref(), Some("InvalidArgument"));
    assert_eq!(failure.attempts, 1);
}

#[tokio::test]
async fn a_password_that_a_fault_repeats_is_not_shown() {
    let (_, client) = vcenter().await;
    let login = soap("Login", "<password>hunter&amp;3</password>").anonymous();
    let error = client.send(login).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthenticated);
    let text = error.to_string();
    assert!(text.contains("wrong: [redacted]"), "{text}");
}

#[tokio::test]
async fn a_body_that_is_no_document_is_no_empty_list() {
    for (case, body, why) in [
        ("nothing", "", "it is empty"),
        ("blanks", " \r\n", "it is empty"),
        (
            "a page of HTML",
            "\n<!DOCTYPE html><html></html>",
            "a page of HTML",
        ),
        (
            "another page of HTML",
            "<HTML lang='en'/>",
            "a page of HTML",
        ),
        ("another document", "<other/>", "no <returnval>"),
        ("cut off", "<returnval><item>a</item>", "no <returnval>"),
    ] {
        let server = Server::answering(move |_| answer(200, body)).await;
        let client = client(
            format!("http://{}", server.address),
            HttpSettings::default(),
        );
        let response = client
            .build()
            .unwrap()
            .send(soap("List", ""))
            .await
            .unwrap();
        let error = response
            .decode(|body| items(body, "returnval"))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed, "{case}");
        assert!(error.to_string().contains(why), "{case}: {error}");
    }
}

// The query protocol, as EC2 speaks it.

fn describe_instances() -> Request {
    Request::post("/")
        .named("DescribeInstances")
        .form([("Action", "DescribeInstances"), ("MaxResults", "2")])
        .read_only()
}

fn ec2_error(body: &[u8]) -> Option<Refusal> {
    let text = std::str::from_utf8(body).ok()?;
    Some(Refusal {
        code: Some(element(text, "Code")?.to_owned()),
        message: element(text, "Message").map(str::to_owned),
        request_id: element(text, "RequestID").map(str::to_owned),
    })
}

fn ec2_table() -> CodeTable {
    CodeTable::read_by(ec2_error)
        .on("InvalidInstanceID.NotFound", ErrorKind::NotFound)
        .on("InvalidInstanceID.Malformed", ErrorKind::Invalid)
        .on(
            "RequestLimitExceeded",
            ErrorKind::Throttled { retry_after: None },
        )
}

async fn ec2(
    answering: impl Fn(&http::Request<Bytes>) -> http::Response<Bytes> + Send + Sync + 'static,
) -> (Server, Client) {
    let server = Server::answering(answering).await;
    let client = client(
        format!("http://{}", server.address),
        HttpSettings::default(),
    )
    .error_map(ec2_table())
    .build()
    .unwrap();
    (server, client)
}

fn instances_page(items: &[&str], next: &str) -> http::Response<Bytes> {
    let items = match items {
        [] => String::new(),
        items => format!("<item>{}</item>", items.join("</item><item>")),
    };
    answer(
        200,
        format!("<Instances>{items}</Instances><nextToken>{next}</nextToken>"),
    )
}

async fn all_instances(client: &Client) -> Result<Vec<String>, CloudError> {
    let read = |response: &Response| {
        let text = String::from_utf8_lossy(response.body());
        Ok(Page {
            items: response.decode(|body| items(body, "Instances"))?,
            next: Next::marker(element(&text, "nextToken").map(str::to_owned)),
            total: None,
        })
    };
    let pages = client
        .pages(describe_instances())
        .after_marker(|first, token| first.set_form("NextToken", token))
        .max_pages(5);
    Ok(pages.collect(String::clone, read).await?.items)
}

#[tokio::test]
async fn a_token_in_the_body_leads_from_page_to_page() {
    let (server, client) = ec2(|request| {
        let body = std::str::from_utf8(request.body()).unwrap();
        match body.split_once("NextToken=") {
            None => instances_page(&["i-1", "i-2"], "a/b="),
            Some((_, "a%2Fb%3D")) => instances_page(&[], "c"),
            Some((_, "c")) => instances_page(&["i-3"], ""),
            Some(_) => answer(400, ""),
        }
    })
    .await;
    assert_eq!(all_instances(&client).await.unwrap(), ["i-1", "i-2", "i-3"]);
    let seen = server.seen();
    let bodies: Vec<_> = seen
        .iter()
        .map(|request| std::str::from_utf8(request.body()).unwrap())
        .collect();
    assert_eq!(
        bodies,
        [
            "Action=DescribeInstances&MaxResults=2",
            "Action=DescribeInstances&MaxResults=2&NextToken=a%2Fb%3D",
            "Action=DescribeInstances&MaxResults=2&NextToken=c",
        ]
    );
}

#[tokio::test]
async fn a_token_that_comes_again_or_never_ends_is_no_list() {
    let (server, client) = ec2(|_| instances_page(&["i-1"], "same")).await;
    let error = all_instances(&client).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incomplete);
    assert_eq!(server.seen().len(), 2);

    let pages = std::sync::atomic::AtomicU32::new(0);
    let (_, client) = ec2(move |_| {
        let page = pages.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        instances_page(&["i-1"], &format!("t{page}"))
    })
    .await;
    let error = all_instances(&client).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incomplete);
    assert!(error.to_string().contains("more than 5 pages"), "{error}");
}

#[tokio::test]
async fn only_the_whole_code_says_that_an_instance_does_not_exist() {
    for (status, code, kind) in [
        (400, "InvalidInstanceID.NotFound", ErrorKind::NotFound),
        (400, "InvalidInstanceID.Malformed", ErrorKind::Invalid),
        (400, "InvalidInstanceID", ErrorKind::Invalid),
        (400, "SomethingElse.NotFound", ErrorKind::Invalid),
        (404, "NotFound", ErrorKind::Malformed),
    ] {
        let body = format!(
            "<Response><Errors><Error><Code>{code}</Code><Message>The instance ID 'i-1' is not right\
             </Message></Error></Errors><RequestID>req-7</RequestID></Response>"
        );
        let (_, client) = ec2(move |_| answer(status, body.clone())).await;
        let error = client.send(describe_instances()).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{code}");
        assert_eq!(error.request_id(), Some("req-7"), "{code}");
        let failure = CallFailure::of(&error).unwrap();
        assert_eq!(failure.code.as_deref(), Some(code));
    }
}
