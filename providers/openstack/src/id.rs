//! Provider IDs of OpenStack: `openstack:///<server>`, or with a region before the server.

use cloudkeel_api::ProviderId;
use cloudkeel_toolkit::IdError;

/// The scheme of servers, and the provider's name.
pub const SCHEME: &str = "openstack";

/// The servers of one region: how their IDs are read and written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ServerIds {
    /// The region that is configured.
    pub(crate) region: Option<String>,
    /// Whether IDs are written with it.
    pub(crate) is_regional: bool,
}

impl ServerIds {
    /// The UUID of a server, from any form that was ever written.
    pub(crate) fn read(&self, id: &ProviderId) -> Result<String, IdError> {
        let text = id.as_str();
        // Old Nodes have a path alone.
        let rest = match text.split_once("://") {
            Some((SCHEME, rest)) => rest,
            Some(_) => {
                return Err(IdError::Foreign(format!(
                    "{text:?} does not begin with `{SCHEME}://`"
                )));
            }
            None if text.starts_with('/') => text,
            None => return Err(IdError::Foreign(format!("{text:?} has no scheme"))),
        };
        let wrong = || {
            let message = format!(
                "{text:?}: expected `{SCHEME}:///<server>` or `{SCHEME}://<region>/<server>`"
            );
            IdError::Malformed(message)
        };
        let (region, server) = rest.split_once('/').ok_or_else(wrong)?;
        if server.is_empty() || server.contains('/') {
            return Err(wrong());
        }
        let ours = self.region.as_deref().unwrap_or_default();
        if !region.is_empty() && region != ours {
            let message =
                format!("{text:?} is in region {region:?}, and this provider is in {ours:?}");
            return Err(IdError::OtherAccount(message));
        }
        Ok(server.to_owned())
    }

    /// The text for a Node.
    pub(crate) fn write(&self, server: &str) -> ProviderId {
        let region = self.region.as_deref().filter(|_| self.is_regional);
        ProviderId::new(SCHEME, &format!("{}/{server}", region.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_in_every_form_and_written_in_one() {
        let ids = |is_regional| ServerIds {
            region: Some("RegionOne".to_owned()),
            is_regional,
        };
        let foreign = Err("foreign");
        for (text, expected) in [
            ("openstack:///u-1", Ok("u-1")),
            ("openstack://RegionOne/u-1", Ok("u-1")),
            ("/u-1", Ok("u-1")),
            ("openstack://RegionTwo/u-1", Err("other")),
            ("openstack:///", Err("malformed")),
            ("openstack://u-1", Err("malformed")),
            ("openstack:///a/b", Err("malformed")),
            ("u-1", foreign),
            ("hcloud://1", foreign),
        ] {
            let read = ids(false).read(&text.parse().unwrap());
            let read = read
                .as_ref()
                .map(String::as_str)
                .map_err(|error| match error {
                    IdError::Foreign(_) => "foreign",
                    IdError::Malformed(_) => "malformed",
                    IdError::OtherAccount(_) => "other",
                });
            assert_eq!(read, expected, "{text}");
        }
        assert_eq!(ids(false).write("u-1").as_str(), "openstack:///u-1");
        assert_eq!(ids(true).write("u-1").as_str(), "openstack://RegionOne/u-1");
    }
}
