//! Provider IDs of DigitalOcean: `digitalocean://<droplet>`.

use cloudkeel_api::ProviderId;
use cloudkeel_toolkit::IdError;

/// The scheme, and the provider's name.
pub const SCHEME: &str = "digitalocean";

/// The number of the droplet that a provider ID names. Only its one spelling was ever written.
pub fn droplet_id(id: &ProviderId) -> Result<u64, IdError> {
    if id.scheme() != Some(SCHEME) {
        let message = format!("{:?} does not begin with `{SCHEME}://`", id.as_str());
        return Err(IdError::Foreign(message));
    }
    let digits = id.rest();
    let is_one = |number: &u64| *number > 0 && number.to_string() == digits;
    digits.parse().ok().filter(is_one).ok_or_else(|| {
        let message = format!(
            "{:?}: expected `{SCHEME}://` and the number of a droplet",
            id.as_str()
        );
        IdError::Malformed(message)
    })
}

/// The provider ID of a droplet.
pub fn provider_id(droplet: u64) -> ProviderId {
    ProviderId::new(SCHEME, &droplet.to_string())
}
