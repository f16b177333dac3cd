//! Provider IDs of vSphere: `vsphere://<BIOS UUID of the virtual machine>`.

use std::cmp::Ordering;
use std::fmt;

use cloudkeel_api::ProviderId;
use cloudkeel_toolkit::IdError;
use uuid::Uuid;

/// The scheme, and the provider's name.
pub const SCHEME: &str = "vsphere";

/// The BIOS UUID of a virtual machine. It is printed as it was read, but compared without regard to byte order:
/// guests see its first three groups reversed, so Nodes have either form.
#[derive(Debug, Clone, Copy)]
pub struct VmUuid(Uuid);

impl VmUuid {
    /// Reads a Node's provider ID. As in the Go CCM, the prefix may be missing and letters may be upper case.
    pub fn read(id: &ProviderId) -> Result<Self, IdError> {
        let text = id.as_str();
        match (id.scheme(), Self::parse(id.rest())) {
            (Some(SCHEME) | None, Some(uuid)) => Ok(uuid),
            (Some(SCHEME), None) => Err(IdError::Malformed(format!(
                "{text:?}: expected `vsphere://` and a UUID such as `422e4956-ad22-1139-6d72-59cc8f26bc90`"
            ))),
            _ => Err(IdError::Foreign(format!(
                "{text:?} does not begin with `vsphere://`"
            ))),
        }
    }

    /// Reads a UUID with its dashes.
    pub fn parse(text: &str) -> Option<Self> {
        let is_hyphenated = text.len() == 36;
        let uuid = Uuid::try_parse(text).ok().filter(|_| is_hyphenated);
        uuid.map(Self)
    }

    /// The same with the bytes of its first three groups reversed.
    #[must_use]
    pub const fn swapped(self) -> Self {
        Self(Uuid::from_bytes(self.0.to_bytes_le()))
    }

    /// The text for a Node.
    pub fn provider_id(self) -> ProviderId {
        ProviderId::new(SCHEME, &self.to_string())
    }

    fn in_one_order(self) -> Uuid {
        self.0.min(self.swapped().0)
    }
}

impl PartialEq for VmUuid {
    fn eq(&self, other: &Self) -> bool {
        self.in_one_order() == other.in_one_order()
    }
}

impl Eq for VmUuid {}

impl PartialOrd for VmUuid {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for VmUuid {
    fn cmp(&self, other: &Self) -> Ordering {
        self.in_one_order().cmp(&other.in_one_order())
    }
}

impl fmt::Display for VmUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

#[cfg(test)]
mod tests;
