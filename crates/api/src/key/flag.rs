//! Command-line flags that a provider declares.

use std::collections::BTreeMap;

use super::named::Named;
use super::{Documented, KeyDoc, KeyPlace, KeyValue, Problem};

/// The flags given on the command line, by name without dashes; a repeated flag has several values.
pub type FlagValues = BTreeMap<String, Vec<String>>;

/// A flag of a provider. The manager puts it on its own command line.
#[derive(Debug)]
pub struct FlagKey<T>(Named<T>);

impl<T: KeyValue> FlagKey<T> {
    /// A flag without a default. The name has no dashes in front.
    pub const fn new(name: &'static str, help: &'static str) -> Self {
        Self(Named::new(name, help))
    }

    /// The value if the flag is not given.
    #[must_use]
    pub const fn with_default(self, default: &'static str) -> Self {
        Self(self.0.with_default(default))
    }

    /// The name without dashes.
    pub const fn name(&self) -> &'static str {
        self.0.name
    }

    /// The value given last, else the default, else `None`.
    pub fn get(&self, flags: &FlagValues) -> Result<Option<T>, Problem> {
        let given = flags.get(self.name()).and_then(|texts| texts.last());
        self.0.read(given.map(String::as_str), &self.with_dashes())
    }

    /// Every value given, in their order.
    pub fn all(&self, flags: &FlagValues) -> Result<Vec<T>, Problem> {
        let texts = flags.get(self.name()).map(Vec::as_slice);
        let read = |text: &String| self.0.read(Some(text), &self.with_dashes());
        texts
            .unwrap_or_default()
            .iter()
            .filter_map(|text| read(text).transpose())
            .collect()
    }

    fn with_dashes(&self) -> String {
        format!("--{}", self.name())
    }
}

impl<T: KeyValue> Documented for FlagKey<T> {
    fn doc(&self) -> KeyDoc {
        self.0.doc(KeyPlace::Flag, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT: FlagKey<String> = FlagKey::new("user-agent", "Put in front.");
    const WORKERS: FlagKey<u16> = FlagKey::new("workers", "How many.").with_default("1");

    #[test]
    fn repeated_flags_keep_their_order_and_the_last_one_wins() {
        let flags = FlagValues::from([
            (
                "user-agent".to_owned(),
                vec!["a".to_owned(), "b".to_owned()],
            ),
            ("workers".to_owned(), vec!["2".to_owned(), "3".to_owned()]),
        ]);
        assert_eq!(AGENT.all(&flags).unwrap(), ["a", "b"]);
        assert_eq!(WORKERS.get(&flags), Ok(Some(3)));
        assert_eq!(WORKERS.get(&FlagValues::new()), Ok(Some(1)));
        assert_eq!(AGENT.get(&FlagValues::new()), Ok(None));
    }

    #[test]
    fn a_wrong_value_is_named_with_its_flag() {
        let flags = FlagValues::from([("workers".to_owned(), vec!["many".to_owned()])]);
        let problem = WORKERS.get(&flags).unwrap_err().to_string();
        assert_eq!(
            problem,
            "--workers: \"many\": expected a whole number from 0 to 65535"
        );
    }
}
