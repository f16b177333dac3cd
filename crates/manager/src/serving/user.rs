//! The user that sent a request.

use std::collections::BTreeMap;

/// The name of unauthenticated users.
pub(super) const ANONYMOUS: &str = "system:anonymous";
/// The group of unauthenticated users.
pub(super) const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group of authenticated users.
pub(super) const AUTHENTICATED: &str = "system:authenticated";
/// The group that is allowed everything.
pub(super) const MASTERS: &str = "system:masters";

/// A user, as Kubernetes knows them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct User {
    /// Name.
    pub name: String,
    /// Unique ID, or empty.
    pub uid: String,
    /// Groups, in the order they were given.
    pub groups: Vec<String>,
    /// Extra fields.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// An unauthenticated user.
    pub(super) fn anonymous() -> Self {
        Self {
            name: ANONYMOUS.to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            ..Self::default()
        }
    }

    /// Whether the user is unauthenticated.
    pub(super) fn is_anonymous(&self) -> bool {
        self.name == ANONYMOUS || self.is_in(UNAUTHENTICATED)
    }

    /// Whether this user belongs to a group.
    pub(super) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|known| known == group)
    }

    /// Adds the group of authenticated users, unless the user is anonymous.
    pub(super) fn authenticated(mut self) -> Self {
        if !self.is_anonymous() && !self.is_in(AUTHENTICATED) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }

    /// Approximate memory use.
    pub(super) fn size(&self) -> usize {
        let of_all = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
        let extra: usize = self
            .extra
            .iter()
            .map(|(key, values)| key.len() + of_all(values))
            .sum();
        self.name.len() + self.uid.len() + of_all(&self.groups) + extra
    }
}
