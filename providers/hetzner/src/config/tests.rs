use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;

mod forms;

fn from_env(pairs: &[(&str, &str)]) -> Result<Config, String> {
    let mut env: BTreeMap<String, String> = pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    env.entry("HCLOUD_TOKEN".to_owned())
        .or_insert_with(|| "t".to_owned());
    let input = ProviderInput {
        env,
        ..ProviderInput::default()
    };
    Config::read(&input).map_err(|problems| problems.to_string())
}

fn from_own(config: Value) -> Result<Config, String> {
    let input = ProviderInput {
        config: ConfigSource::Own(config),
        env: BTreeMap::from([("MY_TOKEN".to_owned(), "from-env".to_owned())]),
        ..ProviderInput::default()
    };
    Config::read(&input).map_err(|problems| problems.to_string())
}

#[test]
fn a_token_is_enough_and_the_rest_has_its_default() {
    let defaults = Config {
        routes: false,
        metrics_address: Some(":8233".into()),
        ..Config::new("t")
    };
    assert_eq!(from_env(&[]).unwrap(), defaults);
    assert_eq!(from_own(json!({"token": "t"})).unwrap(), Config::new("t"));
}

#[test]
fn empty_means_what_it_means_to_the_go_ccm() {
    for (name, is_wrong) in [
        ("HCLOUD_DEBUG", true),
        ("HCLOUD_NETWORK_DISABLE_ATTACHED_CHECK", true),
        ("HCLOUD_INSTANCES_ZONE_LABEL_ENABLED", true),
        ("HCLOUD_METRICS_ENABLED", true),
        ("HCLOUD_LOAD_BALANCERS_ENABLED", true),
        ("HCLOUD_LOAD_BALANCERS_USE_PRIVATE_IP", true),
        ("HCLOUD_LOAD_BALANCERS_DISABLE_PRIVATE_INGRESS", true),
        ("HCLOUD_LOAD_BALANCERS_DISABLE_IPV6", true),
        ("HCLOUD_LOAD_BALANCERS_DISABLE_PUBLIC_NETWORK", true),
        ("HCLOUD_LOAD_BALANCERS_USES_PROXYPROTOCOL", true),
        ("HCLOUD_SERVER_CACHE_MODE", true),
        ("ROBOT_ENABLED", true),
        ("ROBOT_FORWARD_INTERNAL_IPS", true),
        ("HCLOUD_ENDPOINT", false),
        ("HCLOUD_NETWORK", false),
        ("HCLOUD_INSTANCES_ADDRESS_FAMILY", false),
        ("HCLOUD_SERVER_CACHE_MAX_AGE", false),
        ("HCLOUD_METRICS_ADDRESS", false),
        ("HCLOUD_LOAD_BALANCERS_LOCATION", false),
        ("HCLOUD_LOAD_BALANCERS_NETWORK_ZONE", false),
        ("HCLOUD_LOAD_BALANCERS_TYPE", false),
        ("HCLOUD_LOAD_BALANCERS_ALGORITHM_TYPE", false),
        ("HCLOUD_LOAD_BALANCERS_PRIVATE_SUBNET_IP_RANGE", false),
        ("HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_INTERVAL", false),
        ("HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_TIMEOUT", false),
        ("HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_RETRIES", false),
        ("ROBOT_CACHE_TIMEOUT", false),
        ("ROBOT_RATE_LIMIT_WAIT_TIME", false),
        // Only looked at when there is a network.
        ("HCLOUD_NETWORK_ROUTES_ENABLED", false),
    ] {
        match from_env(&[(name, "")]) {
            Ok(config) => {
                assert!(!is_wrong, "{name}");
                assert_eq!(config, from_env(&[]).unwrap(), "{name}");
            }
            Err(problems) => assert!(is_wrong && problems.starts_with(name), "{problems}"),
        }
    }
}

