//! Requests to our own servers, which are not behind a Kubernetes API server.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use cloudkeel_api::{Admission, AdmissionRequest, CloudError, TokioClock, Webhook};
use cloudkeel_embedded::EmbeddedApi;
use cloudkeel_emulator_hetzner::{HetznerCloud, ServerSpec, Settings as HetznerSettings};
use cloudkeel_local_cloud::simulated_cloud::{MachineSpec, Settings, SimulatedCloud};
use cloudkeel_manager::metrics::{BuildInfo, Metrics};
use cloudkeel_manager::serving::webhook_router;
use cloudkeel_page::{Buttons, PageData, Press, Source};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use tower_service::Service as _;

use super::message::Message;
use super::{bytes, owned, paused};
use crate::target::{Check, Reader, Target};

pub(super) const TARGETS: &[Target] = &[
    Target::new(
        "local-cloud",
        "requests to the local cloud and its control; its state can always be taken up again",
        local_requests,
        local_words,
        local_cloud,
    )
    .share(40),
    Target::new(
        "hetzner-emulator",
        "requests to the emulated Hetzner Cloud and Robot",
        hetzner_requests,
        || {
            owned(&[
                "label_selector=",
                "page=",
                "per_page=",
                "sort=",
                "/actions/",
                "servers",
                "a in (b)",
            ])
        },
        emulator,
    )
    .share(40),
    Target::new(
        "embedded-api",
        "requests to the embedded API: paths, queries, selectors, patches of every kind",
        embedded_requests,
        embedded_words,
        embedded,
    )
    .share(20),
    Target::new(
        "webhook",
        "AdmissionReviews",
        || bytes(&[ADMISSION]),
        || owned(&["request", "uid", "oldObject", "namespace"]),
        webhook,
    )
    .share(40),
    Target::new(
        "page",
        "buttons of the page",
        || bytes(&[PRESS, "GET /picture\n\n", "GET /\n\n"]),
        || owned(&["id", "on", "add", "power-off"]),
        page,
    )
    .share(40),
];

const PRESS: &str = "POST /press\ncontent-type: application/json\nx-cloudkeel-pressed: 1\n\n\
                     {\"id\": \"power-off\", \"on\": \"node-1\"}";

const ADMISSION: &str = "POST /hook\ncontent-type: application/json\n\n\
    {\"apiVersion\": \"admission.k8s.io/v1\", \"kind\": \"AdmissionReview\", \"request\": {\"uid\": \"u\", \
    \"operation\": \"CREATE\", \"kind\": {\"group\": \"\", \"version\": \"v1\", \"kind\": \"Service\"}, \
    \"resource\": {\"group\": \"\", \"version\": \"v1\", \"resource\": \"services\"}, \"name\": \"a\", \
    \"namespace\": \"b\", \"object\": {\"a\": 1}, \"oldObject\": null}}";

fn with_token(token: &str, lines: &[&str]) -> Vec<Vec<u8>> {
    let whole = |line: &&str| {
        let (first, body) = line.split_once('\n').unwrap_or((line, ""));
        format!("{first}\nauthorization: Bearer {token}\ncontent-type: application/json\n\n{body}")
    };
    lines.iter().map(|line| whole(line).into_bytes()).collect()
}

fn local_requests() -> Vec<Vec<u8>> {
    let lines = [
        "GET /v1/scope",
        "GET /v1/machines?page=1&per_page=2",
        "GET /v1/machines/1",
        "GET /v1/balancers?label=a%3Db",
        "POST /v1/balancers\n{\"name\": \"b\", \"labels\": {\"a\": \"b\"}, \"listeners\": [{\"port\": 80, \
         \"protocol\": \"tcp\", \"targetPort\": 30080}], \"targets\": [{\"machine\": 1}]}",
        "PUT /v1/balancers/3\n{\"listeners\": []}",
        "DELETE /v1/balancers/3",
        "POST /v1/routes\n{\"destination\": \"10.244.0.0/24\", \"machine\": 1}",
        "GET /v1/routes",
        "GET /control/settings",
        "PATCH /control/settings\n{\"page_size\": 2, \"latency\": {\"fixed\": \"1s\"}}",
        "PUT /control/settings\n{\"seed\": 1, \"page_size\": 0}",
        "POST /control/faults\n{\"operation\": \"list_machines\", \"fault\": \"truncate\"}",
        "POST /control/machines\n{\"name\": \"x\", \"private\": [\"10.0.0.9\"]}",
    ];
    with_token(SimulatedCloud::TOKEN, &lines)
}

