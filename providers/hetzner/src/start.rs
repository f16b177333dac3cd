//! What is found out before anything else: the network, and whether this machine is in it.

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{CloudError, ErrorKind, ScopeFingerprint};
use cloudkeel_http::{Client, Request, RetryPolicy};
use ring::digest::{SHA256, digest};

use crate::client::{Api, Wiring};
use crate::config::{Config, wrong};
use crate::wire::Network;

/// How long a machine may take to tell about itself.
const METADATA_TIMEOUT: Duration = Duration::from_secs(5);

/// The configured network: by ID if it is a number, else by name.
pub(crate) async fn find_network(
    config: &Config,
    api: &Api,
) -> Result<Option<Network>, CloudError> {
    let Some(wanted) = &config.network else {
        return Ok(None);
    };
    if let Ok(id) = wanted.parse() {
        match api.network(id).await {
            Ok(network) => return Ok(Some(network)),
            // A network may be called by a number.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    let named = api.networks_named(wanted).await?;
    match named.into_iter().find(|network| network.name == *wanted) {
        Some(network) => Ok(Some(network)),
        None => Err(wrong(format!(
            "the project has no network with the name or ID {wanted:?}"
        ))),
    }
}

/// Proves that this machine is in the network, as the addresses of its balancers and routes are of no
/// use otherwise.
pub(crate) async fn check_attached(
    config: &Config,
    network: &Network,
    wiring: &Wiring,
) -> Result<(), CloudError> {
    if !config.attached_check {
        return Ok(());
    }
    let retry = RetryPolicy {
        attempt: METADATA_TIMEOUT,
        total: METADATA_TIMEOUT,
        ..RetryPolicy::never()
    };
    let mut builder = Client::builder(&config.metadata_endpoint).retry(retry);
    if let Some(transport) = &wiring.metadata {
        builder = builder.transport(Arc::clone(transport));
    }
    let hint =
        "set HCLOUD_NETWORK_DISABLE_ATTACHED_CHECK (or `attachedCheck: false`) if that is right";
    let answer = builder
        .build()?
        .send(Request::get("/private-networks"))
        .await;
    let answer = answer.map_err(|error| {
        let message = format!("cannot tell whether this machine is in a network: {error}; {hint}");
        CloudError::new("check network", error.kind(), message).with_source(error)
    })?;
    let text = String::from_utf8_lossy(answer.body());
    if says_attached(&text, network.id) {
        return Ok(());
    }
    let message = format!(
        "this machine is not in network {} ({}); {hint}",
        network.name, network.id
    );
    Err(CloudError::new(
        "check network",
        ErrorKind::Invalid,
        message,
    ))
}

fn says_attached(metadata: &str, network: u64) -> bool {
    metadata.contains(&format!("network_id: {network}\n"))
}

/// What tells this scope from another. Hetzner names no project, so the network stands for it where
/// there is one, and a digest of the token where there is none: with a new token nothing is deleted
/// before a known machine has been seen.
pub(crate) fn fingerprint(
    config: &Config,
    endpoint: &str,
    network: Option<&Network>,
) -> ScopeFingerprint {
    let project = match network {
        Some(network) => format!("network {}", network.id),
        None => format!("token {}", short_digest(config.token.expose())),
    };
    let robot = config.robot.login.as_ref();
    let robot = robot.map_or_else(String::new, |(user, _)| {
        format!(", Robot account {}", short_digest(user))
    });
    ScopeFingerprint::new(format!("{project} at {endpoint}{robot}"))
}

/// Enough to tell two apart, and nothing to guess from.
fn short_digest(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    let start = digest.as_ref().first_chunk().copied().unwrap_or_default();
    format!("{:08x}", u32::from_be_bytes(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_the_network_must_be_the_whole_number() {
        let metadata = "- ip: 10.0.0.2\n  alias_ips: []\n  network_id: 422\n  network_name: kube\n";
        assert!(says_attached(metadata, 422));
        assert!(!says_attached(metadata, 42));
        assert!(!says_attached("[]\n", 422));
        assert!(!says_attached("network_id: 422", 422));
    }

    #[test]
    fn two_tokens_have_two_fingerprints_that_do_not_show_them() {
        let of = |token: &str| fingerprint(&Config::new(token), "https://x/v1", None);
        assert_ne!(of("hunter2"), of("hunter3"));
        assert!(!of("hunter2").as_str().contains("hunter"));
    }
}