type Setting = (
    &'static str,
    &'static [(&'static str, &'static str)],
    fn(&mut Config),
);

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn every_variable_is_read() {
    const ROBOT: (&str, &str) = ("ROBOT_ENABLED", "true");
    const TABLE: &[Setting] = &[
        ("endpoint", &[("HCLOUD_ENDPOINT", "http://x/v1/")], |c| {
            c.endpoint = "http://x/v1".into();
        }),
        ("debug", &[("HCLOUD_DEBUG", "1")], |c| c.debug = true),
        (
            "network brings routes",
            &[("HCLOUD_NETWORK", "kube")],
            |c| {
                c.network = Some("kube".into());
                c.routes = true;
            },
        ),
        (
            "network without routes",
            &[
                ("HCLOUD_NETWORK", "42"),
                ("HCLOUD_NETWORK_ROUTES_ENABLED", "false"),
                ("HCLOUD_NETWORK_DISABLE_ATTACHED_CHECK", "T"),
            ],
            |c| {
                c.network = Some("42".into());
                c.attached_check = false;
            },
        ),
        (
            "routes without a network",
            &[("HCLOUD_NETWORK_ROUTES_ENABLED", "perhaps")],
            |_| {},
        ),
        (
            "addresses",
            &[("HCLOUD_INSTANCES_ADDRESS_FAMILY", "dualstack")],
            |c| c.address_family = AddressFamily::DualStack,
        ),
        (
            "no zone",
            &[("HCLOUD_INSTANCES_ZONE_LABEL_ENABLED", "False")],
            |c| c.zone_label = false,
        ),
        (
            "without effect",
            &[
                ("HCLOUD_SERVER_CACHE_MODE", "one"),
                ("HCLOUD_SERVER_CACHE_MAX_AGE", "1m30s"),
                ("HCLOUD_SERVER_CACHE_TTL", "nonsense"),
            ],
            |_| {},
        ),
        (
            "metrics elsewhere",
            &[("HCLOUD_METRICS_ADDRESS", ":1")],
            |c| c.metrics_address = Some(":1".into()),
        ),
        ("no metrics", &[("HCLOUD_METRICS_ENABLED", "false")], |c| {
            c.metrics_address = None;
        }),
        (
            "tri-state",
            &[
                ("HCLOUD_LOAD_BALANCERS_DISABLE_PUBLIC_NETWORK", "false"),
                ("HCLOUD_LOAD_BALANCERS_USES_PROXYPROTOCOL", "true"),
            ],
            |c| {
                c.load_balancers.disable_public_network = Some(false);
                c.load_balancers.uses_proxy_protocol = Some(true);
            },
        ),
        (
            "balancers",
            &[
                ("HCLOUD_LOAD_BALANCERS_LOCATION", "fsn1"),
                ("HCLOUD_LOAD_BALANCERS_TYPE", "lb21"),
                (
                    "HCLOUD_LOAD_BALANCERS_ALGORITHM_TYPE",
                    " Least_Connections ",
                ),
                ("HCLOUD_LOAD_BALANCERS_USE_PRIVATE_IP", "true"),
                ("HCLOUD_LOAD_BALANCERS_DISABLE_PRIVATE_INGRESS", "true"),
                ("HCLOUD_LOAD_BALANCERS_DISABLE_IPV6", "true"),
                (
                    "HCLOUD_LOAD_BALANCERS_PRIVATE_SUBNET_IP_RANGE",
                    "10.0.0.0/24",
                ),
                ("HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_INTERVAL", "30s"),
                ("HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_TIMEOUT", "5s"),
                ("HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_RETRIES", "4"),
                ("CLOUDKEEL_HCLOUD_ADOPT_BY_NAME", "true"),
            ],
            |c| {
                c.load_balancers = BalancerDefaults {
                    location: Some("fsn1".into()),
                    load_balancer_type: Some("lb21".into()),
                    algorithm: Some(Algorithm::LeastConnections),
                    use_private_ip: true,
                    disable_private_ingress: true,
                    disable_ipv6: true,
                    private_subnet_ip_range: Some("10.0.0.0/24".parse().unwrap()),
                    health_check_interval: Some(Duration::from_secs(30)),
                    health_check_timeout: Some(Duration::from_secs(5)),
                    health_check_retries: Some(4),
                    adopt_by_name: true,
                    ..BalancerDefaults::default()
                };
            },
        ),
        (
            "no balancers",
            &[("HCLOUD_LOAD_BALANCERS_ENABLED", "0")],
            |c| c.load_balancers.enabled = false,
        ),
        ("robot for balancers only", &[ROBOT], |c| {
            c.robot.enabled = true;
        }),
        (
            "robot",
            &[
                ROBOT,
                ("ROBOT_USER", "u"),
                ("ROBOT_PASSWORD", "p"),
                ("ROBOT_CACHE_TIMEOUT", "0"),
                ("ROBOT_RATE_LIMIT_WAIT_TIME", "10m"),
                ("ROBOT_FORWARD_INTERNAL_IPS", "false"),
                ("CLOUDKEEL_ROBOT_DELETE_RENAMED", "true"),
            ],
            |c| {
                c.robot = RobotConfig {
                    enabled: true,
                    login: Some(("u".into(), "p".into())),
                    rate_limit_wait: Duration::from_mins(10),
                    forward_internal_ips: false,
                    delete_renamed: true,
                    ..RobotConfig::default()
                };
            },
        ),
        ("a login without robot", &[("ROBOT_USER", "u")], |_| {}),
        (
            "robot beside routes",
            &[ROBOT, ("HCLOUD_NETWORK", "kube")],
            |c| {
                c.robot.enabled = true;
                c.network = Some("kube".into());
                c.routes = true;
            },
        ),
    ];
    for (case, pairs, change) in TABLE {
        let mut expected = from_env(&[]).unwrap();
        change(&mut expected);
        assert_eq!(from_env(pairs), Ok(expected), "{case}");
    }
}