fn local_words() -> Vec<String> {
    owned(&[
        "page_size",
        "rate_limit",
        "burst",
        "refill",
        "machines",
        "/v1/",
        "/control/",
        "targetPort",
        "healthCheck",
        "sourceRanges",
        "proxyProtocol",
        "page=",
        "per_page=",
        "If-Match: \"1\"\n",
    ])
}

fn local_cloud() -> Reader {
    Box::new(|input| {
        paused().block_on(async {
            let cloud = SimulatedCloud::new(Settings::default());
            for name in ["node-1", "node-2", "node-3"] {
                cloud
                    .add_machine(MachineSpec::named(name))
                    .expect("a machine");
            }
            let router = cloud.router_with_control();
            send(&router, input).await?;
            for after in with_token(
                SimulatedCloud::TOKEN,
                &["GET /v1/machines", "GET /v1/balancers"],
            ) {
                send(&router, &after).await?;
            }
            let snapshot = cloud.snapshot();
            match SimulatedCloud::restore(Settings::default(), SimulatedCloud::REGION, snapshot) {
                Ok(_) => Ok(()),
                Err(why) => Err(format!("what it did cannot be taken up again: {why}")),
            }
        })
    })
}

fn hetzner_requests() -> Vec<Vec<u8>> {
    let lines = [
        "GET /v1/servers?name=node-1&page=1&per_page=1&sort=id:asc",
        "GET /v1/servers?label_selector=a%3Db%2C!c",
        "GET /v1/networks",
        "POST /v1/load_balancers\n{\"name\": \"b\", \"load_balancer_type\": \"lb11\", \"location\": \"fsn1\", \
         \"algorithm\": {\"type\": \"round_robin\"}, \"labels\": {\"a\": \"b\"}, \"services\": [{\"protocol\": \"tcp\", \
         \"listen_port\": 80, \"destination_port\": 30080, \"health_check\": {\"protocol\": \"tcp\", \"port\": 1, \
         \"interval\": 15, \"timeout\": 10, \"retries\": 3}}], \"targets\": [{\"type\": \"server\", \"server\": {\"id\": 1}}]}",
        "POST /v1/networks/1/actions/add_route\n{\"destination\": \"10.244.0.0/24\", \"gateway\": \"10.0.0.2\"}",
        "POST /v1/certificates\n{\"name\": \"c\", \"type\": \"managed\", \"domain_names\": [\"a.b\"]}",
        "POST /v1/servers\n{\"name\": \"x\", \"server_type\": \"cx22\", \"image\": \"ubuntu-24.04\"}",
        "GET /robot/server",
        "GET /control/calls",
        "PUT /control/settings\n{\"page_size\": 0}",
        "POST /control/faults\n{\"fault\": {\"kind\": \"status\"}}",
    ];
    with_token(HetznerCloud::TOKEN, &lines)
}

fn emulator() -> Reader {
    Box::new(|input| {
        paused().block_on(async {
            let cloud = HetznerCloud::new(HetznerSettings::default());
            let range = "10.0.0.0/16".parse().expect("a range");
            let network = cloud.add_network("kube", range).expect("a network").id;
            for name in ["node-1", "node-2", "node-3"] {
                let spec = ServerSpec::named(name).in_network(network);
                cloud.add_server(spec).expect("a server");
            }
            let router = cloud.router();
            send(&router, input).await?;
            let after = [
                "GET /v1/servers",
                "GET /v1/load_balancers",
                "GET /v1/networks",
            ];
            for after in with_token(HetznerCloud::TOKEN, &after) {
                send(&router, &after).await?;
            }
            Ok(())
        })
    })
}

