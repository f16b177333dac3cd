//! The environment and our own form say the same things, and every quirk of the former is kept.

use std::collections::BTreeSet;

use cloudkeel_api::KeyPlace;

use super::*;

/// A setting in both forms: the variable and its value, the path and its value.
type Pair = (&'static str, &'static str, &'static str, fn() -> Value);

const PAIRS: &[Pair] = &[
    ("HCLOUD_TOKEN", "secret", "token", || json!("secret")),
    ("HCLOUD_ENDPOINT", "http://x/v1/", "endpoint", || {
        json!("http://x/v1")
    }),
    ("HCLOUD_DEBUG", "TRUE", "debug", || json!(true)),
    ("HCLOUD_METRICS_ADDRESS", ":1", "metricsAddress", || {
        json!(":1")
    }),
    ("HCLOUD_NETWORK", "kube", "network", || json!("kube")),
    (
        "HCLOUD_NETWORK_DISABLE_ATTACHED_CHECK",
        "true",
        "attachedCheck",
        || json!(false),
    ),
    ("HCLOUD_NETWORK_ROUTES_ENABLED", "f", "routes", || {
        json!(false)
    }),
    (
        "HCLOUD_INSTANCES_ADDRESS_FAMILY",
        "ipv6",
        "addressFamily",
        || json!("ipv6"),
    ),
    (
        "HCLOUD_INSTANCES_ZONE_LABEL_ENABLED",
        "F",
        "zoneLabel",
        || json!(false),
    ),
    (
        "HCLOUD_LOAD_BALANCERS_ENABLED",
        "0",
        "loadBalancers.enabled",
        || json!(false),
    ),
    (
        "HCLOUD_LOAD_BALANCERS_LOCATION",
        "fsn1",
        "loadBalancers.location",
        || json!("fsn1"),
    ),
    (
        "HCLOUD_LOAD_BALANCERS_NETWORK_ZONE",
        "eu-central",
        "loadBalancers.networkZone",
        || json!("eu-central"),
    ),
    (
        "HCLOUD_LOAD_BALANCERS_TYPE",
        "lb31",
        "loadBalancers.type",
        || json!("lb31"),
    ),
    (
        "HCLOUD_LOAD_BALANCERS_ALGORITHM_TYPE",
        "least_connections",
        "loadBalancers.algorithm",
        || json!("least_connections"),
    ),
    (
        "HCLOUD_LOAD_BALANCERS_USE_PRIVATE_IP",
        "1",
        "loadBalancers.usePrivateIp",
        || json!(true),
    ),
    (
        "HCLOUD_LOAD_BALANCERS_DISABLE_PRIVATE_INGRESS",
        "t",
        "loadBalancers.disablePrivateIngress",
        || json!(true),
    ),
    (
        "HCLOUD_LOAD_BALANCERS_DISABLE_IPV6",
        "True",
        "loadBalancers.disableIpv6",
        || json!(true),
    ),
    (
        "HCLOUD_LOAD_BALANCERS_DISABLE_PUBLIC_NETWORK",
        "true",
        "loadBalancers.disablePublicNetwork",
        || json!(true),
    ),
    (
        "HCLOUD_LOAD_BALANCERS_USES_PROXYPROTOCOL",
        "false",
        "loadBalancers.usesProxyProtocol",
        || json!(false),
    ),
    (
        "HCLOUD_LOAD_BALANCERS_PRIVATE_SUBNET_IP_RANGE",
        "10.1.0.0/16",
        "loadBalancers.privateSubnetIpRange",
        || json!("10.1.0.0/16"),
    ),
    (
        "HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_INTERVAL",
        "1m30s",
        "loadBalancers.healthCheck.interval",
        || json!("90s"),
    ),
    (
        "HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_TIMEOUT",
        "9s",
        "loadBalancers.healthCheck.timeout",
        || json!("9s"),
    ),
    (
        "HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_RETRIES",
        "7",
        "loadBalancers.healthCheck.retries",
        || json!(7),
    ),
    (
        "CLOUDKEEL_HCLOUD_ADOPT_BY_NAME",
        "true",
        "loadBalancers.adoptByName",
        || json!(true),
    ),
    ("ROBOT_ENABLED", "true", "robot.enabled", || json!(true)),
    ("ROBOT_USER", "u", "robot.user", || json!("u")),
    ("ROBOT_PASSWORD", "p", "robot.password", || json!("p")),
    ("ROBOT_CACHE_TIMEOUT", "2m", "robot.cacheTimeout", || {
        json!("2m")
    }),
    (
        "ROBOT_RATE_LIMIT_WAIT_TIME",
        "3m",
        "robot.rateLimitWaitTime",
        || json!("3m"),
    ),
    (
        "ROBOT_FORWARD_INTERNAL_IPS",
        "false",
        "robot.forwardInternalIps",
        || json!(false),
    ),
    (
        "CLOUDKEEL_ROBOT_DELETE_RENAMED",
        "true",
        "robot.deleteRenamed",
        || json!(true),
    ),
];

/// Names that only one of the forms has: files and variables with secrets, places that the Go CCM
/// cannot change, switches that the other form has no need for.
const ALONE: &[&str] = &[
    "tokenFile",
    "tokenEnv",
    "reservePercent",
    "metadataEndpoint",
    "robot.userFile",
    "robot.passwordFile",
    "robot.endpoint",
    "HCLOUD_METRICS_ENABLED",
    "HCLOUD_SERVER_CACHE_MODE",
    "HCLOUD_SERVER_CACHE_MAX_AGE",
];

/// What a setting needs beside it to have an effect.
fn company(variable: &str) -> Vec<(&'static str, &'static str, &'static str, Value)> {
    match variable {
        "HCLOUD_NETWORK_ROUTES_ENABLED" => {
            vec![("HCLOUD_NETWORK", "kube", "network", json!("kube"))]
        }
        "ROBOT_USER" | "ROBOT_PASSWORD" => vec![
            ("ROBOT_ENABLED", "true", "robot.enabled", json!(true)),
            ("ROBOT_USER", "u", "robot.user", json!("u")),
            ("ROBOT_PASSWORD", "p", "robot.password", json!("p")),
        ],
        _ => Vec::new(),
    }
}

/// Sets a value at a path such as `robot.user`.
fn put(config: &mut Value, path: &str, value: Value) {
    let place = path.split('.').fold(config, |place, part| &mut place[part]);
    *place = value;
}

/// What differs by design while nothing is said: routes wait for a network, and the Go CCM serves metrics.
fn alike(mut config: Config) -> Config {
    config.routes &= config.network.is_some();
    if config.metrics_address.as_deref() == Some(":8233") {
        config.metrics_address = None;
    }
    config
}

#[test]
fn a_setting_means_the_same_in_both_forms_and_has_an_effect() {
    let untouched = alike(from_env(&[]).unwrap());
    for (variable, text, path, value) in PAIRS {
        let mut pairs = vec![(*variable, *text)];
        let mut config = json!({"token": "t"});
        for (variable, text, path, value) in company(variable) {
            pairs.push((variable, text));
            put(&mut config, path, value);
        }
        put(&mut config, path, value());
        let by_env = alike(from_env(&pairs).unwrap());
        assert_eq!(by_env, alike(from_own(config).unwrap()), "{variable}");
        assert_ne!(by_env, untouched, "{variable}");
    }
}

#[test]
fn every_documented_name_is_in_the_tables_above() {
    let pairs = PAIRS.iter().flat_map(|(env, _, own, _)| [*env, *own]);
    let tested: BTreeSet<_> = pairs.chain(ALONE.iter().copied()).collect();
    let documented: BTreeSet<_> = Config::docs()
        .into_iter()
        .filter(|doc| matches!(doc.place, KeyPlace::Env | KeyPlace::Config))
        .map(|doc| doc.name)
        .collect();
    assert_eq!(tested, documented);
}

#[test]
fn three_states_are_kept_apart_in_both_forms() {
    let of = |config: Config| {
        let balancers = config.load_balancers;
        (
            balancers.disable_public_network,
            balancers.uses_proxy_protocol,
        )
    };
    for (case, text, value, expected) in [
        ("false", "false", json!(false), Some(false)),
        ("true", "true", json!(true), Some(true)),
    ] {
        let by_env = from_env(&[
            ("HCLOUD_LOAD_BALANCERS_DISABLE_PUBLIC_NETWORK", text),
            ("HCLOUD_LOAD_BALANCERS_USES_PROXYPROTOCOL", text),
        ]);
        let balancers = json!({"disablePublicNetwork": value, "usesProxyProtocol": value});
        let by_own = from_own(json!({"token": "t", "loadBalancers": balancers}));
        assert_eq!(of(by_env.unwrap()), (expected, expected), "{case}");
        assert_eq!(of(by_own.unwrap()), (expected, expected), "{case}");
    }
    assert_eq!(of(from_env(&[]).unwrap()), (None, None));
    assert_eq!(of(from_own(json!({"token": "t"})).unwrap()), (None, None));
}

#[test]
fn a_variable_wins_over_its_file_even_when_it_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    std::fs::write(&file, " from-file\n").unwrap();
    let path = file.to_str().unwrap();
    let login = |pairs: &[(&str, &str)]| {
        let pairs = [&[("ROBOT_ENABLED", "true")], pairs].concat();
        let login = from_env(&pairs)?.robot.login;
        Ok(login.map(|(user, password)| format!("{user}/{}", password.expose())))
    };
    let files = [("ROBOT_USER_FILE", path), ("ROBOT_PASSWORD_FILE", path)];
    let [user, password] = files;
    for (case, pairs, expected) in [
        (
            "files",
            vec![user, password],
            Ok(Some("from-file/from-file".to_owned())),
        ),
        (
            "a variable",
            vec![user, password, ("ROBOT_USER", "u")],
            Ok(Some("u/from-file".to_owned())),
        ),
        (
            "empty variables",
            vec![user, password, ("ROBOT_USER", ""), ("ROBOT_PASSWORD", "")],
            Ok(None),
        ),
        (
            "an empty variable beside a file",
            vec![user, password, ("ROBOT_PASSWORD", "")],
            Err("ROBOT_PASSWORD: is required with ROBOT_USER".to_owned()),
        ),
    ] {
        assert_eq!(login(&pairs), expected, "{case}");
    }
    let empty = from_env(&[("HCLOUD_TOKEN", ""), ("HCLOUD_TOKEN_FILE", path)]);
    assert_eq!(empty.unwrap_err(), "HCLOUD_TOKEN: is required");
    let unreadable = from_env(&[("ROBOT_ENABLED", "1"), ("ROBOT_USER_FILE", "/no/such")]);
    let unreadable = unreadable.unwrap_err();
    assert!(
        unreadable.starts_with("ROBOT_USER_FILE: \"/no/such\""),
        "{unreadable}"
    );
}
