use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;

crate::settings! {
    /// A group.
    struct Check {
        /// The pause.
        interval: Option<std::time::Duration> = Setting::key("check.interval").ini("Check.delay"),
    }
}

crate::settings! {
    /// All that a setting can be.
    struct Config {
        /// The credential.
        token: Secret = Setting::key("token")
            .env("X_TOKEN")
            .file("tokenFile")
            .variable("tokenEnv")
            .non_empty()
            .required(),
        /// The user.
        user: Option<String> = Setting::key("user").env("X_USER").file("userFile").ini("Global.user"),
        /// Whether it is on.
        on: bool = Setting::key("on").env_not("X_OFF").default("true").ini("Global.on"),
        /// A percentage.
        percent: u16 = Setting::key("percent")
            .env("X_PERCENT")
            .default("20")
            .valid(|percent| *percent <= 90, "a percentage from 0 to 90"),
        /// Names,
        /// of any number.
        names: Vec<String> = Setting::key("names").ini("Global.name"),
        /// Only in the environment.
        mode: Option<String> = Setting::only_env("X_MODE").env_strict().env_only_with("X_USER"),
        /// The address.
        address: Option<String> = Setting::key("address").env("X_ADDRESS").env_default(":1"),
        /// Only in the file.
        region: Option<String> = Setting::only_ini("Global.region").env("X_REGION"),
    }
    groups {
        /// The check.
        check: Check,
    }
    rest {
        /// Filled in later.
        extra: u8,
    }
}

fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn read(mut reader: SettingsReader<'_>) -> Result<Config, String> {
    let config = Config::load(&mut reader);
    reader
        .finish(config)
        .map_err(|problems| problems.to_string())
}

fn from_env(pairs: &[(&str, &str)]) -> Result<Config, String> {
    read(SettingsReader::env(&env(pairs)))
}

fn from_yaml(config: &Value, pairs: &[(&str, &str)]) -> Result<Config, String> {
    read(SettingsReader::yaml(config, &env(pairs)))
}

fn from_ini(text: &str, pairs: &[(&str, &str)]) -> Config {
    let (ini, env) = (Ini::parse(text).unwrap(), env(pairs));
    let mut reader = SettingsReader::ini(&ini, &env);
    Config::load(&mut reader)
}

#[test]
fn every_form_has_its_defaults() {
    let by_env = from_env(&[("X_TOKEN", "t")]).unwrap();
    assert_eq!((by_env.on, by_env.percent, by_env.extra), (true, 20, 0));
    assert_eq!(by_env.address.as_deref(), Some(":1"), "the variable's own");
    let by_yaml = from_yaml(&json!({"token": "t"}), &[]).unwrap();
    assert_eq!(by_yaml.address, None);
    let expected = Config {
        address: None,
        ..by_env
    };
    assert_eq!(by_yaml, expected);
    let defaults = Config::defaults();
    assert_eq!((defaults.percent, defaults.token), (20, Secret::default()));
}

#[test]
fn variables_mean_what_their_declaration_says() {
    let token = ("X_TOKEN", "t");
    for (case, pairs, expected) in [
        ("the contrary", &[("X_OFF", "1")][..], Ok((false, None))),
        (
            "the contrary of the contrary",
            &[("X_OFF", "false")],
            Ok((true, None)),
        ),
        (
            "an empty boolean",
            &[("X_OFF", "")],
            Err("X_OFF: \"\": expected `true` or `false`"),
        ),
        ("not looked at", &[("X_MODE", "m")], Ok((true, None))),
        (
            "looked at",
            &[("X_MODE", "m"), ("X_USER", "u")],
            Ok((true, Some("m"))),
        ),
        (
            "strict",
            &[("X_MODE", ""), ("X_USER", "u")],
            Ok((true, Some(""))),
        ),
        ("empty is not set", &[("X_PERCENT", "")], Ok((true, None))),
        (
            "out of range",
            &[("X_PERCENT", "91")],
            Err("X_PERCENT: \"91\": expected a percentage from 0 to 90"),
        ),
    ] {
        let pairs: Vec<_> = pairs.iter().copied().chain([token]).collect();
        let found = from_env(&pairs).map(|config| (config.on, config.mode));
        let expected = expected.map(|(on, mode)| (on, mode.map(str::to_owned)));
        assert_eq!(found, expected.map_err(str::to_owned), "{case}");
    }
    assert_eq!(from_env(&[]).unwrap_err(), "X_TOKEN: is required");
    assert_eq!(
        from_env(&[("X_TOKEN", "")]).unwrap_err(),
        "X_TOKEN: is required"
    );
}

