//! Command-line flags that a provider declares.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use super::{Documented, KeyDoc, KeyPlace, KeyValue, Problem};

/// The flags given on the command line, by name without dashes; a repeated flag has several texts.
pub type FlagValues = BTreeMap<String, Vec<String>>;

/// A flag of a provider. The manager puts it on its own command line.
#[derive(Debug)]
pub struct FlagKey<T> {
    name: &'static str,
    help: &'static str,
    default: Option<&'static str>,
    value: PhantomData<fn() -> T>,
}

impl<T: KeyValue> FlagKey<T> {
    /// A flag without a default. The name has no dashes in front.
    pub const fn new(name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            help,
            default: None,
            value: PhantomData,
        }
    }

    /// What holds if the flag is not given.
    #[must_use]
    pub const fn with_default(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    /// The name without dashes.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The value given last, else the default, else `None`.
    pub fn get(&self, flags: &FlagValues) -> Result<Option<T>, Problem> {
        let given = flags.get(self.name).and_then(|texts| texts.last());
        let Some(text) = given.map(String::as_str).or(self.default) else {
            return Ok(None);
        };
        self.read(text).map(Some)
    }

    /// Every value given, in their order.
    pub fn all(&self, flags: &FlagValues) -> Result<Vec<T>, Problem> {
        let texts = flags.get(self.name).map(Vec::as_slice).unwrap_or_default();
        texts.iter().map(|text| self.read(text)).collect()
    }

    fn read(&self, text: &str) -> Result<T, Problem> {
        T::parse(text)
            .map_err(|expected| Problem::unexpected(format!("--{}", self.name), text, expected))
    }
}

impl<T: KeyValue> Documented for FlagKey<T> {
    fn doc(&self) -> KeyDoc {
        KeyDoc {
            place: KeyPlace::Flag,
            name: self.name,
            value_type: T::TYPE,
            default: self.default,
            required: false,
            secret: T::SECRET,
            help: self.help,
        }
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
