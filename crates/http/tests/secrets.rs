//! Secrets in every place that a call has, and not one in any text about it.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may fail loudly"
)]

//!
//! A process of its own: `tracing` decides once per process whether a log line is wanted.

use std::error::Error as _;
use std::io;
use std::sync::{Arc, Mutex};

use cloudkeel_api::{CloudError, Secret};
use cloudkeel_http::testing::{Reply, Script};
use cloudkeel_http::{
    Body, Client, CodeTable, HeaderAuth, HttpSettings, Redactor, Request, TransportErrorKind,
};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const HIDDEN: &str = "hunter2";

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Captured {
    /// Everything that any library in this process logs from now on.
    fn start() -> Self {
        let captured = Self::default();
        let writer = captured.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::set_global_default(subscriber).unwrap();
        captured
    }

    fn take(&self) -> String {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap());
        String::from_utf8(bytes).unwrap()
    }
}

fn everywhere() -> Request {
    Request::post("/servers/{id}")
        .param("id", 7)
        .query("access_token", "query-hunter2")
        .query("harmless", "shown-query")
        .header("X-Subject-Token", "header-hunter2")
        .header("Cookie", "session=hunter2")
        .header("X-Harmless", "shown-header")
        .json(json!({
            "name": "shown-body",
            "password": "body-hunter2",
            "deep": [{"clientSecret": {"value": "hunter2"}}],
            "pet_name": "hunter2",
        }))
}

fn echo(status: u16) -> Reply {
    let body = json!({
        "error": {"code": "odd", "message": "bad token=hunter2 for credential-hunter2, not query-hunter2, \
            header-hunter2 or body-hunter2"},
        "adminPass": "hunter2",
        "pet_name": "hunter2",
        "shown": "shown-answer",
    });
    Reply::json(status, &body)
        .header("Set-Cookie", "session=hunter2")
        .header("X-Subject-Token", "hunter2")
        .header("Location", "https://joe:hunter2@host/?sig=hunter2")
        .header("X-Request-Id", "id-credential-hunter2")
        .header("X-Harmless", "shown-answer-header")
}

fn chain(error: &CloudError) -> String {
    let mut text = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text} | {error} {error:?}");
        source = error.source();
    }
    text
}

#[tokio::test]
async fn no_secret_reaches_a_log_or_an_error() {
    let captured = Captured::start();
    scripted(&captured).await;
    logins(&captured).await;
    on_a_socket(&captured).await;
}

async fn scripted(captured: &Captured) {
    let script = Script::new([
        echo(200),
        echo(400),
        echo(302),
        Reply::text(
            200,
            r#"{"password":"hunter2","pet_name":"credential-hunter2"#,
        ),
        Reply::text(502, "<p>token=hunter2</p>"),
        Reply::broken(TransportErrorKind::Broken),
    ]);
    let client = Client::builder("https://api.example.com/v1")
        .transport(Arc::clone(&script) as _)
        .authorizer(HeaderAuth::bearer(Secret::new("credential-hunter2")))
        .error_map(CodeTable::new("/error/code", "/error/message"))
        .redactor(Redactor::with_fields(["pet_name"]))
        .build()
        .unwrap();
    // By itself a request knows the usual names only; `pet_name` is the client's.
    let alone = everywhere().json(json!({"password": "hunter2"}));
    let mut texts = vec![format!("{alone:?} {client:?}")];
    while script.left() > 0 {
        let error = match client.send(everywhere()).await {
            Ok(answer) => {
                texts.push(format!("{answer:?}"));
                answer.json::<Vec<u8>>().unwrap_err()
            }
            Err(error) => error,
        };
        texts.push(chain(&error));
    }
    assert_eq!(script.seen().len(), 6);
    for text in &texts {
        assert!(!text.contains(HIDDEN), "{text}");
    }
    let logs = captured.take();
    for line in logs.lines() {
        assert!(!line.contains(HIDDEN), "{line}");
    }
    for shown in [
        "shown-query",
        "shown-header",
        "shown-body",
        "shown-answer",
        "shown-answer-header",
        "[redacted]",
        "POST /servers/{id}",
        "TRACE",
        "DEBUG",
    ] {
        assert!(logs.contains(shown), "{shown} in {logs}");
    }
    let wire = &script.seen()[0];
    assert_eq!(wire.headers()["authorization"], "Bearer credential-hunter2");
    assert!(wire.uri().query().unwrap().contains("query-hunter2"));
}

