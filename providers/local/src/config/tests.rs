use serde_json::{Value, json};

use super::*;

fn read(config: Value) -> Result<Config, String> {
    Config::read(&ConfigSource::Own(config)).map_err(|problems| problems.to_string())
}

#[test]
fn what_is_left_out_has_its_default() {
    let config = read(json!({"endpoint": "http://127.0.0.1:1", "token": "t"})).unwrap();
    assert_eq!(config, Config::new("http://127.0.0.1:1", "t"));
}

#[test]
fn settings_that_name_no_cloud_mean_the_one_that_was_found() {
    let launched = Launched {
        endpoint: "http://127.0.0.1:7".to_owned(),
        token: Secret::new("t"),
    };
    for (case, config, names_none) in [
        ("nothing", json!({}), true),
        ("something else", json!({"timeout": "3s"}), true),
        (
            "an endpoint",
            json!({"endpoint": "http://127.0.0.1:1"}),
            false,
        ),
        ("a token", json!({"token": "t"}), false),
        ("a file", json!({"tokenFile": "/t"}), false),
    ] {
        let source = ConfigSource::Own(config);
        assert_eq!(Config::names_no_cloud(&source), names_none, "{case}");
    }
    assert!(Config::names_no_cloud(&ConfigSource::None));
    let source = ConfigSource::Own(json!({"timeout": "3s"}));
    let config = Config::read_launched(&source, &launched).unwrap();
    assert_eq!(config.endpoint, launched.endpoint);
    assert_eq!(config.timeout, Duration::from_secs(3));
    let source = ConfigSource::Own(json!({"timeout": "0s"}));
    assert!(Config::read_launched(&source, &launched).is_err());
}

#[test]
fn everything_wrong_is_reported_at_once() {
    let problems = read(json!({"timeout": "0s", "pollInterval": 5, "tokn": "t"})).unwrap_err();
    assert_eq!(
        problems,
        "endpoint: is required\n\
         token: is required, or `tokenFile`\n\
         timeout: \"0s\": expected more than nothing\n\
         pollInterval: \"5\": expected a duration such as `10s`, `1m30s` or `500ms`\n\
         tokn: is not a known key: did you mean `token`?"
    );
}

#[test]
fn the_credential_comes_from_one_place_and_is_not_empty() {
    let folder = std::env::temp_dir().join(format!("cloudkeel-local-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (good, empty) = (folder.join("good"), folder.join("empty"));
    std::fs::write(&good, " from-file\n").unwrap();
    std::fs::write(&empty, "\n").unwrap();
    let with = |keys: Value| {
        let mut config = json!({"endpoint": "http://127.0.0.1:1"});
        for (key, value) in keys.as_object().unwrap() {
            config[key] = value.clone();
        }
        read(config)
    };
    let config = with(json!({"tokenFile": good})).unwrap();
    assert_eq!(config.token.expose(), "from-file");
    assert_eq!(config.files, std::slice::from_ref(&good));
    for (case, keys, problem) in [
        ("both", json!({"token": "t", "tokenFile": good}), "not both"),
        ("empty", json!({"token": ""}), "token: is empty"),
        (
            "empty file",
            json!({"tokenFile": empty}),
            "a file that is not empty",
        ),
        (
            "no file",
            json!({"tokenFile": "/no/such"}),
            "a readable file",
        ),
        (
            "no text",
            json!({"token": "t", "tokenFile": []}),
            "a single text",
        ),
    ] {
        let problems = with(keys).unwrap_err();
        assert!(problems.contains(problem), "{case}: {problems}");
        assert_eq!(problems.lines().count(), 1, "{case}: {problems}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_foreign_file_is_refused_by_name() {
    let source = ConfigSource::File {
        path: "/etc/cloud.conf".into(),
        text: String::new(),
    };
    let problems = Config::read(&source).unwrap_err().to_string();
    assert!(problems.contains("/etc/cloud.conf"), "{problems}");
}

#[test]
fn the_credential_is_never_printed() {
    let config = Config::new("http://127.0.0.1:1", "hunter2");
    assert!(!format!("{config:?}").contains("hunter2"));
}
