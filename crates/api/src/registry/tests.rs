use super::*;
use crate::{ConfigKey, ConfigReader, Documented as _, ErrorKind, Problem};

const SIZE: ConfigKey<u16> = ConfigKey::new("size", "How big.").required();

struct Toy(&'static str);

struct ToyCloud(u16);

impl CloudProvider for ToyCloud {
    fn name(&self) -> &'static str {
        "toy"
    }
    fn has_cluster_id(&self) -> bool {
        self.0 > 1
    }
}

#[async_trait]
impl ProviderFactory for Toy {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            name: self.0,
            summary: "A toy.",
            replaces: if self.0 == "toy" { &["toy-ccm"] } else { &[] },
            capabilities: vec![Capability::Instances],
            keys: vec![SIZE.doc()],
        }
    }

    async fn build(
        &self,
        input: ProviderInput,
        _context: ProviderContext,
    ) -> Result<Arc<dyn CloudProvider>, BuildError> {
        let ConfigSource::Own(config) = &input.config else {
            return Err(Problems::from(Problem::new("config", "is required")).into());
        };
        let mut reader = ConfigReader::new(config);
        let size = reader.get(&SIZE);
        let cloud = reader.finish(|| Some(ToyCloud(size?)))?;
        if cloud.0 == 13 {
            return Err(CloudError::new("log in", ErrorKind::Unauthenticated, "bad luck").into());
        }
        Ok(Arc::new(cloud))
    }
}

fn registry() -> Registry {
    let registry = Registry::new().with(Toy("toy")).unwrap();
    registry.with(Toy("hcloud")).unwrap()
}

async fn build(name: &str, config: Value) -> Result<Arc<dyn CloudProvider>, String> {
    let input = ProviderInput {
        config: ConfigSource::Own(config),
        ..ProviderInput::default()
    };
    registry()
        .build(name, input, ProviderContext::detached("test"))
        .await
        .map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_name_and_a_configuration_make_a_provider() {
    let cloud = build("toy", serde_json::json!({"size": 2})).await.unwrap();
    assert_eq!(cloud.name(), "toy");
    assert!(cloud.has_cluster_id());
}

#[tokio::test]
async fn an_unknown_name_gets_the_nearest_and_all_known_ones() {
    let error = build("hclod", Value::Null).await.err().unwrap();
    assert_eq!(
        error,
        "unknown cloud provider \"hclod\"; did you mean \"hcloud\"? (compiled in: hcloud, toy)"
    );
    let error = build("zzz", Value::Null).await.err().unwrap();
    assert_eq!(
        error,
        "unknown cloud provider \"zzz\" (compiled in: hcloud, toy)"
    );
}

#[test]
fn a_cloud_that_is_not_served_is_refused_with_the_reason() {
    let registry = Registry::new().refusing("photon", "it is gone");
    let error = registry.get("photon").err().unwrap().to_string();
    assert_eq!(
        error,
        "cloud provider \"photon\" is not supported: it is gone"
    );
}

#[tokio::test]
async fn bad_settings_and_failing_clouds_are_distinguished_and_named() {
    let error = build("toy", serde_json::json!({"size": "big", "x": 1}))
        .await
        .err()
        .unwrap();
    assert_eq!(
        error,
        "could not init cloud provider \"toy\": its settings are wrong:\n\
         size: \"big\": expected a whole number from 0 to 65535\n\
         x: is not a known key"
    );
    let error = build("toy", serde_json::json!({"size": 13}))
        .await
        .err()
        .unwrap();
    assert_eq!(
        error,
        "could not init cloud provider \"toy\": log in: bad luck"
    );
}

#[test]
fn a_name_can_only_be_taken_once() {
    let error = registry().with(Toy("toy")).unwrap_err();
    assert_eq!(error.to_string(), "two cloud providers are called \"toy\"");
}

#[test]
fn what_is_compiled_in_is_listed_and_found_by_the_binary_it_replaces() {
    let registry = registry();
    assert_eq!(registry.names().collect::<Vec<_>>(), ["hcloud", "toy"]);
    assert_eq!(registry.descriptors().len(), 2);
    assert_eq!(registry.replacing("toy-ccm"), Some("toy"));
    assert_eq!(registry.replacing("other-ccm"), None);
}

#[test]
fn printing_settings_shows_where_they_come_from_and_no_credential() {
    let own = ConfigSource::Own(serde_json::json!({"token": "hunter2"}));
    let file = ConfigSource::File {
        path: "/etc/cloud.conf".into(),
        text: "password = hunter2".to_owned(),
    };
    for (case, config, shown) in [("own", own, "Own"), ("a file", file, "/etc/cloud.conf")] {
        let input = ProviderInput {
            config,
            env: [("TOY_TOKEN".to_owned(), "hunter2".to_owned())].into(),
            flags: [("toy-token".to_owned(), vec!["hunter2".to_owned()])].into(),
        };
        let printed = format!("{input:?} {:?}", input.config);
        assert!(!printed.contains("hunter2"), "{case}: {printed}");
        for shown in [shown, "TOY_TOKEN", "toy-token"] {
            assert!(printed.contains(shown), "{case}: {shown} in {printed}");
        }
    }
}
