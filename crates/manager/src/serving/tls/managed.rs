//! Key pairs that the manager makes for other parts of itself.

use jiff::Timestamp;

use super::key_pair::KeyPairPem;
use super::self_signed::SelfSigned;

/// A new self-signed certificate for these names, valid for a year.
pub(crate) fn make_key_pair(names: &[String], now: Timestamp) -> Result<KeyPairPem, String> {
    SelfSigned::new(names, None, "").make(now)
}

/// Whether a certificate has all of these names and does not need to be renewed yet.
pub(crate) fn is_usable(pair: &KeyPairPem, names: &[String], now: Timestamp) -> bool {
    let Ok(parsed) = pair.parse() else {
        return false;
    };
    let info = &parsed.info;
    let is_due = SelfSigned::is_due(info.organization.as_deref(), info.expires, now);
    let has = |name: &String| info.names.contains(&name.to_ascii_lowercase());
    !is_due && now < info.expires && names.iter().all(has)
}
