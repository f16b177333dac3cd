//! The calls of a cloud, in one table.

use std::fmt::{Debug, Display};

use http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// One kind of call. The enum of a cloud's calls is written by [`operations!`](crate::operations).
pub trait ApiOperation:
    Copy + Ord + Debug + Display + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// All of them.
    const ALL: &'static [Self];

    /// Its place, below the address of the cloud.
    fn path(self) -> &'static str;

    /// Its HTTP method.
    fn method(self) -> Method;

    /// Whether it could change anything.
    fn is_mutating(self) -> bool {
        self.method() != Method::GET
    }
}

/// Writes the enum of a cloud's calls and what goes with each, so that a call is stated once. In words
/// a call is its name in kebab case; a read with `List` in its name answers with a list.
///
/// ```
/// cloudkeel_emulation::operations! {
///     /// One kind of call.
///     pub enum Operation {
///         /// All disks.
///         ListDisks = GET "/disks",
///         /// Makes a disk.
///         CreateDisk = POST "/disks",
///     }
/// }
///
/// assert_eq!(Operation::CreateDisk.to_string(), "POST /disks");
/// assert!(Operation::CreateDisk.is_mutating());
/// assert!(Operation::ListDisks.is_list());
/// ```
///
/// The crate that uses it needs `http` and `serde`.
#[macro_export]
macro_rules! operations {
    (
        $(#[$outer:meta])*
        $vis:vis enum $Operation:ident {
            $($(#[doc = $what:literal])+ $name:ident = $method:ident $path:literal,)+
        }
    ) => {
        $(#[$outer])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ::serde::Serialize,
            ::serde::Deserialize,
        )]
        #[serde(rename_all = "kebab-case")]
        $vis enum $Operation {
            $($(#[doc = $what])+ $name,)+
        }

        impl $Operation {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Its place, below the address of the cloud.
            pub const fn path(self) -> &'static str {
                match self { $(Self::$name => $path,)+ }
            }

            /// Its HTTP method.
            pub const fn method(self) -> ::http::Method {
                match self { $(Self::$name => ::http::Method::$method,)+ }
            }

            /// Whether it could change anything.
            pub fn is_mutating(self) -> bool {
                $crate::ApiOperation::is_mutating(self)
            }

            /// Whether it answers with a list.
            pub fn is_list(self) -> bool {
                let name = match self { $(Self::$name => stringify!($name),)+ };
                !self.is_mutating() && name.contains("List")
            }
        }

        impl $crate::ApiOperation for $Operation {
            const ALL: &'static [Self] = Self::ALL;

            fn path(self) -> &'static str {
                self.path()
            }

            fn method(self) -> ::http::Method {
                self.method()
            }
        }

        impl ::std::fmt::Display for $Operation {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                write!(f, "{} {}", self.method(), self.path())
            }
        }
    };
}