/// Sends a request; a server that gives up on it is broken.
async fn send(router: &Router, input: &[u8]) -> Check {
    let Some(request) = Message::read(input).request() else {
        return Ok(());
    };
    let mut router = router.clone();
    let answer = router.call(request.map(Body::from));
    let answer = tokio::time::timeout(Duration::from_hours(24), answer).await;
    let Ok(answer) = answer else { return Ok(()) };
    let answer = answer.unwrap_or_else(|never: Infallible| match never {});
    not_given_up(&answer.map(|_| Bytes::new()))
}

fn not_given_up(answer: &Response<Bytes>) -> Check {
    if answer.status() == StatusCode::INTERNAL_SERVER_ERROR {
        return Err(format!("500: {:?}", answer.body()));
    }
    Ok(())
}

fn embedded_requests() -> Vec<Vec<u8>> {
    let lines = [
        "GET /api/v1/nodes?labelSelector=a%3Db%2Cc+in+%28d%29&fieldSelector=metadata.name%3Dn&limit=1",
        "GET /api/v1/nodes?watch=1&resourceVersion=1&timeoutSeconds=1&allowWatchBookmarks=true",
        "GET /api/v1/namespaces/default/services/web",
        "POST /api/v1/namespaces/default/services\n{\"metadata\": {\"name\": \"b\"}, \"spec\": {\"type\": \"LoadBalancer\", \
         \"ports\": [{\"port\": 80, \"nodePort\": 30081}], \"clusterIP\": \"10.96.0.9\"}}",
        "DELETE /api/v1/nodes/n\n{\"preconditions\": {\"uid\": \"x\"}, \"propagationPolicy\": \"Foreground\"}",
        "GET /openapi/v3",
        "GET /apis",
        "POST /apis/authentication.k8s.io/v1/tokenreviews\n{\"spec\": {\"token\": \"t\"}}",
        "PUT /apis/coordination.k8s.io/v1/namespaces/default/leases/l\n{\"metadata\": {\"name\": \"l\"}, \"spec\": \
         {\"leaseDurationSeconds\": 15}}",
    ];
    let patches = [
        (
            "application/json-patch+json",
            "[{\"op\": \"add\", \"path\": \"/metadata/labels/a\", \"value\": \"b\"}, \
          {\"op\": \"test\", \"path\": \"/metadata/name\", \"value\": \"n\"}, {\"op\": \"move\", \"from\": \"/spec\", \"path\": \"/x\"}]",
        ),
        (
            "application/merge-patch+json",
            "{\"metadata\": {\"labels\": {\"a\": null}}, \"spec\": {\"taints\": [{\"key\": \"k\", \"effect\": \"NoSchedule\"}]}}",
        ),
        (
            "application/strategic-merge-patch+json",
            "{\"status\": {\"conditions\": [{\"type\": \"Ready\", \"status\": \"True\"}, \
          {\"type\": \"X\", \"$patch\": \"delete\"}], \"$setElementOrder/conditions\": [{\"type\": \"Ready\"}]}, \
          \"spec\": {\"$retainKeys\": [\"taints\"]}, \"metadata\": {\"$deleteFromPrimitiveList/finalizers\": [\"a\"]}}",
        ),
    ];
    let patch = |(kind, body)| {
        format!("PATCH /api/v1/nodes/n/status?fieldManager=m\ncontent-type: {kind}\n\n{body}")
    };
    let patches = patches.map(patch).map(String::into_bytes);
    with_token("t", &lines).into_iter().chain(patches).collect()
}

