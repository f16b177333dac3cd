//! Provider IDs of DigitalOcean: `digitalocean://<droplet>`.

use cloudkeel_api::ProviderId;
use cloudkeel_toolkit::IdError;

/// The scheme, and the provider's name.
pub const SCHEME: &str = "digitalocean";

/// The number of the droplet that a provider ID names. Only its one spelling was ever written.
pub fn droplet_id(id: &ProviderId) -> Result<u64, IdError> {
    IdError::number(id, SCHEME, "a droplet")
}

/// The provider ID of a droplet.
pub fn provider_id(droplet: u64) -> ProviderId {
    ProviderId::new(SCHEME, &droplet.to_string())
}