#[test]
fn a_secret_comes_from_one_place_and_is_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    let [good, empty] = ["good", "empty"].map(|name| folder.path().join(name));
    std::fs::write(&good, " from-file\n").unwrap();
    std::fs::write(&empty, "\n").unwrap();
    let variables = &[("MINE", "from-env")];
    for (case, config, expected) in [
        ("plain", json!({"token": "t"}), Ok("t")),
        ("file", json!({"tokenFile": good}), Ok("from-file")),
        ("variable", json!({"tokenEnv": "MINE"}), Ok("from-env")),
        ("none", json!({}), Err("token: is required, or `tokenFile`")),
        ("empty", json!({"token": ""}), Err("token: is empty")),
        (
            "two",
            json!({"token": "t", "tokenEnv": "MINE"}),
            Err("token: give one of"),
        ),
        (
            "no variable",
            json!({"tokenEnv": "NO"}),
            Err("tokenEnv: \"NO\": expected a variable"),
        ),
        (
            "an empty file",
            json!({"tokenFile": empty}),
            Err("tokenFile: "),
        ),
        (
            "no file",
            json!({"tokenFile": "/no/such"}),
            Err("tokenFile: \"/no/such\": expected a readable"),
        ),
        (
            "a list",
            json!({"token": ["hunter2"]}),
            Err("token: \"[redacted]\": expected a single secret"),
        ),
    ] {
        match (from_yaml(&config, variables), expected) {
            (Ok(config), Ok(token)) => assert_eq!(config.token.expose(), token, "{case}"),
            (Err(problems), Err(begin)) => {
                assert!(problems.starts_with(begin), "{case}: {problems}");
                assert_eq!(problems.lines().count(), 1, "{case}: {problems}");
            }
            (found, _) => panic!("{case}: {found:?}"),
        }
    }
    let both = json!({"token": "t", "user": "u", "userFile": good});
    let both = from_yaml(&both, &[]).unwrap_err();
    assert_eq!(both, "userFile: give either this or `user`, not both");
    let path = good.to_str().unwrap();
    let by_file = from_env(&[("X_TOKEN_FILE", path)]).unwrap();
    assert_eq!(by_file.token.expose(), "from-file");
}

#[test]
fn files_that_values_came_from_are_remembered() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "x").unwrap();
    let (config, env) = (json!({"tokenFile": file.path()}), BTreeMap::new());
    let mut reader = SettingsReader::yaml(&config, &env);
    Config::load(&mut reader);
    assert_eq!(reader.files(), [file.path()]);
}

#[test]
fn everything_wrong_is_reported_at_once() {
    let wrong = json!({"percent": 95, "check": {"interval": 5, "intervl": 1}, "tokn": "t"});
    assert_eq!(
        from_yaml(&wrong, &[]).unwrap_err(),
        "token: is required, or `tokenFile`\n\
         percent: \"95\": expected a percentage from 0 to 90\n\
         check.interval: \"5\": expected a duration such as `10s`, `1m30s` or `500ms`\n\
         check.intervl: is not a known key: did you mean `check.interval`?\n\
         tokn: is not a known key: did you mean `token`?"
    );
}

#[test]
fn a_file_of_a_go_ccm_is_read_and_variables_win() {
    let text =
        "[Global]\nuser=u\non=off\nname=a\nname=b\nregion=r1\nold-key=x\n[Check]\ndelay=5s\n";
    let config = from_ini(text, &[]);
    assert_eq!((config.user.as_deref(), config.on), (Some("u"), false));
    assert_eq!(config.names, ["a", "b"]);
    assert_eq!(
        config.check.interval,
        Some(std::time::Duration::from_secs(5))
    );
    assert_eq!(config.region.as_deref(), Some("r1"));
    assert_eq!(
        from_ini(text, &[("X_REGION", "r2")]).region.as_deref(),
        Some("r2")
    );
    let nothing = from_ini("", &[]);
    assert_eq!(
        (nothing.on, nothing.percent, nothing.names.len()),
        (true, 20, 0)
    );
}

