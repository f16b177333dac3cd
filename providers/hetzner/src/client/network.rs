//! The private network, and whether this machine is in it.

use cloudkeel_api::{CloudError, ErrorKind, Priority, ScopeFingerprint};
use cloudkeel_toolkit::{Wiring, short_digest};

use super::Api;
use crate::config::Config;
use crate::wire::Network;

/// The configured network: by ID if it is a number, else by name.
pub(crate) async fn find(config: &Config, api: &Api) -> Result<Option<Network>, CloudError> {
    let Some(wanted) = &config.network else {
        return Ok(None);
    };
    if let Ok(id) = wanted.parse() {
        match api.get(&id, Priority::Normal).await {
            Ok(network) => return Ok(Some(network)),
            // A network may be called by a number.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    let named: Vec<Network> = api.all(api.named::<Network>(wanted)).await?;
    if let Some(network) = named.into_iter().find(|network| network.name == *wanted) {
        Ok(Some(network))
    } else {
        let message = format!("the project has no network with the name or ID {wanted:?}");
        Err(CloudError::invalid("set up hcloud", message))
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
    let hint =
        "set HCLOUD_NETWORK_DISABLE_ATTACHED_CHECK (or `attachedCheck: false`) if that is right";
    let what = "cannot find out whether this machine is in a network";
    let url = &config.metadata_endpoint;
    let asked = wiring.ask_machine(url, "/private-networks", what, hint);
    let text = asked.await?;
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

#[cfg(test)]
mod tests;
