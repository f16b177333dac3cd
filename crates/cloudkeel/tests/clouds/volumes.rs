//! PersistentVolumes are labelled by the webhook, which a real API server calls over TLS as the objects in `deploy/` say,
//! under the roles in `deploy/` alone.

use std::process::Command;

use cloudkeel_emulator_openstack::Kind;
use cloudkeel_testkit::cluster::eventually;
use cloudkeel_testkit::control_plane::ControlPlane;
use cloudkeel_testkit::simulated_cloud::wire::Volume;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{PersistentVolume, Secret, Service};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::account::Account;
use crate::harness::{DEADLINE, Manager};
use crate::moto::Moto;
use crate::permissions::{documents, granted_to, manifests};
use crate::scrape::free_port;
use crate::several::Cluster;

const OBJECTS: &str = "extras/persistent-volume-labels.yaml";
const NAME: &str = "cloudkeel-webhook";
const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
/// The flags that the file asks for.
const FLAGS: [&str; 3] = [
    "--feature-gates=CloudControllerManagerWebhook=true",
    "--webhooks=pvlabel",
    "--webhook-service=kube-system/cloudkeel-webhook",
];

fn of_kind<T: DeserializeOwned>(kind: &str, change: impl FnOnce(&mut Value)) -> T {
    let all = documents(&manifests().join(OBJECTS));
    let found = all.into_iter().find(|it| it["kind"] == kind);
    let mut found = found.unwrap_or_else(|| panic!("no {kind}"));
    change(&mut found);
    serde_json::from_value(found).expect("an object")
}

async fn create<T>(api: &Api<T>, object: &T)
where
    T: Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    let made = api.create(&PostParams::default(), object).await;
    made.expect("the object is made");
}

/// There is no kube-proxy and no cluster DNS here, so the Service of the webhook leads to this machine by its name, and
/// the port stands in the configuration. The rest is as it is shipped.
async fn apply(client: &Client, port: u16) {
    let service: Service = of_kind("Service", |service| {
        assert_eq!(service["spec"]["ports"][0]["targetPort"], 10260);
        service["spec"] = json!({"type": "ExternalName", "externalName": "localhost"});
    });
    create(&Api::namespaced(client.clone(), "kube-system"), &service).await;
    let secret: Secret = of_kind("Secret", |_| {});
    create(&Api::namespaced(client.clone(), "kube-system"), &secret).await;
    let configuration: MutatingWebhookConfiguration =
        of_kind("MutatingWebhookConfiguration", |configuration| {
            configuration["webhooks"][0]["clientConfig"]["service"]["port"] = json!(port);
        });
    create(&Api::all(client.clone()), &configuration).await;
}

fn volume(name: &str, driver: &str, disk: &str) -> PersistentVolume {
    let volume = json!({
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": driver, "volumeHandle": disk},
        },
    });
    serde_json::from_value(volume).expect("a PersistentVolume")
}

/// What a volume of this name would become. Nothing is written.
async fn attempt(
    volumes: &Api<PersistentVolume>,
    volume: &PersistentVolume,
) -> Result<PersistentVolume, kube::Error> {
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    volumes.create(&dry_run, volume).await
}

fn place_of(volume: &PersistentVolume) -> Option<(String, String)> {
    let labels = volume.metadata.labels.as_ref()?;
    Some((labels.get(ZONE)?.clone(), labels.get(REGION)?.clone()))
}

/// A manager of all clouds under exactly the shipped roles, and the objects of the webhook.
async fn start(cluster: &Cluster) -> Manager {
    let text = std::fs::read_to_string(manifests().join(OBJECTS)).expect("the file is there");
    for flag in FLAGS {
        assert!(text.contains(flag), "the file does not say {flag}");
    }
    let port = free_port();
    apply(&cluster.client, port).await;
    let account = Account::create(&cluster.client).await;
    let rbac = [
        "cluster",
        "election",
        "events",
        "node",
        "service",
        "lifecycle",
        "serving",
    ];
    let files = rbac
        .iter()
        .map(|file| manifests().join(format!("rbac/{file}.yaml")));
    let files = files.chain([manifests().join(OBJECTS)]);
    let shipped: Vec<_> = files.flat_map(|file| documents(&file)).collect();
    account.grant(&granted_to("cloudkeel", &shipped)).await;
    let access = cluster.kubeconfig_of(&account).await;
    let port = format!("--webhook-secure-port={port}");
    let flags = [&FLAGS[..], &[&port, "--webhook-bind-address=127.0.0.1"]].concat();
    cluster.start_as(&access, free_port(), &flags)
}

fn local(name: &str, disk: &str) -> PersistentVolume {
    volume(name, "local.cloudkeel.dev", disk)
}

