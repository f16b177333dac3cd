//! The environment variables of the Go CCM, with their quirks: a boolean that is set but empty is
//! wrong, a text that is empty is not set.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudkeel_api::{Documented, EnvKey, EnvReader, KeyDoc, Problems, Secret};

use super::Config;
use super::both::{self, ROBOT_PASSWORD, ROBOT_USER, TOKEN};
use super::values::CacheMode;

const DISABLE_ATTACHED_CHECK: EnvKey<bool> = EnvKey::new(
    "HCLOUD_NETWORK_DISABLE_ATTACHED_CHECK",
    "Whether this machine need not be in the private network.",
)
.with_default("false");
const ROUTES_ENABLED: EnvKey<bool> = EnvKey::new(
    "HCLOUD_NETWORK_ROUTES_ENABLED",
    "Whether routes are made in the private network. Looked at only with HCLOUD_NETWORK.",
)
.with_default("true");
const CACHE_MODE: EnvKey<CacheMode> = EnvKey::new(
    "HCLOUD_SERVER_CACHE_MODE",
    "Checked, but without effect: one sweep serves everything.",
);
const CACHE_MAX_AGE: EnvKey<Duration> = EnvKey::new(
    "HCLOUD_SERVER_CACHE_MAX_AGE",
    "Checked, but without effect: one sweep serves everything.",
)
.empty_is_unset();
const METRICS_ENABLED: EnvKey<bool> = EnvKey::new(
    "HCLOUD_METRICS_ENABLED",
    "Whether metrics of API calls are served in plain HTTP, besides those on the secure port.",
)
.with_default("true");
const METRICS_ADDRESS: EnvKey<String> = EnvKey::new(
    "HCLOUD_METRICS_ADDRESS",
    "Where metrics of API calls are served.",
)
.empty_is_unset()
.with_default(":8233");

/// Every variable, for the reference page.
pub(super) fn docs() -> Vec<KeyDoc> {
    let only_here: [&dyn Documented; 6] = [
        &DISABLE_ATTACHED_CHECK,
        &ROUTES_ENABLED,
        &CACHE_MODE,
        &CACHE_MAX_AGE,
        &METRICS_ENABLED,
        &METRICS_ADDRESS,
    ];
    let only_here = only_here.iter().map(|key| key.doc());
    let in_both = both::ALL.iter().map(|setting| setting.env());
    in_both.chain(only_here).collect()
}

/// Reads them all, and tells everything that is wrong.
pub(super) fn read(variables: &BTreeMap<String, String>) -> Result<Config, Problems> {
    let mut reader = EnvReader::new(variables);
    let mut config = both::read(&mut reader);
    config.token = both::Form::get(&mut reader, &TOKEN).unwrap_or_else(|| Secret::new(""));
    // A wrong value is only told where it would count.
    config.routes = config.network.is_some() && flag(&mut reader, &ROUTES_ENABLED);
    config.attached_check = !flag(&mut reader, &DISABLE_ATTACHED_CHECK);
    reader.get(&CACHE_MODE);
    reader.get(&CACHE_MAX_AGE);
    let address = reader.get(&METRICS_ADDRESS);
    let serves_metrics = flag(&mut reader, &METRICS_ENABLED);
    config.metrics_address = address.filter(|_| serves_metrics);
    let login = (
        both::Form::get(&mut reader, &ROBOT_USER),
        both::Form::get(&mut reader, &ROBOT_PASSWORD),
    );
    config.check(login, &mut reader);
    reader.into_problems().into_result()?;
    Ok(config)
}

fn flag(reader: &mut EnvReader<'_>, key: &EnvKey<bool>) -> bool {
    reader.get(key).unwrap_or_default()
}
