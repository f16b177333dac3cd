//! Provider IDs of AWS: `aws:///<zone>/<instance>`, of Fargate `aws:///<zone>/fargate-<address>`.

use std::fmt;
use std::str::FromStr;

use cloudkeel_api::ProviderId;
use cloudkeel_toolkit::IdError;

/// The scheme of provider IDs, and the provider's name.
pub const SCHEME: &str = "aws";

/// What the name of a Fargate Node begins with.
pub(crate) const FARGATE: &str = "fargate-";

/// A machine at AWS, without its zone: IDs are unique in a region.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AwsId {
    /// An EC2 instance, such as `i-0123456789abcdef0`.
    Instance(String),
    /// A Fargate Node, by the address or the DNS name of its network interface.
    Fargate(String),
}

impl AwsId {
    /// Reads a Node's provider ID, in any form that was ever written.
    pub fn read(id: &ProviderId) -> Result<Self, IdError> {
        id.as_str().parse()
    }

    /// The ID of an EC2 instance.
    pub(crate) fn read_instance(id: &ProviderId) -> Option<String> {
        match Self::read(id) {
            Ok(Self::Instance(id)) => Some(id),
            Ok(Self::Fargate(_)) | Err(_) => None,
        }
    }

    /// The text for a Node in a zone.
    pub fn provider_id(&self, zone: &str) -> ProviderId {
        ProviderId::new(SCHEME, &format!("/{zone}/{self}"))
    }

    /// The private address of a Fargate Node, also if it is part of a DNS name such as `ip-10-0-0-7.ec2.internal`.
    pub(crate) fn fargate_address(name: &str) -> String {
        let host = name.split('.').next().unwrap_or(name);
        match host.strip_prefix("ip-") {
            Some(digits) => digits.replace('-', "."),
            None => name.to_owned(),
        }
    }
}

impl fmt::Display for AwsId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instance(id) => f.write_str(id),
            Self::Fargate(name) => write!(f, "{FARGATE}{name}"),
        }
    }
}

impl FromStr for AwsId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let path = match text.split_once("://") {
            Some((SCHEME, path)) => path,
            Some(_) => {
                return Err(IdError::Foreign(format!(
                    "{text:?} does not begin with `aws://`"
                )));
            }
            None => text,
        };
        let last = path.rsplit('/').next().unwrap_or_default();
        if let Some(name) = last.strip_prefix(FARGATE).filter(|name| !name.is_empty()) {
            return Ok(Self::Fargate(name.to_owned()));
        }
        if last.len() > 2 && last.starts_with("i-") {
            return Ok(Self::Instance(last.to_owned()));
        }
        let expected = "expected `aws:///<zone>/i-…` or `aws:///<zone>/fargate-…`";
        let message = format!("{text:?}: {expected}");
        // A bare text of another shape is no ID of this cloud at all.
        if text.contains("://") {
            return Err(IdError::Malformed(message));
        }
        Err(IdError::Foreign(message))
    }
}

#[cfg(test)]
mod tests;