/// A volume that is really written.
async fn is_labelled(volumes: &Api<PersistentVolume>) {
    eventually("labels by the webhook", DEADLINE, || async {
        let made = attempt(volumes, &local("local", "vol-1")).await;
        let place = place_of(&made.expect("it is never blocked"));
        place == Some(("a__b".to_owned(), "here".to_owned()))
    })
    .await;
    let made = volumes
        .create(&PostParams::default(), &local("local", "vol-1"))
        .await;
    let affinity = made.expect("the volume is made").spec;
    let affinity = affinity.and_then(|spec| spec.node_affinity?.required);
    let terms = affinity.expect("an affinity").node_selector_terms;
    let zones = terms[0].match_expressions.as_ref().expect("expressions")[0].clone();
    let expected = Some(vec!["a".to_owned(), "b".to_owned()]);
    assert_eq!((zones.key.as_str(), zones.values), (ZONE, expected));
    let deleted = volumes.delete("local", &DeleteParams::default()).await;
    deleted.expect("the volume is there");
}

/// A certificate that is lost is made again, and trusted again.
async fn certificate_is_made_again(cluster: &Cluster, volumes: &Api<PersistentVolume>) {
    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), "kube-system");
    let mut secret = secrets.get(NAME).await.expect("the Secret is there");
    let before = secret.data.take().expect("the certificate is in it");
    let emptied = secrets.replace(NAME, &PostParams::default(), &secret).await;
    emptied.expect("the Secret is emptied");
    eventually("a new certificate", DEADLINE, || async {
        let secret = secrets.get(NAME).await.expect("the Secret is there");
        secret.data.is_some_and(|data| data != before)
    })
    .await;
    eventually("labels with the new certificate", DEADLINE, || async {
        let made = attempt(volumes, &local("again", "vol-1")).await;
        place_of(&made.expect("it is never blocked")).is_some()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn volumes_of_several_clouds_are_labelled_and_nothing_ever_blocks_them() {
    let cluster = Cluster::new().await;
    let disk = Volume {
        id: "vol-1".to_owned(),
        zones: vec!["a".to_owned(), "b".to_owned()],
        region: "here".to_owned(),
    };
    cluster.clouds.local.add_volume(disk).expect("a disk");
    let az = json!({"availability_zone": "az1", "name": "disk"});
    let cinder = cluster.clouds.openstack.add(Kind::Volume, az);
    let mut manager = start(&cluster).await;

    let volumes: Api<PersistentVolume> = Api::all(cluster.client.clone());
    is_labelled(&volumes).await;
    let made = attempt(
        &volumes,
        &volume("cinder", "cinder.csi.openstack.org", &cinder),
    )
    .await;
    let place = place_of(&made.expect("it is allowed"));
    assert_eq!(place, Some(("az1".to_owned(), "RegionOne".to_owned())));
    let missing = attempt(&volumes, &local("missing", "vol-9")).await;
    let denied = missing.expect_err("its disk does not exist").to_string();
    assert!(
        denied.contains("vol-9") && denied.contains("pvlabel.cloudkeel.dev"),
        "{denied}"
    );
    let made = attempt(&volumes, &volume("other", "other.example.com", "x")).await;
    assert_eq!(place_of(&made.expect("it is allowed")), None);
    certificate_is_made_again(&cluster, &volumes).await;

    manager.signal("TERM");
    manager.ended().await;
    let made = attempt(&volumes, &local("dead", "vol-1")).await;
    let made = made.expect("a dead webhook blocks nothing");
    assert_eq!(place_of(&made), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn volumes_of_aws_are_labelled_too() {
    let plane = ControlPlane::start().await.expect("a control plane");
    let moto = Moto::new().await;
    let disk = moto.change("add_volume", json!([])).await;
    let disk = disk.as_str().expect("an ID");
    let folder = TempDir::new().expect("a temporary folder");
    let config = folder.path().join("cloud.conf");
    std::fs::write(&config, moto.cloud_config("")).expect("the file is written");
    let port = free_port();
    apply(&plane.client(), port).await;
    let access = plane.kubeconfig_for("aws", &["system:masters"]);
    let mut program = Command::new(env!("CARGO_BIN_EXE_cloudkeel"));
    program
        .arg("--cloud-provider=aws")
        .arg(format!("--cloud-config={}", config.display()))
        .arg(format!("--kubeconfig={}", access.display()))
        .args(["--secure-port=0", "--configure-cloud-routes=false"])
        .args(FLAGS)
        .arg(format!("--webhook-secure-port={port}"))
        .arg("--webhook-bind-address=127.0.0.1")
        .env("AWS_ACCESS_KEY_ID", moto.account())
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("AWS_ENDPOINT_URL", &moto.url);
    let _manager = Manager::spawn(program, folder.path().join("log"));
    let volumes: Api<PersistentVolume> = Api::all(plane.client());
    let ours = volume("ebs", "ebs.csi.aws.com", disk);
    let place = eventually("labels by the webhook", DEADLINE, || async {
        place_of(&attempt(&volumes, &ours).await.expect("it is never blocked"))
    })
    .await;
    assert_eq!(place.1, "us-east-1");
    assert!(place.0.starts_with("us-east-1"), "{place:?}");
}
