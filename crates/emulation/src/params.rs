//! Parameters of a query or of a form.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What a query keeps as it is.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// The decoded parameters of a query or a form, in order. A name may occur more than once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Params(Vec<(String, String)>);

/// A parameter with a value that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamError {
    /// Its name.
    pub param: String,
    /// What is wrong with the value.
    pub message: String,
}

impl ParamError {
    /// An error about the parameter of this name.
    pub fn new(param: &str, message: impl Into<String>) -> Self {
        Self {
            param: param.to_owned(),
            message: message.into(),
        }
    }
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.param, self.message)
    }
}

impl Params {
    /// Reads `a=1&b=x%20y`. A plus is a space.
    pub fn parse(text: &str) -> Self {
        let decode = |part: &str| {
            let spaced = part.replace('+', " ");
            percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
        };
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        Self(
            pairs
                .map(|(name, value)| (decode(name), decode(value)))
                .collect(),
        )
    }

    /// The last value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).last()
    }

    /// Every value of a parameter.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.iter()
            .filter(move |(key, _)| *key == name)
            .map(|(_, value)| value)
    }

    /// The values of `name.1`, `name.2` and so on, which is how command-style APIs write a list.
    pub fn numbered(&self, name: &str) -> Vec<&str> {
        let mut found: Vec<(u64, &str)> = self
            .iter()
            .filter_map(|(key, value)| {
                let number = key.strip_prefix(name)?.strip_prefix('.')?;
                Some((number.parse().ok()?, value))
            })
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, value)| value).collect()
    }

    /// A whole number; `None` if the parameter is not there.
    pub fn number(&self, name: &str) -> Result<Option<u64>, ParamError> {
        let parse = |value: &str| {
            let parsed = value.parse();
            parsed.map_err(|_| ParamError::new(name, format!("{value:?}: expected a number")))
        };
        self.get(name).map(parse).transpose()
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The same with one value for this parameter in place of those that it has.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.0.retain(|(key, _)| key != name);
        self.0.push((name.to_owned(), value.to_string()));
        self
    }

    /// These, and then the others.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }
}

/// As a query writes them.
impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, value)) in self.iter().enumerate() {
            let encode = |part| utf8_percent_encode(part, ESCAPED);
            let separator = if at == 0 { "" } else { "&" };
            write!(f, "{separator}{}={}", encode(name), encode(value))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_repeated_and_numbered() {
        let params = Params::parse("a=1&a=x%20y+z&Id.2=b&Id.10=c&Id.1=a&flag&Idle.1=no");
        assert_eq!(params.all("a").collect::<Vec<_>>(), ["1", "x y z"]);
        assert_eq!(params.get("a"), Some("x y z"));
        assert_eq!(params.numbered("Id"), ["a", "b", "c"]);
        assert_eq!(params.get("flag"), Some(""));
        assert_eq!(params.number("missing"), Ok(None));
        let error = params.number("flag").unwrap_err();
        assert_eq!(error.to_string(), "flag: \"\": expected a number");
    }

    #[test]
    fn what_is_written_reads_the_same() {
        let params = Params::parse("page=2&label=x%2Fy%3Dz").with("page", 3);
        assert_eq!(params.to_string(), "label=x%2Fy%3Dz&page=3");
        assert_eq!(Params::parse(&params.to_string()), params);
    }
}