#[test]
fn a_yaml_file_of_a_go_ccm_is_read_with_its_unknown_keys_and_variables_win() {
    let file = json!({"token": "t", "user": "a", "old-key": {"a": 1}});
    for (variables, user) in [(&[][..], "a"), (&[("X_USER", "b")], "b")] {
        let config = read(SettingsReader::go_yaml(&file, &env(variables))).unwrap();
        assert_eq!(config.user.as_deref(), Some(user));
    }
    let wrong = json!({"token": "t", "percent": 95});
    let problems = read(SettingsReader::go_yaml(&wrong, &env(&[]))).unwrap_err();
    assert!(problems.starts_with("percent: "), "{problems}");
}

#[test]
fn every_place_of_a_setting_is_documented() {
    let docs = Config::keys();
    let row = |name: &str| docs.iter().find(|doc| doc.name == name).unwrap();
    assert_eq!(docs.len(), 22);
    assert_eq!(row("names").help, "Names, of any number.");
    assert_eq!(
        (row("X_OFF").default, row("on").default),
        (Some("false"), Some("true"))
    );
    assert_eq!(row("X_ADDRESS").default, Some(":1"));
    assert!(row("tokenFile").help.starts_with("A file"));
    assert!(row("token").secret && !row("tokenFile").secret && !row("token").required);
    assert_eq!(row("Global.region").place, KeyPlace::File);
}

crate::settings! {
    /// Settings that depend on each other, and those of every client.
    struct Connected {
        /// The credential.
        token: Secret = Setting::key("token").env("X_TOKEN").for_header(),
        /// The address of pages.
        pages: Option<String> = Setting::key("pages").env("X_PAGES").listen_address(),
        /// A number that a Go CCM ignores if it is none.
        count: u16 = Setting::key("count").env("X_COUNT").env_lenient().default("7"),
        /// The user.
        user: Option<String> = Setting::key("user").env("X_USER"),
        /// The group.
        group: Option<u16> = Setting::key("group").env("X_GROUP"),
    }
}

#[test]
fn a_credential_fits_into_a_header_and_pages_have_a_port() {
    let env = env(&[("X_TOKEN", "a\nb"), ("X_PAGES", "here")]);
    let mut reader = SettingsReader::env(&env);
    let read = Connected::load(&mut reader);
    let wrong = reader.finish(read).unwrap_err().to_string();
    assert!(wrong.contains("X_TOKEN"), "{wrong}");
    assert!(!wrong.contains("a\nb"), "{wrong}");
    let pages = "X_PAGES: \"here\": expected an address such as `127.0.0.1:9090`";
    assert!(wrong.contains(pages), "{wrong}");
}

#[test]
fn what_a_go_ccm_ignores_is_the_default_in_the_environment_only() {
    let variables = env(&[("X_TOKEN", "t"), ("X_COUNT", "many")]);
    let mut reader = SettingsReader::env(&variables);
    let read = Connected::load(&mut reader);
    assert_eq!(reader.finish(read).unwrap().count, 7);
    let yaml = json!({"token": "t", "count": "many"});
    let mut reader = SettingsReader::yaml(&yaml, &variables);
    let read = Connected::load(&mut reader);
    let wrong = reader.finish(read).unwrap_err().to_string();
    assert!(wrong.contains("count: \"many\""), "{wrong}");
}

#[test]
fn two_settings_that_need_each_other_are_both_there_or_neither() {
    for (case, pairs, expected) in [
        ("both", &[("X_USER", "u"), ("X_GROUP", "3")][..], Ok(true)),
        ("neither", &[], Ok(false)),
        (
            "one",
            &[("X_USER", "u")],
            Err("X_GROUP: is required with X_USER"),
        ),
        (
            "the other",
            &[("X_GROUP", "3")],
            Err("X_USER: is required with X_GROUP"),
        ),
    ] {
        let env = env(pairs);
        let mut reader = SettingsReader::env(&env);
        let read = Connected::load(&mut reader);
        let user = (&Connected::user(), read.user);
        let both = reader.both(user, (&Connected::group(), read.group));
        let both = reader.finish(both.is_some());
        let both = both.map_err(|problems| problems.to_string());
        assert_eq!(both, expected.map_err(str::to_owned), "{case}");
    }
}