#[test]
fn everything_wrong_is_reported_at_once() {
    let problems = from_env(&[
        ("HCLOUD_TOKEN", ""),
        ("HCLOUD_DEBUG", "yes"),
        ("HCLOUD_NETWORK", "kube"),
        ("HCLOUD_NETWORK_ROUTES_ENABLED", ""),
        ("HCLOUD_INSTANCES_ADDRESS_FAMILY", "ipv5"),
        ("HCLOUD_SERVER_CACHE_MODE", "some"),
        ("HCLOUD_SERVER_CACHE_MAX_AGE", "10"),
        ("HCLOUD_LOAD_BALANCERS_LOCATION", "fsn1"),
        ("HCLOUD_LOAD_BALANCERS_NETWORK_ZONE", "eu-central"),
        ("HCLOUD_LOAD_BALANCERS_ALGORITHM_TYPE", "random"),
        ("HCLOUD_LOAD_BALANCERS_PRIVATE_SUBNET_IP_RANGE", "10.0.0.0"),
        ("HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_RETRIES", "many"),
        ("ROBOT_ENABLED", "true"),
        ("ROBOT_USER", "u"),
        ("ROBOT_PASSWORD", ""),
    ])
    .unwrap_err();
    let keys: Vec<_> = problems
        .lines()
        .map(|line| line.split(':').next().unwrap())
        .collect();
    assert_eq!(
        keys,
        [
            "HCLOUD_TOKEN",
            "HCLOUD_DEBUG",
            "HCLOUD_NETWORK_ROUTES_ENABLED",
            "HCLOUD_INSTANCES_ADDRESS_FAMILY",
            "HCLOUD_LOAD_BALANCERS_ALGORITHM_TYPE",
            "HCLOUD_LOAD_BALANCERS_PRIVATE_SUBNET_IP_RANGE",
            "HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_RETRIES",
            "HCLOUD_SERVER_CACHE_MODE",
            "HCLOUD_SERVER_CACHE_MAX_AGE",
            "ROBOT_PASSWORD",
            "HCLOUD_LOAD_BALANCERS_LOCATION",
        ],
        "{problems}"
    );
}

