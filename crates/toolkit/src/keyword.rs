//! Enums whose values are words of an API, a setting or an annotation.

/// Declares enums of words, each once: its variants, how they are spelled, and what is said about a wrong one.
///
/// Words are read without regard to case and surrounding spaces; `exact` takes them only as they are.
///
/// ```
/// cloudkeel_toolkit::keywords! {
///     /// How connections are spread.
///     pub enum Algorithm {
///         /// One after the other.
///         RoundRobin = "round_robin",
///         /// To the one with the fewest.
///         LeastConnections = "least_connections",
///     }
/// }
///
/// # use cloudkeel_api::KeyValue as _;
/// assert_eq!(Algorithm::parse("Round_Robin"), Ok(Algorithm::RoundRobin));
/// assert_eq!(Algorithm::LeastConnections.as_str(), "least_connections");
/// assert_eq!(
///     Algorithm::parse("random").unwrap_err(),
///     "`round_robin` or `least_connections`"
/// );
/// ```
#[macro_export]
macro_rules! keywords {
    ($(
        $(#[$meta:meta])* $vis:vis enum $name:ident $(($exact:ident))? {
            $($(#[$variant_meta:meta])* $variant:ident = $word:literal),+ $(,)?
        }
    )+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name {
            $($(#[$variant_meta])* $variant,)+
        }

        impl $name {
            /// The word itself.
            $vis const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl ::std::convert::AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl $crate::reexport::cloudkeel_api::KeyValue for $name {
            const TYPE: &'static str = $crate::one_of!("", $($word),+);
            const CHOICES: &'static [&'static str] = &[$($word),+];

            fn parse(text: &str) -> ::std::result::Result<Self, ::std::string::String> {
                let text = $crate::folded!(text $(, $exact)?);
                match text.as_str() {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::one_of!("`", $($word),+).to_owned()),
                }
            }
        }

        impl $crate::reexport::serde::Serialize for $name {
            fn serialize<S: $crate::reexport::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::std::result::Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    )+};
}

/// The text as words are compared with it.
#[doc(hidden)]
#[macro_export]
macro_rules! folded {
    ($text:ident) => {
        $text.trim().to_lowercase()
    };
    ($text:ident, exact) => {
        $text.to_owned()
    };
}

/// `a, b or c`, each between quotes.
#[doc(hidden)]
#[macro_export]
macro_rules! one_of {
    ($quote:literal, $one:literal) => {
        concat!($quote, $one, $quote)
    };
    ($quote:literal, $one:literal, $other:literal) => {
        concat!($quote, $one, $quote, " or ", $quote, $other, $quote)
    };
    ($quote:literal, $one:literal, $($more:literal),+) => {
        concat!($quote, $one, $quote, ", ", $crate::one_of!($quote, $($more),+))
    };
}

#[cfg(test)]
mod tests {
    use cloudkeel_api::KeyValue as _;

    crate::keywords! {
        enum Family (exact) {
            V4 = "ipv4",
            V6 = "ipv6",
            Both = "dualstack",
        }
    }

    #[test]
    fn words_are_listed_in_a_sentence() {
        assert_eq!(Family::TYPE, "ipv4, ipv6 or dualstack");
        assert_eq!(
            Family::parse("x").unwrap_err(),
            "`ipv4`, `ipv6` or `dualstack`"
        );
    }

    #[test]
    fn exact_words_are_taken_only_as_they_are() {
        assert_eq!(Family::parse("ipv6"), Ok(Family::V6));
        for text in ["IPv6", " ipv6", ""] {
            assert!(Family::parse(text).is_err(), "{text:?}");
        }
        assert_eq!(
            (Family::V4.as_str(), Family::Both.as_str()),
            ("ipv4", "dualstack")
        );
        assert_eq!(serde_json::to_value(Family::V6).unwrap(), "ipv6");
    }
}
