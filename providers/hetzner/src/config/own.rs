//! Our own form: the `config` of a cloud in the file of all clouds.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cloudkeel_api::{
    ConfigKey, ConfigReader, Documented, KeyDoc, KeyValue, Problem, Problems, Secret,
};
use serde_json::Value;

use super::Config;
use super::both::{self, Form, ROBOT_PASSWORD, ROBOT_USER, Setting, TOKEN};

const TOKEN_FILE: ConfigKey<String> = ConfigKey::new(
    "tokenFile",
    "A file that holds the token, in place of `token`.",
);
const TOKEN_ENV: ConfigKey<String> = ConfigKey::new(
    "tokenEnv",
    "An environment variable that holds the token, in place of `token`.",
);
const METRICS: ConfigKey<String> = ConfigKey::new(
    "metricsAddress",
    "Where metrics of API calls are served in plain HTTP, besides those on the secure port. Nowhere if not given.",
);
const RESERVE: ConfigKey<u16> = ConfigKey::new(
    "reservePercent",
    "The share of the project's request budget that is left to other tools.",
)
.with_default("20");
const ATTACHED_CHECK: ConfigKey<bool> = ConfigKey::new(
    "attachedCheck",
    "Whether this machine must be in the private network.",
)
.with_default("true");
const METADATA: ConfigKey<String> =
    ConfigKey::new("metadataEndpoint", "Where this machine asks about itself.")
        .with_default(super::METADATA_ENDPOINT);
const ROUTES: ConfigKey<bool> = ConfigKey::new(
    "routes",
    "Whether routes are made in the private network, if there is one.",
)
.with_default("true");
const ROBOT_USER_FILE: ConfigKey<String> = ConfigKey::new(
    "robot.userFile",
    "A file that holds the user, in place of `robot.user`.",
);
const ROBOT_PASSWORD_FILE: ConfigKey<String> = ConfigKey::new(
    "robot.passwordFile",
    "A file that holds the password, in place of `robot.password`.",
);
const ROBOT_ENDPOINT: ConfigKey<String> =
    ConfigKey::new("robot.endpoint", "The address of the Robot web service.")
        .with_default(super::ROBOT_ENDPOINT);

/// Every key, for the reference page.
pub(super) fn docs() -> Vec<KeyDoc> {
    let only_here: [&dyn Documented; 10] = [
        &TOKEN_FILE,
        &TOKEN_ENV,
        &METRICS,
        &RESERVE,
        &ATTACHED_CHECK,
        &METADATA,
        &ROUTES,
        &ROBOT_USER_FILE,
        &ROBOT_PASSWORD_FILE,
        &ROBOT_ENDPOINT,
    ];
    let only_here = only_here.iter().map(|key| key.doc());
    let in_both = both::ALL.iter().map(|setting| setting.own());
    in_both.chain(only_here).collect()
}

/// Reads them all, and tells everything that is wrong.
pub(super) fn read(config: &Value, env: &BTreeMap<String, String>) -> Result<Config, Problems> {
    let mut reader = ConfigReader::new(config);
    let mut files = Vec::new();
    let mut read = both::read(&mut reader);
    let token = token(&mut reader, env, &mut files);
    read.token = token.unwrap_or_else(|| Secret::new(""));
    read.reserve_percent = reserve(&mut reader);
    read.metrics_address = reader.get(&METRICS);
    read.attached_check = reader.get(&ATTACHED_CHECK).unwrap_or_default();
    read.metadata_endpoint = reader.get(&METADATA).unwrap_or_default();
    read.routes = reader.get(&ROUTES).unwrap_or_default();
    read.robot.endpoint = reader.get(&ROBOT_ENDPOINT).unwrap_or_default();
    let user = plain_or_in_file(&mut reader, &ROBOT_USER, &ROBOT_USER_FILE, &mut files);
    let password = plain_or_in_file(
        &mut reader,
        &ROBOT_PASSWORD,
        &ROBOT_PASSWORD_FILE,
        &mut files,
    );
    read.check((user, password), &mut reader);
    read.files = files;
    reader.finish(|| Some(read))
}

fn reserve(reader: &mut ConfigReader<'_>) -> u8 {
    let percent = reader.get(&RESERVE).unwrap_or_default();
    u8::try_from(percent)
        .ok()
        .filter(|percent| *percent <= 90)
        .unwrap_or_else(|| {
            let problem = Problem::unexpected(
                RESERVE.path(),
                percent.to_string(),
                "a percentage from 0 to 90",
            );
            reader.note(problem);
            0
        })
}

/// The token, from one place.
fn token(
    reader: &mut ConfigReader<'_>,
    env: &BTreeMap<String, String>,
    files: &mut Vec<PathBuf>,
) -> Option<Secret> {
    let plain = Form::get(reader, &TOKEN);
    let file = reader.get(&TOKEN_FILE);
    let variable = reader.get(&TOKEN_ENV);
    let problem = match (plain, file, variable) {
        (token, None, None) => return token,
        (None, Some(path), None) => match read_file(TOKEN_FILE.path(), path, files) {
            Ok(text) => return Some(Secret::new(text)),
            Err(problem) => problem,
        },
        (None, None, Some(name)) => match env.get(&name) {
            Some(text) if !text.is_empty() => return Some(Secret::new(text.trim())),
            _ => Problem::unexpected(TOKEN_ENV.path(), name, "a variable that is set"),
        },
        _ => Problem::new(
            reader.name(&TOKEN),
            "give one of `token`, `tokenFile` and `tokenEnv`, not several",
        ),
    };
    reader.note(problem);
    // Something was given, so that it is missing is not worth telling.
    Some(Secret::new("wrong"))
}

/// A part of the login to Robot, from one place.
fn plain_or_in_file<T: KeyValue>(
    reader: &mut ConfigReader<'_>,
    setting: &Setting<T>,
    file: &ConfigKey<String>,
    files: &mut Vec<PathBuf>,
) -> Option<T> {
    let plain = Form::get(reader, setting);
    let (key, Some(path)) = (file.path(), reader.get(file)) else {
        return plain;
    };
    let text = if plain.is_none() {
        read_file(key, path, files)
    } else {
        let other = reader.name(setting);
        let message = format!("give either this or `{other}`, not both");
        Err(Problem::new(key, message))
    };
    let read = text.and_then(|text| {
        let wrong = |expected| Problem::unexpected_secret(key, expected);
        T::parse(&text).map_err(wrong)
    });
    read.map_err(|problem| reader.note(problem)).ok()
}

/// What stands in a file, which is one of those to look at from now on.
fn read_file(key: &'static str, path: String, files: &mut Vec<PathBuf>) -> Result<String, Problem> {
    match std::fs::read_to_string(&path) {
        Ok(text) if !text.trim().is_empty() => {
            files.push(path.into());
            Ok(text.trim().to_owned())
        }
        Ok(_) => Err(Problem::unexpected(key, path, "a file that is not empty")),
        Err(error) => {
            let expected = format!("a readable file: {error}");
            Err(Problem::unexpected(key, path, expected))
        }
    }
}
