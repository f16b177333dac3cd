//! The webhook of DigitalOcean's admission server, served by the program itself and called by a real API server as the
//! objects in `deploy/` say.

use std::net::Ipv4Addr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cloudkeel_emulator_digitalocean::{DigitalOceanCloud, Operation, Settings};
use cloudkeel_testkit::cluster::{eventually, unique_name};
use cloudkeel_testkit::control_plane::ControlPlane;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::charts::account;
use crate::digitalocean::{COMMAND, ENV, PREFIX};
use crate::harness::{DEADLINE, Manager, package};
use crate::permissions::parse;
use crate::pod;
use crate::scrape::free_port;

const OBJECTS: &str = "../../deploy/digitalocean/admission-webhook.yaml";

/// The flags that the file asks for, but for the names of its files.
const FLAGS: [&str; 2] = [
    "--feature-gates=CloudControllerManagerWebhook=true",
    "--webhooks=digitalocean-lb-service",
];

/// The file, and its objects by kind.
struct Objects {
    text: String,
    documents: Vec<Value>,
}

impl Objects {
    fn read() -> Self {
        let text = std::fs::read_to_string(package().join(OBJECTS)).expect("the file is there");
        let documents = parse(&text);
        Self { text, documents }
    }

    fn of_kind(&self, kind: &str) -> Value {
        let mut documents = self.documents.iter();
        let found = documents.find(|document| document["kind"] == kind);
        found.unwrap_or_else(|| panic!("no {kind}")).clone()
    }

    /// What cert-manager makes of the Certificate: it is self-signed, so it is its own authority.
    fn certificate(&self) -> rcgen::CertifiedKey<rcgen::KeyPair> {
        let names = self.of_kind("Certificate")["spec"]["dnsNames"].clone();
        let names: Vec<String> = serde_json::from_value(names).expect("names");
        rcgen::generate_simple_self_signed(names).expect("a certificate")
    }
}

/// Whether a Service would be written, and what the API server says if not. Nothing is written.
async fn attempt(services: &Api<Service>, annotations: &[(&str, &str)]) -> Result<(), kube::Error> {
    let annotations = annotations.iter();
    let annotations: serde_json::Map<String, Value> = annotations
        .map(|(key, value)| (format!("{PREFIX}{key}"), json!(value)))
        .collect();
    let service = json!({
        "metadata": {"name": unique_name("web"), "annotations": annotations},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    });
    let service = serde_json::from_value(service).expect("a Service");
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    services.create(&dry_run, &service).await.map(drop)
}

/// There is no kube-proxy and no cluster DNS here, so the Service of the webhook leads to this machine by its name, and the
/// port stands in the configuration. The rest is as it is shipped, and so is the name that the certificate is checked for.
async fn register(plane: &ControlPlane, objects: &Objects, port: u16, ca: &str) {
    let mut service = objects.of_kind("Service");
    assert_eq!(service["spec"]["ports"][0]["targetPort"], 10260);
    service["spec"] = json!({"type": "ExternalName", "externalName": "localhost"});
    let services: Api<Service> = Api::namespaced(plane.client(), "kube-system");
    let service = serde_json::from_value(service).expect("a Service");
    let post = PostParams::default();
    let created = services.create(&post, &service).await;
    created.expect("the Service is written");
    let mut configuration = objects.of_kind("ValidatingWebhookConfiguration");
    let client = &mut configuration["webhooks"][0]["clientConfig"];
    client["caBundle"] = json!(BASE64_STANDARD.encode(ca));
    client["service"]["port"] = json!(port);
    let configuration = serde_json::from_value(configuration).expect("a configuration");
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(plane.client());
    let created = configurations.create(&post, &configuration).await;
    created.expect("the configuration is written");
}

#[tokio::test]
async fn the_api_server_asks_the_webhook_and_goes_on_without_it() {
    let objects = Objects::read();
    for flag in FLAGS {
        assert!(objects.text.contains(flag), "the file does not say {flag}");
    }
    let plane = ControlPlane::start().await.expect("a control plane");
    let cloud = DigitalOceanCloud::new(Settings::default());
    let served = cloud.serve_on_loopback().await.expect("a port on loopback");
    let folder = TempDir::new().expect("a temporary folder");
    let certificate = objects.certificate();
    let ca = certificate.cert.pem();
    let (tls, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    std::fs::write(&tls, &ca).expect("the certificate is written");
    let pem = certificate.signing_key.serialize_pem();
    std::fs::write(&key, pem).expect("the key is written");
    let port = free_port();
    let account = account(&plane.client(), "digitalocean").await;
    let program = env!("CARGO_BIN_EXE_cloudkeel");
    let mut container = pod::container(&plane, &account, folder.path(), program).await;
    container
        .args(COMMAND)
        .args(FLAGS)
        .arg("--secure-port=0")
        .arg(format!("--webhook-bind-address={}", Ipv4Addr::LOCALHOST))
        .arg(format!("--webhook-secure-port={port}"))
        .arg(format!("--webhook-tls-cert-file={}", tls.display()))
        .arg(format!("--webhook-tls-private-key-file={}", key.display()))
        .envs(ENV)
        .env("DO_OVERRIDE_URL", served.api_url());
    let mut manager = Manager::spawn(container, folder.path().join("log"));
    register(&plane, &objects, port, &ca).await;

    let services: Api<Service> = Api::namespaced(plane.client(), "default");
    let bad = [("size-unit", "many")];
    // The API server takes a moment to learn of the webhook, and the manager to serve it.
    let refused = eventually("a refusal", DEADLINE, || async {
        attempt(&services, &bad).await.err()
    })
    .await;
    let refused = refused.to_string();
    let webhook = "validation-webhook.cloud-controller-manager.digitalocean.com";
    for part in [webhook, "denied the request", "size-unit: \"many\""] {
        assert!(refused.contains(part), "{refused}");
    }
    cloud.reset_calls();
    let admitted = attempt(&services, &[("size-unit", "2")]).await;
    admitted.unwrap_or_else(|error| panic!("{error}: {}", manager.log()));
    let asked = cloud.call_log();
    let asked = asked
        .iter()
        .filter(|call| call.body["validate_only"] == true);
    assert_eq!(asked.count(), 1, "DigitalOcean is asked about a good one");
    cloud.add_load_balancer("taken", &[]);
    let taken = attempt(&services, &[("name", "taken")]).await;
    let taken = taken.expect_err("the name is taken").to_string();
    let reason = "DigitalOcean refuses this load balancer: ";
    assert!(
        taken.contains(reason) && taken.contains("not unique"),
        "{taken}"
    );
    assert_eq!(cloud.load_balancers().len(), 1, "none was created");
    assert_eq!(cloud.calls().of(Operation::CreateLoadBalancer), 2);

    manager.signal("KILL");
    manager.ended().await;
    let unchecked = attempt(&services, &bad).await;
    unchecked.expect("a dead webhook keeps no Service from being written");
}
