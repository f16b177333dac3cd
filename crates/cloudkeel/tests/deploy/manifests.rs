//! Every manifest, as the API server sees it.

use std::path::PathBuf;

use crate::harness::World;
use crate::kubectl::Kubectl;
use crate::permissions::{documents, manifests};
use crate::workload;

/// All files of this name's kind under the manifests.
fn files(wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut folders = vec![manifests()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str());
            if path.is_dir() {
                folders.push(path);
            } else if name.is_some_and(&wanted) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

const STRICT: [&str; 3] = ["apply", "--server-side", "--validate=strict"];

#[tokio::test]
async fn every_file_and_every_installation_is_accepted_as_it_is() {
    let kubectl = Kubectl::new().await;
    let plain = files(|name| name != "kustomization.yaml");
    let sources = plain.into_iter().map(|file| ("-f", file));
    let folders = files(|name| name == "kustomization.yaml");
    let sources = sources.chain(folders.into_iter().map(|mut file| {
        file.pop();
        ("-k", file)
    }));
    let mut count = 0;
    for (flag, path) in sources {
        let path = path.to_str().expect("UTF-8");
        for dry_run in ["--dry-run=server", "--dry-run=none"] {
            let said = kubectl.run(STRICT.into_iter().chain([dry_run, flag, path]));
            assert!(said.success, "{path} {dry_run}: {said:#?}");
            assert!(!said.stderr.contains("Warning"), "{path}: {said:#?}");
        }
        count += 1;
    }
    assert!(count > 20, "only {count} were found");
}

/// What cert-manager makes of its two objects is left to it.
#[tokio::test]
async fn the_webhook_objects_of_digitalocean_are_accepted_and_lead_to_the_webhook() {
    let path = manifests().join("../digitalocean/admission-webhook.yaml");
    let documents = documents(&path);
    let own = documents.iter().filter(|document| {
        let group = document["apiVersion"].as_str().expect("a group");
        !group.starts_with("cert-manager.io/")
    });
    let own: Vec<_> = own.collect();
    assert_eq!((own.len(), documents.len()), (2, 4));
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let kubectl = Kubectl::new().await;
    for document in own {
        let file = folder.path().join("object.json");
        std::fs::write(&file, document.to_string()).expect("the file is written");
        let file = file.to_str().expect("UTF-8");
        let said = kubectl.run(STRICT.into_iter().chain(["--dry-run=server", "-f", file]));
        assert!(said.success, "{said:#?}");
        if document["kind"] == "ValidatingWebhookConfiguration" {
            let webhook = &document["webhooks"][0];
            assert_eq!(webhook["clientConfig"]["service"]["path"], "/lb-service");
            assert_eq!(webhook["failurePolicy"], "Ignore");
        }
    }
}

/// The first check above can fail.
#[tokio::test]
async fn a_manifest_with_a_mistake_is_refused() {
    let kubectl = Kubectl::new().await;
    let path = manifests().join("daemonset/daemonset.yaml");
    let right = std::fs::read_to_string(path).expect("a file");
    for (case, from, to, complaint) in [
        ("nothing", "", "", ""),
        (
            "a misspelt field",
            "tolerations:",
            "tolerationz:",
            "field not declared in schema",
        ),
        (
            "a field in the wrong place",
            "hostNetwork: true",
            "readOnlyRootFilesystem: true",
            "field not declared in schema",
        ),
        (
            "a wrong value",
            "dnsPolicy: Default",
            "dnsPolicy: Defalt",
            "Unsupported value",
        ),
        (
            "a wrong type",
            "hostNetwork: true",
            "hostNetwork: 1",
            "hostNetwork",
        ),
        (
            "a volume that is not there",
            "name: credentials\n          mountPath",
            "name: credential\n          mountPath",
            "Not found: \"credential\"",
        ),
    ] {
        let wrong = right.replacen(from, to, 1);
        assert_eq!(wrong == right, from.is_empty(), "{case}");
        let arguments = STRICT.into_iter().chain(["--dry-run=server", "-f", "-"]);
        let said = kubectl.feed(arguments, &wrong);
        assert_eq!(said.success, from.is_empty(), "{case}: {said:#?}");
        assert!(said.stderr.contains(complaint), "{case}: {said:#?}");
    }
}

/// Beyond what the strictest standard for Pods allows, it asks for the network of its machine, and to be
/// probed there, and for nothing else.
#[tokio::test]
async fn the_pod_asks_for_the_host_network_and_for_nothing_else() {
    let kubectl = Kubectl::new().await;
    let world = World::new().await;
    let namespace = cloudkeel_testkit::cluster::TestNamespace::create(&world.client, "restricted");
    let namespace = namespace.await.expect("a namespace");
    let restrict = "pod-security.kubernetes.io/warn=restricted";
    kubectl
        .run(["label", "namespace", namespace.name(), restrict])
        .ok();
    let complaints = |pod: &serde_json::Value| {
        let arguments = ["create", "--dry-run=server", "--validate=strict", "-f", "-"];
        complaints(&kubectl.feed(arguments, &pod.to_string()).ok().stderr)
    };
    for file in workload::FILES {
        let mut pod = workload::pod(file);
        pod["metadata"]["namespace"] = namespace.name().into();
        // A class of the system is only for kube-system.
        pod["spec"]["priorityClassName"] = serde_json::Value::Null;
        let of_the_network = ["host namespaces", "hostPort", "probe or lifecycle host"];
        assert_eq!(complaints(&pod), of_the_network, "{file}");

        let container = &mut pod["spec"]["containers"][0];
        container["securityContext"]["allowPrivilegeEscalation"] = true.into();
        let found = complaints(&pod);
        assert!(
            found
                .iter()
                .any(|it| it == "allowPrivilegeEscalation != false"),
            "{found:?}"
        );
    }
}

/// What a standard for Pods has against one, by its headings.
fn complaints(stderr: &str) -> Vec<String> {
    let Some((_, list)) = stderr.split_once("would violate PodSecurity \"restricted:latest\": ")
    else {
        return Vec::new();
    };
    list.trim()
        .split("), ")
        .filter_map(|complaint| complaint.split_once(" ("))
        .map(|(heading, _)| heading.to_owned())
        .collect()
}

/// The Pod itself, with its priority, where it is to run.
#[tokio::test]
async fn the_pod_is_accepted_in_kube_system() {
    let kubectl = Kubectl::new().await;
    for file in workload::FILES {
        let arguments = [
            "create",
            "--dry-run=server",
            "--validate=strict",
            "-o=json",
            "-f",
            "-",
        ];
        let said = kubectl
            .feed(arguments, &workload::pod(file).to_string())
            .ok();
        let pod: serde_json::Value = serde_json::from_str(&said.stdout).expect("JSON");
        assert_eq!(pod["spec"]["priority"], 2_000_000_000, "{file}");
        assert_eq!(
            pod["spec"]["containers"][0]["ports"][0]["hostPort"], 10258,
            "{file}"
        );
    }
}
