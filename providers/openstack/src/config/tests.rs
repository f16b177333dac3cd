use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use cloudkeel_toolkit::json as bodies;

fn file(text: &str) -> ProviderInput {
    ProviderInput {
        config: ConfigSource::File {
            path: "cloud.conf".into(),
            text: text.to_owned(),
        },
        ..ProviderInput::default()
    }
}

fn own(config: Value) -> ProviderInput {
    ProviderInput {
        config: ConfigSource::Own(config),
        ..ProviderInput::default()
    }
}

fn problems(input: &ProviderInput) -> String {
    Config::read(input).unwrap_err().to_string()
}

/// The body of the login without its secrets, and the address that it goes to.
fn login(config: &Config) -> (String, Value) {
    let credential = Credential::resolve(&config.auth).unwrap();
    let body = json!({
        "identity": bodies::body(&credential.identity),
        "scope": credential.scope.as_ref().map(bodies::body),
    });
    (credential.url, body)
}

const EVERYTHING: &str = r#"
[Global]
auth-url = https://keystone.example:5000
username = demo
password = "p#ss"
tenant-name = web
domain-name = Default
region = RegionOne
os-endpoint-type = internal
ca-file = /etc/ca.pem
tls-insecure = true
[Networking]
ipv6-support-disabled = true
public-network-name = public
public-network-name = dmz
internal-network-name = private
address-sort-order = 10.0.0.0/8, fd00::/8
[LoadBalancer]
enabled = yes
lb-version = v2
lb-provider = ovn
lb-method = SOURCE_IP_PORT
subnet-id = s-1
network-id = n-1
member-subnet-id = m-1
floating-network-id = f-1
floating-subnet-tags = a,b
create-monitor = on
monitor-delay = 1m
monitor-timeout = 30s
monitor-max-retries = 2
monitor-max-retries-down = 4
manage-security-groups = true
internal-lb = false
cascade-delete = no
node-selector = pool=web,edge,zone=
flavor-id = fl-1
availability-zone = az1
default-tls-container-ref = https://keys/v1/containers/1
enable-ingress-hostname = true
ingress-hostname-suffix = lb.example
max-shared-lb = 5
container-store = external
provider-requires-serial-api-calls = true
[LoadBalancerClass "dmz"]
floating-network-id = f-2
subnet-id = s-2
[Route]
router-id = r-1
[Metadata]
search-order = metadataService,configDrive
request-timeout = 90s
[BlockStorage]
bs-version = v3
"#;

#[test]
fn a_cloud_conf_is_read_in_full_and_what_is_unknown_is_tolerated() {
    let config = Config::read(&file(EVERYTHING)).unwrap();
    let (url, body) = login(&config);
    assert_eq!(url, "https://keystone.example:5000/v3");
    let user = json!({"name": "demo", "password": "p#ss", "domain": {"name": "Default"}});
    assert_eq!(body["identity"], json!({"password": {"user": user}}));
    assert_eq!(
        body["scope"],
        json!({"project": {"name": "web", "domain": {"name": "Default"}}})
    );
    assert_eq!(
        (config.auth.interface, config.auth.insecure),
        (Some(Interface::Internal), true)
    );
    assert_eq!(config.networking.public_networks, ["public", "dmz"]);
    assert_eq!(
        config.networking.address_sort_order,
        ["10.0.0.0/8", "fd00::/8"]
    );
    assert_eq!(
        (config.router.as_deref(), config.request_timeout.as_secs()),
        (Some("r-1"), 90)
    );
    let balancers = &config.load_balancers;
    assert_eq!(
        (balancers.provider.as_str(), balancers.method.as_str()),
        ("ovn", "SOURCE_IP_PORT")
    );
    assert!(
        balancers.create_monitor
            && balancers.manage_security_groups
            && balancers.serial
            && !balancers.cascade_delete
    );
    assert_eq!(
        (balancers.monitor_delay.as_secs(), balancers.max_shared),
        (60, 5)
    );
    assert_eq!(balancers.networks.member_subnet.as_deref(), Some("m-1"));
    assert_eq!(balancers.container_store, ContainerStore::External);
    assert_eq!(
        config.classes["dmz"].floating_network.as_deref(),
        Some("f-2")
    );
    let selector = node_selector(balancers.node_selector.as_ref().unwrap()).unwrap();
    let labels = |pairs: &[(&str, &str)]| {
        pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect::<BTreeMap<_, _>>()
    };
    assert!(selector.matches(&labels(&[("pool", "web"), ("edge", "x"), ("zone", "any")])));
    assert!(!selector.matches(&labels(&[("pool", "web")])));
}