fn embedded_words() -> Vec<String> {
    owned(&[
        "$patch",
        "$setElementOrder/conditions",
        "$retainKeys",
        "$deleteFromPrimitiveList/finalizers",
        "replace",
        "merge",
        "/status",
        "continue=",
        "labelSelector=",
        "fieldSelector=",
        "resourceVersionMatch=",
        "dryRun=All",
        "generateName",
        "finalizers",
        "ownerReferences",
        "resourceVersion",
        "nodePort",
        "clusterIPs",
        "ipFamilies",
        "limit=",
        "watch=true",
        "sendInitialEvents=true",
        "~1",
        "~0",
        "/-",
        "remove",
        "copy",
        "from",
    ])
}

fn embedded() -> Reader {
    Box::new(|input| {
        paused().block_on(async {
            let epoch = Timestamp::from_second(1_767_225_600).unwrap_or_default();
            let clock = Arc::new(TokioClock::starting_at(epoch));
            let client = EmbeddedApi::builder().clock(clock).build().client("me");
            let node = "POST /api/v1/nodes\n{\"metadata\": {\"name\": \"n\", \"finalizers\": [\"a\"]}, \"status\": \
                        {\"conditions\": [{\"type\": \"X\", \"status\": \"True\"}]}}";
            let service = "POST /api/v1/namespaces/default/services\n{\"metadata\": {\"name\": \"web\"}, \"spec\": \
                           {\"ports\": [{\"port\": 80}]}}";
            let before = with_token("t", &[node, service]);
            let after = with_token("t", &["GET /api/v1/nodes", "GET /api/v1/namespaces/default/services"]);
            let requests = before.iter().map(Vec::as_slice);
            let requests = requests.chain([input]).chain(after.iter().map(Vec::as_slice));
            for request in requests {
                let request = Message::read(request).request();
                let Some(request) = request else { continue };
                ask(&client, request).await?;
            }
            Ok(())
        })
    })
}

async fn ask(client: &kube::Client, request: Request<Bytes>) -> Check {
    let request = request.map(|body| kube::client::Body::from(body.to_vec()));
    let Ok(answer) = client.send(request).await else {
        return Ok(());
    };
    let status = answer.status();
    // A watch has no end.
    let body = tokio::time::timeout(Duration::from_mins(1), answer.into_body().collect()).await;
    let body = body
        .ok()
        .and_then(Result::ok)
        .map(http_body_util::Collected::to_bytes);
    let mut answer = Response::new(body.unwrap_or_default());
    *answer.status_mut() = status;
    not_given_up(&answer)
}

struct AllowAll;

#[async_trait]
impl Webhook for AllowAll {
    fn name(&self) -> &'static str {
        "allow-all"
    }

    fn path(&self) -> &'static str {
        "/hook"
    }

    async fn review(&self, _request: &AdmissionRequest) -> Result<Admission, CloudError> {
        Ok(Admission::Allow {
            patch: Vec::new(),
            warnings: Vec::new(),
        })
    }
}

fn webhook() -> Reader {
    let metrics = Metrics::new(&BuildInfo::default(), Timestamp::UNIX_EPOCH);
    let router = webhook_router(vec![Arc::new(AllowAll)], metrics.webhooks).expect("one webhook");
    let runtime = paused();
    Box::new(move |input| runtime.block_on(send(&router, input)))
}

/// A page with nothing on it, and buttons that repeat what was pressed.
struct Blank;

#[async_trait]
impl Source for Blank {
    async fn data(&self) -> PageData {
        PageData::default()
    }
}

#[async_trait]
impl Buttons for Blank {
    async fn press(&self, press: Press) -> Result<String, String> {
        Err(format!("{:?} {}", press.id, press.on))
    }
}

fn page() -> Reader {
    let router = cloudkeel_page::router(Arc::new(Blank), Some(Arc::new(Blank)));
    let runtime = paused();
    Box::new(move |input| runtime.block_on(send(&router, input)))
}
