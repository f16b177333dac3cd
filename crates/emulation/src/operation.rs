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

    /// Its path, below the address of the cloud.
    fn path(self) -> &'static str;

    /// Its HTTP method.
    fn method(self) -> Method;

    /// Where one path serves many calls: the parameter that tells them apart, and its value.
    fn command(self) -> Option<(&'static str, &'static str)>;

    /// Whether it could change anything.
    fn is_mutating(self) -> bool;

    /// Whether it answers with a list.
    fn is_list(self) -> bool;
}

/// Whether a call of this name only reads, as far as a name can say.
pub fn reads_by_name(name: &str) -> bool {
    const READS: [&str; 4] = ["Describe", "Get", "List", "Query"];
    let name = name.get(..1).map_or_else(String::new, |first| {
        first.to_uppercase() + name.get(1..).unwrap_or_default()
    });
    READS.iter().any(|read| name.starts_with(read))
}

/// Writes the enum of a cloud's calls and what goes with each, so that a call is stated once. In words a call is
/// its name in kebab case.
///
/// * `Name = METHOD "/path/{id}"`; the last `{…}` of a nested path is the resource.
/// * `? param = "value"` behind it: one path serves many calls, which a parameter of the query or of the form
///   tells apart. It is then served for every method.
/// * `as read` behind it: it changes nothing, whatever its method is.
///
/// `GET` changes nothing, nor does a command whose value begins with `Describe`, `Get`, `List` or `Query`. A read with
/// `List` or `Describe` in its name answers with a list.
///
/// ```
/// cloudkeel_emulation::operations! {
///     /// One kind of call.
///     pub enum Operation {
///         /// All disks.
///         ListDisks = GET "/disks",
///         /// Makes a snapshot of a disk.
///         CreateSnapshot = POST "/disks/{disk}/snapshots",
///         /// All zones.
///         DescribeZones = POST "/" ? Action = "DescribeZones",
///         /// A token.
///         Login = POST "/login" as read,
///     }
/// }
///
/// assert_eq!(Operation::CreateSnapshot.to_string(), "POST /disks/{disk}/snapshots");
/// assert_eq!(Operation::DescribeZones.to_string(), "POST /?Action=DescribeZones");
/// assert!(Operation::CreateSnapshot.is_mutating() && !Operation::Login.is_mutating());
/// assert!(Operation::DescribeZones.is_list() && !Operation::DescribeZones.is_mutating());
/// ```
///
/// The crate that uses it needs `http` and `serde`.
#[macro_export]
macro_rules! operations {
    (
        $(#[$outer:meta])*
        $vis:vis enum $Operation:ident {
            $(
                $(#[doc = $what:literal])+
                $name:ident = $method:ident $path:literal $(? $param:ident = $command:literal)? $(as $read:ident)?,
            )+
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

            /// Its path, below the address of the cloud.
            pub const fn path(self) -> &'static str {
                match self { $(Self::$name => $path,)+ }
            }

            /// Its HTTP method.
            pub const fn method(self) -> ::http::Method {
                match self { $(Self::$name => ::http::Method::$method,)+ }
            }

            /// Whether it could change anything.
            pub fn is_mutating(self) -> bool {
                match self {
                    $(Self::$name => {
                        let facts: &[&str] = &[$($command, "command",)? $(stringify!($read))?];
                        match facts {
                            [.., "read"] => false,
                            [command, "command"] => !$crate::reads_by_name(command),
                            _ => self.method() != ::http::Method::GET,
                        }
                    })+
                }
            }

            /// Whether it answers with a list.
            pub fn is_list(self) -> bool {
                let name = match self { $(Self::$name => stringify!($name),)+ };
                !self.is_mutating() && (name.contains("List") || name.contains("Describe"))
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

            fn command(self) -> Option<(&'static str, &'static str)> {
                let pairs: &[(&str, &str)] = match self {
                    $(Self::$name => &[$((stringify!($param), $command))?],)+
                };
                pairs.first().copied()
            }

            fn is_mutating(self) -> bool {
                self.is_mutating()
            }

            fn is_list(self) -> bool {
                self.is_list()
            }
        }

        impl ::std::fmt::Display for $Operation {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                write!(f, "{} {}", self.method(), self.path())?;
                match $crate::ApiOperation::command(*self) {
                    Some((param, value)) => write!(f, "?{param}={value}"),
                    None => Ok(()),
                }
            }
        }
    };
}
