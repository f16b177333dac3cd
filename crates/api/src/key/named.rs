//! What every kind of key has: a name, a type, a default, and a sentence about itself.

use std::marker::PhantomData;

use super::{KeyDoc, KeyPlace, KeyValue, Problem};

/// The part that annotations, configuration keys, variables and flags share.
#[derive(Debug)]
pub(super) struct Named<T> {
    pub(super) name: &'static str,
    pub(super) default: Option<&'static str>,
    help: &'static str,
    value: PhantomData<fn() -> T>,
}

impl<T: KeyValue> Named<T> {
    pub(super) const fn new(name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            default: None,
            help,
            value: PhantomData,
        }
    }

    pub(super) const fn with_default(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    /// The given text, else the default, as a value. An invalid value is a problem, never the default; it is
    /// reported under the name `shown`, and a secret is not printed.
    pub(super) fn read(&self, given: Option<&str>, shown: &str) -> Result<Option<T>, Problem> {
        let Some(text) = given.or(self.default) else {
            return Ok(None);
        };
        T::parse(text).map(Some).map_err(|expected| {
            if T::SECRET {
                Problem::unexpected_secret(shown, expected)
            } else {
                Problem::unexpected(shown, text, expected)
            }
        })
    }

    pub(super) const fn doc(&self, place: KeyPlace, required: bool) -> KeyDoc {
        KeyDoc {
            place,
            name: self.name,
            value_type: T::TYPE,
            choices: T::CHOICES,
            range: None,
            default: self.default,
            required,
            secret: T::SECRET,
            help: self.help,
        }
    }
}