#[test]
fn our_own_form_says_the_same() {
    let config = Config::read(&own(json!({
        "auth": {"url": "https://keystone.example/v3", "userId": "u-1", "password": "x", "projectId": "p-1"},
        "region": "RegionOne",
        "loadBalancers": {"subnetId": "s-1", "classes": {"dmz": {"floatingNetworkId": "f-2"}}},
        "router": "r-1",
    })));
    let config = config.unwrap();
    assert_eq!(
        login(&config).1["identity"],
        json!({"password": {"user": {"id": "u-1", "password": "x"}}})
    );
    assert_eq!(login(&config).1["scope"], json!({"project": {"id": "p-1"}}));
    assert_eq!(
        config.classes["dmz"].floating_network.as_deref(),
        Some("f-2")
    );
    assert_eq!(config.load_balancers.provider, "amphora");
}

#[test]
fn everything_that_is_wrong_is_said_at_once_in_the_names_of_the_form() {
    let text = "[Global]\nusername=demo\ntenant-name=web\nos-endpoint-type=internalURL\n\
                [LoadBalancer]\nmonitor-delay=5\nlb-version=v1\n[Metadata]\nsearch-order=disk\n";
    let wrong = problems(&file(text));
    for expected in [
        "auth-url: is required",
        "password: is required, or an application credential, or a token",
        "tenant-name: needs a domain",
        "os-endpoint-type: \"internalURL\": expected `public`, `internal` or `admin`",
        "monitor-delay: \"5\": expected a duration",
        "lb-version: \"v1\": expected `v2`",
        "search-order: \"disk\": expected at most two",
    ] {
        assert!(wrong.contains(expected), "{expected} is not in\n{wrong}");
    }
    let wrong = problems(&own(
        json!({"auth": {"username": "demo"}, "loadBalancers": {"classes": {"x": {"subnet": "y"}}}}),
    ));
    for expected in [
        "auth.url: is required",
        "auth.password: is required",
        "x.subnet: is not a known key",
    ] {
        assert!(wrong.contains(expected), "{expected} is not in\n{wrong}");
    }
    assert!(problems(&ProviderInput::default()).contains("--cloud-config"));
}

#[test]
fn each_kind_of_credential_logs_in_in_its_own_way() {
    let url = "[Global]\nauth-url=http://k/v3\n";
    for (case, lines, identity, scope) in [
        (
            "an application credential by ID",
            "application-credential-id=a\napplication-credential-secret=s",
            json!({"application_credential": {"id": "a", "secret": "s"}}),
            Value::Null,
        ),
        (
            "an application credential by name",
            "application-credential-name=a\napplication-credential-secret=s\nusername=u\ndomain-id=d",
            json!({"application_credential": {"name": "a", "secret": "s", "user": {"name": "u", "domain": {"id": "d"}}}}),
            Value::Null,
        ),
        (
            "a trust",
            "trust-id=t\ntrustee-id=u\ntrustee-password=s",
            json!({"password": {"user": {"id": "u", "password": "s"}}}),
            json!({"OS-TRUST:trust": {"id": "t"}}),
        ),
        (
            "a token",
            "token=s\ntenant-id=p\nusername=ignored",
            json!({"token": {"id": "s"}}),
            json!({"project": {"id": "p"}}),
        ),
        (
            "a domain without a project",
            "user-id=u\npassword=s\ndomain-id=d",
            json!({"password": {"user": {"id": "u", "password": "s"}}}),
            json!({"domain": {"id": "d"}}),
        ),
    ] {
        let config = Config::read(&file(&format!("{url}{lines}\n"))).unwrap();
        let body = login(&config).1;
        assert_eq!(
            (&body["identity"], &body["scope"]),
            (&identity, &scope),
            "{case}"
        );
    }
    let wrong = problems(&file(&format!("{url}token=s\n")));
    assert!(wrong.contains("token: needs a project"), "{wrong}");
    let wrong = problems(&file(
        "[Global]\nauth-url=http://k/v2.0\nuser-id=u\npassword=s\ntenant-id=p\n",
    ));
    assert!(wrong.contains("removed version 2.0"), "{wrong}");
}

/// As the documentation of the Cinder CSI driver has it, in the Secret `cloud-config`.
const CINDER_CSI: &str = r#"
[Global]
username = user
password = "pass"
domain-name = default
auth-url = https://<keystone_ip>/identity/v3
tenant-id = c869168a828847f39f7f06edd7305637
domain-id = 2a73b8f597c04551a0fdc8e95544be8a
region = RegionOne

