use cloudkeel_api::FlagValues;
use serde_json::json;

use super::*;

const INI: &str = r#"
[Global]
user = "admin"
password = "pass" # a comment
insecure-flag = "1"
port = "8443"
datacenters = "DC0, DC1"
secrets-directory = ""

[VirtualCenter "10.0.0.1"]
datacenters = "Datacenter:datacenter-3"
thumbprint = "AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA"

[VirtualCenter "tenant-b"]
server = "vc-b.example.com"
user = "b"
password = "b-pass"
port = 443
soap-roundtrip-count = 5
ip-family = "ipv6, ipv4"

[Labels]
zone = k8s-zone
region = k8s-region

[Nodes]
internal-network-subnet-cidr = "10.1.0.0/16,10.2.0.0/16"
external-vm-network-name = "Public Net"
exclude-external-network-subnet-cidr = "192.0.2.0/24"
"#;

const YAML: &str = r#"
global:
  user: admin
  password: pass
  insecureFlag: true
  port: 8443
  datacenters: [DC0, DC1]
vcenter:
  a:
    server: 10.0.0.1
    datacenters: ["Datacenter:datacenter-3"]
    thumbprint: "AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA"
  tenant-b:
    server: vc-b.example.com
    user: b
    password: b-pass
    port: 443
    soapRoundtripCount: 5
    ipFamily: [ipv6, ipv4]
labels:
  zone: k8s-zone
  region: k8s-region
nodes:
  internalNetworkSubnetCidr: "10.1.0.0/16,10.2.0.0/16"
  externalVmNetworkName: Public Net
  excludeExternalNetworkSubnetCidr: 192.0.2.0/24
"#;

fn input(text: &str) -> ProviderInput {
    ProviderInput {
        config: ConfigSource::File {
            path: "vsphere.conf".into(),
            text: text.to_owned(),
        },
        ..ProviderInput::default()
    }
}

fn read(text: &str) -> Result<Config, String> {
    Config::read(&input(text)).map_err(|problems| problems.to_string())
}

#[test]
fn ini_and_yaml_say_the_same() {
    let (ini, yaml) = (read(INI).unwrap(), read(YAML).unwrap());
    assert_eq!(ini, yaml);
    let own = serde_saphyr::from_str(YAML).unwrap();
    let own = ProviderInput {
        config: ConfigSource::Own(own),
        ..ProviderInput::default()
    };
    assert_eq!(Config::read(&own).unwrap(), ini);

    let [a, b] = ini.vcenters.as_slice() else {
        panic!("{ini:?}")
    };
    assert_eq!(
        (a.url(), b.url()),
        (
            "https://10.0.0.1:8443".to_owned(),
            "https://vc-b.example.com:443".to_owned()
        )
    );
    let user = |vcenter: &VCenterConfig| vcenter.login.clone().unwrap().0;
    assert_eq!((user(a), user(b)), ("admin".to_owned(), "b".to_owned()));
    assert_eq!(a.datacenters, ["Datacenter:datacenter-3"]);
    assert_eq!(b.datacenters, ["DC0", "DC1"], "inherited");
    assert!(a.insecure && b.insecure, "a vCenter cannot turn it off");
    assert!(a.thumbprint.is_some() && b.thumbprint.is_none());
    assert_eq!((a.attempts, b.attempts), (3, 5));
    assert_eq!(a.families, [IpFamily::V4]);
    assert_eq!(b.families, [IpFamily::V6, IpFamily::V4]);
    assert_eq!(ini.labels.zone.as_deref(), Some("k8s-zone"));
    assert_eq!(ini.nodes.internal_cidrs.len(), 2);
    assert_eq!(ini.nodes.external_name.as_deref(), Some("Public Net"));
}

#[test]
fn the_file_of_the_csi_driver_is_read_as_it_is() {
    let csi = r#"
[Global]
cluster-id = "prod"
cluster-distribution = "native"
[NetPermissions "A"]
ips = "*"
[VirtualCenter "vc.example.com"]
insecure-flag = "true"
user = "Administrator@vsphere.local"
password = "p;a#ss\\"
port = "443"
datacenters = "DC0"
targetvSANFileShareDatastoreURLs = "ds:///vmfs/volumes/vsan:1/"
"#;
    let config = read(csi).unwrap();
    let [vcenter] = config.vcenters.as_slice() else {
        panic!("{config:?}")
    };
    let (user, password) = vcenter.login.clone().unwrap();
    assert_eq!(user, "Administrator@vsphere.local");
    assert_eq!(password.expose(), "p;a#ss\\");
    assert_eq!(vcenter.datacenters, ["DC0"]);
}

#[test]
fn a_server_of_the_global_section_is_a_vcenter_unless_it_has_a_section() {
    let servers = |text: &str| {
        let config = read(text).unwrap();
        let servers = config.vcenters.into_iter().map(|vcenter| vcenter.server);
        servers.collect::<Vec<_>>()
    };
    let global = "[Global]\nserver=a\nuser=u\npassword=p\n";
    assert_eq!(servers(global), ["a"]);
    assert_eq!(servers(&format!("{global}[VirtualCenter \"a\"]\n")), ["a"]);
    assert_eq!(
        servers(&format!("{global}[VirtualCenter \"b\"]\n")),
        ["b", "a"]
    );
}

