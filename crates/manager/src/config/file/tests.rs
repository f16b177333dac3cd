use serde_json::json;

use super::*;

const KNOWN: [&str; 3] = ["hcloud", "local", "vsphere"];

fn read(value: &Value) -> Result<CloudFile, String> {
    CloudFile::read(value, &KNOWN).map_err(|problems| problems.to_string())
}

fn file(clouds: impl Into<Value>) -> Value {
    let clouds = clouds.into();
    json!({"apiVersion": API_VERSION, "kind": KIND, "clouds": clouds})
}

#[test]
fn several_clouds_are_read_with_their_scopes() {
    let value = file(json!([
        {
            "name": "fsn",
            "provider": "hcloud",
            "nodes": {"selector": "cloud=hetzner"},
            "loadBalancers": {
                "default": true,
                "class": "hetzner",
                "targets": {"clouds": ["fsn", "dc1"], "by": "address"},
            },
            "config": {"tokenFile": "/t"},
        },
        {"name": "dc1", "provider": "vsphere"},
    ]));
    let clouds = read(&value).unwrap().clouds;
    assert_eq!(clouds[0].nodes.selector, "cloud=hetzner".parse().ok());
    assert!(clouds[0].load_balancers.default && !clouds[1].load_balancers.default);
    assert_eq!(clouds[0].load_balancers.targets.by, TargetBy::Address);
    assert_eq!(
        clouds[0].config,
        ConfigSource::Own(json!({"tokenFile": "/t"}))
    );
    assert_eq!(clouds[1].config, ConfigSource::None);
}

#[test]
fn an_only_cloud_takes_services_without_a_class() {
    let clouds = read(&file(json!([{"name": "a", "provider": "local"}])))
        .unwrap()
        .clouds;
    assert!(clouds[0].load_balancers.default);
    let with_class = json!([{"name": "a", "provider": "local", "loadBalancers": {"class": "x"}}]);
    let clouds = read(&file(with_class)).unwrap().clouds;
    assert!(
        !clouds[0].load_balancers.default,
        "it said which Services it wants"
    );
}

#[test]
fn everything_wrong_is_reported_at_once() {
    let value = json!({
        "apiVersion": "cloudkeel.dev/v2",
        "clouds": [
            {"name": "a b", "provider": "hclod", "node": {}},
            {"provider": "local", "loadBalancers": {"default": "maybe", "targets": {"by": "luck"}}},
            {"name": "c", "provider": "local", "config": "token=hunter2"},
        ],
        "extra": 1,
    });
    assert_eq!(
        read(&value).unwrap_err(),
        "apiVersion: \"cloudkeel.dev/v2\": expected `cloudkeel.dev/v1`\n\
         kind: is required: expected `CloudConfig`\n\
         extra: is not a known key: expected `apiVersion`, `kind` and `clouds`\n\
         clouds[0].name: \"a b\": expected letters, digits, `-`, `_` and `.`, at most 63 of them\n\
         clouds[0].provider: \"hclod\": expected a provider that is compiled in: did you mean `hcloud`?\n\
         clouds[0].node: is not a known key: did you mean `nodes`?\n\
         clouds[1].name: is required\n\
         clouds[1].loadBalancers.default: \"maybe\": expected `true` or `false`\n\
         clouds[1].loadBalancers.targets.by: \"luck\": expected `machine` or `address`\n\
         clouds[2].config: \"[redacted]\": expected a map of keys"
    );
}

#[test]
fn clouds_that_do_not_go_together_are_refused() {
    let value = file(json!([
        {"name": "a", "provider": "local", "loadBalancers": {"default": true, "class": "x"}},
        {"name": "a", "provider": "local", "loadBalancers": {"default": true, "class": "x", "targets": {"clouds": ["z"]}}},
    ]));
    assert_eq!(
        read(&value).unwrap_err(),
        "clouds[1].name: \"a\": expected a value that no other cloud has\n\
         clouds[1].loadBalancers.class: \"x\": expected a value that no other cloud has\n\
         clouds[1].loadBalancers.targets.clouds: \"z\": expected one of a, a\n\
         loadBalancers.default: is true for more than one cloud: Services without a class can only have one"
    );
}

#[test]
fn a_file_without_clouds_is_refused() {
    for clouds in [json!([]), json!({}), Value::Null] {
        let problems = read(&file(clouds)).unwrap_err();
        assert_eq!(problems, "clouds: expected a list of at least one cloud");
    }
}

#[test]
fn the_keys_document_themselves() {
    let docs = key_docs();
    assert!(docs.iter().all(|doc| doc.help.ends_with('.')));
    assert!(docs.iter().any(|doc| doc.name == "nodes.selector"));
}