[BlockStorage]
node-volume-attach-limit = 100
rescan-on-resize = true
ignore-volume-az = yes

[Metadata]
search-order = configDrive,metadataService
"#;

#[test]
fn the_files_of_the_cinder_csi_driver_and_of_cluster_api_are_read_as_they_are() {
    let config = Config::read(&file(CINDER_CSI)).unwrap();
    let (_, body) = login(&config);
    assert_eq!(
        body["scope"],
        json!({"project": {"id": "c869168a828847f39f7f06edd7305637"}})
    );
    assert_eq!(
        body["identity"]["password"]["user"]["domain"],
        json!({"id": "2a73b8f597c04551a0fdc8e95544be8a"})
    );
    // Cluster API keeps a clouds.yaml and a cloud.conf with an application credential in one Secret.
    let capo = "[Global]\nauth-url=https://keystone/v3\napplication-credential-id=\"a\"\n\
                application-credential-secret=\"s\"\nregion=\"RegionOne\"\n";
    let config = Config::read(&file(capo)).unwrap();
    assert_eq!(
        login(&config).1["identity"]["application_credential"]["id"],
        "a"
    );
}

fn clouds(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

const CLOUDS: &str = r"
clouds:
  prod:
    profile: vendor
    region_name: RegionTwo
    interface: internalURL
    auth: {username: yaml, project_name: web, project_domain_name: Default, user_domain_name: Default}
  other:
    auth: {auth_url: http://other/v3, application_credential_id: a, application_credential_secret: s}
";

#[test]
fn an_entry_of_clouds_yaml_fills_in_what_is_not_given() {
    let folder = tempfile::tempdir().unwrap();
    let path = clouds(&folder, "clouds.yaml", CLOUDS);
    clouds(
        &folder,
        "secure.yaml",
        "clouds: {prod: {auth: {password: secret}}}",
    );
    clouds(
        &folder,
        "clouds-public.yaml",
        "public-clouds: {vendor: {auth: {auth_url: http://vendor/v3}}}",
    );
    let text = format!(
        "[Global]\nuse-clouds=true\nclouds-file={path}\ncloud=prod\nregion=RegionOne\nusername=ignored\n"
    );
    let config = Config::read(&file(&text)).unwrap();
    let (url, body) = login(&config);
    assert_eq!(url, "http://vendor/v3");
    let user = json!({"name": "yaml", "password": "secret", "domain": {"name": "Default"}});
    assert_eq!(
        body["identity"]["password"]["user"], user,
        "a named entry brings the credential"
    );
    assert_eq!(
        (config.auth.region.as_deref(), config.auth.interface),
        (Some("RegionOne"), Some(Interface::Internal))
    );
    assert_eq!(config.files.len(), 3, "all of them are watched");
    let mut by_variable = file(&format!("[Global]\nuse-clouds=true\nclouds-file={path}\n"));
    let wrong = problems(&by_variable);
    assert!(
        wrong.contains("cloud: is required, because clouds.yaml has several: other, prod"),
        "{wrong}"
    );
    by_variable
        .env
        .insert("OS_CLOUD".to_owned(), "other".to_owned());
    let config = Config::read(&by_variable).unwrap();
    assert_eq!(login(&config).0, "http://other/v3");
    let wrong = problems(&file(&format!(
        "[Global]\nclouds-file={path}\ncloud=none\n"
    )));
    assert!(
        wrong.contains("cloud: \"none\": expected an entry of clouds.yaml, which has other, prod"),
        "{wrong}"
    );
}

#[test]
fn a_broken_clouds_yaml_is_named_without_its_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let path = clouds(
        &folder,
        "clouds.yaml",
        "clouds: {a: {auth: {password: hunter2, ",
    );
    let wrong = problems(&file(&format!(
        "[Global]\nuse-clouds=true\nclouds-file={path}\n"
    )));
    assert!(
        wrong.contains("expected a file in YAML") && !wrong.contains("hunter2"),
        "{wrong}"
    );
}

#[test]
fn the_regional_form_of_ids_is_asked_for_by_the_very_word() {
    for (value, expected) in [("true", true), ("1", false), ("", false)] {
        let mut input = file(CINDER_CSI);
        input
            .env
            .insert("OS_CCM_REGIONAL".to_owned(), value.to_owned());
        assert_eq!(
            Config::read(&input).unwrap().regional,
            expected,
            "{value:?}"
        );
    }
}