#[test]
fn secrets_are_named_by_section_or_globally_and_variables_win() {
    let text = "[Global]\nsecret-name=creds\nsecret-namespace=kube-system\n[VirtualCenter \"a\"]\n\
                [VirtualCenter \"b\"]\nsecret-name=own\nsecret-namespace=b\n";
    let secret = |namespace: &str, name: &str| {
        Some(SecretSource::Kubernetes {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    };
    let secrets = |config: &Config| {
        let vcenters = config.vcenters.iter();
        vcenters.map(|it| it.secret.clone()).collect::<Vec<_>>()
    };
    let config = read(text).unwrap();
    assert_eq!(
        secrets(&config),
        [secret("kube-system", "creds"), secret("b", "own")]
    );
    let mut with_env = input(text);
    let name = ("VSPHERE_SECRET_NAME".to_owned(), "other".to_owned());
    let zone = ("VSPHERE_LABEL_ZONE".to_owned(), "zones".to_owned());
    let skip = ("SKIP_NODE_DELETION".to_owned(), String::new());
    with_env.env.extend([name, zone, skip]);
    let config = Config::read(&with_env).unwrap();
    assert_eq!(secrets(&config)[0], secret("kube-system", "other"));
    assert_eq!(config.labels.zone.as_deref(), Some("zones"));
    assert!(config.skip_node_deletion);

    let folder = tempfile::TempDir::new().unwrap();
    std::fs::write(folder.path().join("a.username"), "u").unwrap();
    let text = format!(
        "global:\n  secretsDirectory: {}\nvcenter:\n  x: {{server: a}}\n",
        folder.path().display()
    );
    let config = read(&text).unwrap();
    let expected = Some(SecretSource::Directory(folder.path().to_owned()));
    assert_eq!(secrets(&config), [expected]);
    assert_eq!(config.files, [folder.path().join("a.username")]);
}

#[test]
fn everything_wrong_is_reported_at_once() {
    let text = r#"
[VirtualCenter "a"]
port = many
thumbprint = x
[VirtualCenter "b"]
user = u
password = hunter2
ca-file = /no/such
[Nodes]
internal-network-subnet-cidr = 10.0.0.0/33
"#;
    let problems = read(text).unwrap_err();
    for part in [
        "[VirtualCenter \"a\"].port: \"many\": expected a whole number from 0 to 65535",
        "[VirtualCenter \"a\"].user: is required",
        "[VirtualCenter \"a\"].password: is required",
        "[VirtualCenter \"a\"].thumbprint: \"x\": expected 20 (SHA-1)",
        "[VirtualCenter \"b\"].caFile: \"/no/such\": expected a readable file",
        "internal-network-subnet-cidr: \"10.0.0.0/33\": expected a network",
    ] {
        assert!(problems.contains(part), "{part} in {problems}");
    }
    assert!(!problems.contains("hunter2"), "{problems}");
}

#[test]
fn what_the_go_ccm_stumbles_over_is_said_clearly() {
    for (case, text, expected) in [
        (
            "an empty file",
            " \n",
            "--cloud-config: vsphere.conf is empty",
        ),
        (
            "vcenter in global",
            "global:\n  user: u\n  password: p\n  vcenter: {a: {server: a}}\n",
            "stands beside `global`",
        ),
        (
            "nothing",
            "[Global]\nuser=u\npassword=p\n",
            "no vCenter is configured",
        ),
        (
            "no server",
            "vcenter:\n  a: {user: u, password: p}\n",
            "vcenter.a.server: is required",
        ),
        (
            "a Secret without its namespace",
            "[Global]\nserver=a\nsecret-name=s\n",
            "secret-namespace: is required with secret-name",
        ),
    ] {
        let problems = read(text).unwrap_err();
        assert!(problems.contains(expected), "{case}: {problems}");
    }
    let none = Config::read(&ProviderInput::default()).unwrap_err();
    assert!(none.to_string().contains("--cloud-config: is required"));
}

#[test]
fn unknown_keys_are_wrong_in_our_own_form_only() {
    let value = json!({"vcenter": {"a": {"server": "a", "user": "u", "password": "p", "insecure-flag": true}}});
    let mut own = ProviderInput {
        config: ConfigSource::Own(value.clone()),
        ..ProviderInput::default()
    };
    let problems = Config::read(&own).unwrap_err().to_string();
    assert!(
        problems.starts_with("vcenter.a.insecure-flag: is not a known key"),
        "{problems}"
    );
    own.config = input(&value.to_string()).config;
    assert!(!Config::read(&own).unwrap().vcenters[0].insecure);
}

#[test]
fn labels_for_nodes_are_checked() {
    let mut given = input("[VirtualCenter \"a\"]\nuser=u\npassword=p\n");
    let flag = |text: &str| FlagValues::from([("node-labels".to_owned(), vec![text.to_owned()])]);
    given.flags = flag("example.com/site=a,tier=b");
    let labels = Config::read(&given).unwrap().node_labels;
    assert_eq!(labels["example.com/site"], "a");
    assert_eq!(labels["tier"], "b");
    given.flags = flag("-bad=a");
    let problems = Config::read(&given).unwrap_err().to_string();
    assert!(problems.contains("node label -bad=a"), "{problems}");
}

#[test]
fn an_ipv6_address_has_brackets_in_a_url() {
    let config = read("[VirtualCenter \"fd00::1\"]\nuser=u\npassword=p\n").unwrap();
    assert_eq!(config.vcenters[0].url(), "https://[fd00::1]:443");
}

pub(crate) fn two_vcenters() -> Config {
    read(INI).unwrap()
}