/// What the libraries below the engine log must be clean too.
/// Logins and signatures of clouds that speak other things than JSON with a bearer token.
#[expect(clippy::too_many_lines, reason = "one table")]
async fn logins(captured: &Captured) {
    let soap = "<Login xmlns=\"urn:vim25\"><userName>joe</userName>\
                <password>a&amp;b-hunter2</password></Login>";
    let soap = Body::Raw {
        content_type: "text/xml",
        bytes: soap.into(),
    };
    let session = Request::get("/api/vm").header("vmware-api-session-id", "header-hunter2");
    let signed = Request::get("/ec2")
        .header("X-Amz-Security-Token", "session-hunter2")
        .header(
            "Authorization",
            "AWS4-HMAC-SHA256 Credential=A, Signature=sign-hunter2",
        );
    let form = [("username", "joe"), ("password", "form-hunter2")];
    let cookie = "vmware_soap_session=\"hunter2\"; Path=/";
    let soap_answer = "<returnval><sessionId>hunter2</sessionId></returnval>";
    // Each is refused too, with a message that repeats what was sent.
    for (case, request, answer, echo) in [
        (
            "SOAP, with the session in a cookie",
            Request::post("/sdk").body(soap),
            Reply::text(200, soap_answer).header("Set-Cookie", cookie),
            "a&b-hunter2",
        ),
        (
            "REST, with a bare token as the answer",
            Request::post("/api/session").confidential(),
            Reply::text(201, "\"hunter2\""),
            "",
        ),
        (
            "OAuth, with a form",
            Request::post("/sso/oauth/token").form(form),
            Reply::json(200, &json!({"access_token": "hunter2"})),
            "form-hunter2",
        ),
        (
            "a session in a header",
            session,
            Reply::text(200, "<html>header-hunter2"),
            "header-hunter2",
        ),
        (
            "a signature",
            signed,
            Reply::text(200, "<Code>session-hunter2 sign-hunter2</Code>"),
            "session-hunter2 sign-hunter2",
        ),
    ] {
        let refused = json!({"message": format!("not {echo}")});
        let script = Script::new([answer, Reply::json(400, &refused)]);
        let client = Client::builder("https://api.example.com")
            .transport(script)
            .error_map(CodeTable::new("/code", "/message"))
            .build()
            .unwrap();
        let response = client.send(request.clone()).await.unwrap();
        let unread = response.decode(|_| Err::<(), _>("not readable"));
        let unread = chain(&unread.unwrap_err());
        let error = chain(&client.send(request.clone()).await.unwrap_err());
        let logs = captured.take();
        assert!(logs.contains("TRACE"), "{case}");
        for text in [
            format!("{request:?}"),
            format!("{response:?}"),
            unread,
            error,
            logs,
        ] {
            assert!(!text.contains(HIDDEN), "{case}: {text}");
        }
    }
}

async fn on_a_socket(captured: &Captured) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut seen = vec![0; 10_000];
        let mut length = 0;
        while !seen[..length].ends_with(b"}") {
            length += stream.read(&mut seen[length..]).await.unwrap();
        }
        let answer = "HTTP/1.1 200 OK\r\nset-cookie: hunter2\r\ncontent-length: 22\r\n\r\n";
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream
            .write_all(br#"{"password":"hunter2"}"#)
            .await
            .unwrap();
        String::from_utf8_lossy(&seen[..length]).into_owned()
    });
    let client = Client::builder(base)
        .http(HttpSettings::default())
        .authorizer(HeaderAuth::bearer(Secret::new("credential-hunter2")))
        .redactor(Redactor::with_fields(["pet_name"]))
        .build()
        .unwrap();
    client.send(everywhere()).await.unwrap();
    let seen = server.await.unwrap();
    assert!(seen.contains("Bearer credential-hunter2"), "{seen}");
    let logs = captured.take();
    assert!(logs.contains("hyper"), "the libraries did log: {logs}");
    for line in logs.lines() {
        assert!(!line.contains(HIDDEN), "{line}");
    }
}