#[test]
fn the_own_form_says_the_same_things() {
    let config = from_own(json!({
        "tokenEnv": "MY_TOKEN",
        "endpoint": "http://x/v1/",
        "network": "kube",
        "routes": false,
        "attachedCheck": false,
        "addressFamily": "ipv6",
        "reservePercent": 50,
        "loadBalancers": {
            "networkZone": "eu-central",
            "algorithm": "round_robin",
            "disablePublicNetwork": true,
            "healthCheck": {"interval": "15s"},
        },
        "robot": {"enabled": true, "user": "u", "password": "p", "cacheTimeout": "1m"},
    }))
    .unwrap();
    let expected = Config {
        endpoint: "http://x/v1".into(),
        network: Some("kube".into()),
        routes: false,
        attached_check: false,
        address_family: AddressFamily::Ipv6,
        reserve_percent: 50,
        load_balancers: BalancerDefaults {
            network_zone: Some("eu-central".into()),
            algorithm: Some(Algorithm::RoundRobin),
            disable_public_network: Some(true),
            health_check_interval: Some(Duration::from_secs(15)),
            ..BalancerDefaults::default()
        },
        robot: RobotConfig {
            enabled: true,
            login: Some(("u".into(), "p".into())),
            cache_timeout: Duration::from_mins(1),
            ..RobotConfig::default()
        },
        ..Config::new("from-env")
    };
    assert_eq!(config, expected);
    let problems = from_own(json!({
        "tokn": "t",
        "reservePercent": 91,
        "robot": {"enabled": true, "password": "p"},
        "loadBalancers": {"location": "fsn1", "networkZone": "eu-central"},
    }))
    .unwrap_err();
    for part in [
        "token: is required",
        "tokn: is not a known key",
        "reservePercent",
        "robot.user: is required with robot.password",
        "loadBalancers.location: give either",
    ] {
        assert!(problems.contains(part), "{part} in {problems}");
    }
}

#[test]
fn secrets_come_from_one_place_and_are_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, " from-file\n").unwrap();
    let path = file.to_str().unwrap();
    let own = |config| from_own(config).map(|config| config.token.expose().to_owned());
    assert_eq!(own(json!({"tokenFile": path})).unwrap(), "from-file");
    let both = own(json!({"tokenFile": path, "token": "t"})).unwrap_err();
    assert!(both.contains("not several"), "{both}");
    let none = own(json!({"tokenEnv": "NO_SUCH"})).unwrap_err();
    assert_eq!(
        none,
        "tokenEnv: \"NO_SUCH\": expected a variable that is set"
    );

    let twice = json!({"token": "t", "robot": {"user": "u", "userFile": path}});
    assert_eq!(
        from_own(twice).unwrap_err(),
        "robot.userFile: give either this or `robot.user`, not both"
    );

    let input = ProviderInput {
        env: BTreeMap::from([("HCLOUD_TOKEN_FILE".to_owned(), path.to_owned())]),
        ..ProviderInput::default()
    };
    assert_eq!(Config::read(&input).unwrap().token.expose(), "from-file");

    let problems = from_env(&[("HCLOUD_TOKEN", "hunter2\n")]).unwrap_err();
    assert!(problems.contains("HCLOUD_TOKEN"), "{problems}");
    assert!(!problems.contains("hunter2"), "{problems}");
    let shown = format!("{:?}", Config::new("hunter2"));
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn the_files_that_secrets_came_from_are_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let [token, user, password] = ["token", "user", "password"].map(|name| {
        let path = folder.path().join(name);
        std::fs::write(&path, name).unwrap();
        path
    });
    let config = from_own(json!({
        "tokenFile": token,
        "robot": {"enabled": true, "userFile": user, "passwordFile": password},
    }));
    let config = config.unwrap();
    assert_eq!(config.files, [token, user, password]);
    let login = config.robot.login.unwrap();
    assert_eq!((&*login.0, login.1.expose()), ("user", "password"));
    assert!(from_own(json!({"token": "t"})).unwrap().files.is_empty());
}

#[test]
fn a_file_of_the_flag_is_not_read_as_the_go_ccm_does_not_read_one() {
    let input = ProviderInput {
        config: ConfigSource::File {
            path: "/etc/cloud.conf".into(),
            text: "nonsense".into(),
        },
        env: BTreeMap::from([("HCLOUD_TOKEN".to_owned(), "t".to_owned())]),
        ..ProviderInput::default()
    };
    assert_eq!(Config::read(&input).unwrap(), from_env(&[]).unwrap());
}

#[test]
fn every_setting_is_documented() {
    for doc in Config::docs() {
        assert!(doc.help.ends_with('.'), "{}", doc.name);
    }
}
