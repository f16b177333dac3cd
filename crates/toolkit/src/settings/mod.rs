//! Settings: one declaration each for YAML, environment, INI file, secret files, defaults and documentation.
//!
//! ```
//! use cloudkeel_api::Secret;
//! use cloudkeel_toolkit::{Setting, Settings, SettingsReader, settings};
//! use serde_json::json;
//!
//! settings! {
//!     /// The settings of a cloud.
//!     pub struct Config {
//!         /// The credential.
//!         pub token: Secret = Setting::key("token").env("X_TOKEN").file("tokenFile").required(),
//!         /// How often a call is tried.
//!         pub attempts: u32 = Setting::key("attempts").env("X_ATTEMPTS").default("3"),
//!         /// The network, by name.
//!         pub network: Option<String> = Setting::key("network").ini("Global.network-name"),
//!     }
//! }
//!
//! # fn main() {
//! let env = [("X_TOKEN".to_owned(), "t".to_owned())].into();
//! let mut reader = SettingsReader::env(&env);
//! let config = Config::load(&mut reader);
//! let config = reader.finish(config).unwrap();
//! assert_eq!((config.attempts, config.network), (3, None));
//!
//! let yaml = json!({"attempts": "many", "netwrok": "kube"});
//! let mut reader = SettingsReader::yaml(&yaml, &env);
//! let config = Config::load(&mut reader);
//! assert_eq!(
//!     reader.finish(config).unwrap_err().to_string(),
//!     "token: is required, or `tokenFile`\n\
//!      attempts: \"many\": expected a whole number from 0 to 4294967295\n\
//!      netwrok: is not a known key: did you mean `network`?"
//! );
//! # }
//! ```

mod ini;
mod reader;

use cloudkeel_api::{KeyDoc, KeyPlace, KeyValue, Problems, ProviderInput, Secret};

pub use self::ini::{Ini, Section};
pub use self::reader::SettingsReader;

/// The settings of some groups by their names, as the reference page has them.
pub fn by_name(groups: impl IntoIterator<Item = Vec<KeyDoc>>) -> Vec<KeyDoc> {
    let mut docs: Vec<_> = groups.into_iter().flatten().collect();
    docs.sort_by_key(|doc| doc.name);
    docs
}

/// A group of settings that is read as one, declared by [`settings!`](crate::settings!).
pub trait Settings: Sized {
    /// Reads all of them; what is wrong is noted by the reader.
    fn load(reader: &mut SettingsReader<'_>) -> Self;

    /// All of them, for the reference page.
    fn keys() -> Vec<KeyDoc>;

    /// All of them with their defaults, as of a configuration without keys.
    fn defaults() -> Self {
        let (nothing, env) = Default::default();
        Self::load(&mut SettingsReader::yaml(&nothing, &env))
    }

    /// Reads our own form if there is one, else the environment, and reports everything that is wrong.
    fn from_input(input: &ProviderInput) -> Result<Self, Problems> {
        let mut reader = SettingsReader::of(input);
        let settings = Self::load(&mut reader);
        reader.finish(settings)
    }
}

/// Whether a value is valid, and what would be.
type Validation<T> = (fn(&T) -> bool, &'static str);

/// One setting: where it is written, what holds without it, and what it does.
#[derive(Debug)]
pub struct Setting<T> {
    key: Option<&'static str>,
    env: Option<Variable>,
    ini: Option<&'static str>,
    file: Option<&'static str>,
    variable: Option<&'static str>,
    default: Option<&'static str>,
    required: bool,
    is_unset: Option<fn(&T) -> bool>,
    valid: Option<Validation<T>>,
    help: &'static str,
}

const FILE_HELP: &str = "A file that holds the value, in place of the key without `File`.";
const VARIABLE_HELP: &str =
    "An environment variable that holds the value, in place of the key without `Env`.";

/// How a setting is read from the environment.
#[derive(Debug, Clone, Copy)]
struct Variable {
    name: &'static str,
    /// A set but empty variable is read as it is. So are booleans, of which empty is none.
    is_strict: bool,
    /// The variable says the contrary.
    is_inverted: bool,
    /// It is only looked at if this one is set.
    only_with: Option<&'static str>,
    /// What cannot be read is the default.
    is_lenient: bool,
    default: Option<&'static str>,
    help: Option<&'static str>,
}

impl<T: KeyValue> Setting<T> {
    const fn new() -> Self {
        Self {
            key: None,
            env: None,
            ini: None,
            file: None,
            variable: None,
            default: None,
            required: false,
            is_unset: None,
            valid: None,
            help: "",
        }
    }

    /// Written in the `config` of a cloud under this path, such as `loadBalancers.type`.
    pub const fn key(path: &'static str) -> Self {
        Self {
            key: Some(path),
            ..Self::new()
        }
    }

    /// Written only in the environment.
    pub const fn only_env(name: &'static str) -> Self {
        Self::new().env(name)
    }

    /// Written only in the file of the Go CCM.
    pub const fn only_ini(path: &'static str) -> Self {
        Self::new().ini(path)
    }

    /// Also written in this environment variable. A set but empty one counts as not set, unless it is a
    /// boolean.
    #[must_use]
    pub const fn env(mut self, name: &'static str) -> Self {
        self.env = Some(Variable {
            name,
            is_strict: false,
            is_inverted: false,
            only_with: None,
            is_lenient: false,
            default: None,
            help: None,
        });
        self
    }

    /// A set but empty variable is read as it is.
    #[must_use]
    pub const fn env_strict(mut self) -> Self {
        if let Some(env) = &mut self.env {
            env.is_strict = true;
        }
        self
    }

    /// The variable is only looked at while this other one is set.
    #[must_use]
    pub const fn env_only_with(mut self, other: &'static str) -> Self {
        if let Some(env) = &mut self.env {
            env.only_with = Some(other);
        }
        self
    }

    /// What holds if the variable is not set, in place of the default.
    #[must_use]
    pub const fn env_default(mut self, default: &'static str) -> Self {
        if let Some(env) = &mut self.env {
            env.default = Some(default);
        }
        self
    }

    /// What cannot be read in the variable is the default, where a Go CCM says nothing. It is logged.
    #[must_use]
    pub const fn env_lenient(mut self) -> Self {
        if let Some(env) = &mut self.env {
            env.is_lenient = true;
        }
        self
    }

    /// What the variable does, where the setting's own words do not fit.
    #[must_use]
    pub const fn env_help(mut self, help: &'static str) -> Self {
        if let Some(env) = &mut self.env {
            env.help = Some(help);
        }
        self
    }

    /// Also written in the file of the Go CCM: the section, a dot and the key, such as `Global.auth-url`.
    #[must_use]
    pub const fn ini(mut self, path: &'static str) -> Self {
        self.ini = Some(path);
        self
    }

    /// A file may hold the value: this key names it, or the variable with `_FILE` behind its name.
    #[must_use]
    pub const fn file(mut self, key: &'static str) -> Self {
        self.file = Some(key);
        self
    }

    /// An environment variable may hold the value: this key names it.
    #[must_use]
    pub const fn variable(mut self, key: &'static str) -> Self {
        self.variable = Some(key);
        self
    }

    /// What holds if nothing is written.
    #[must_use]
    pub const fn default(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    /// It must be written.
    #[must_use]
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// What a value must be like, and how that is said: `expected …`.
    #[must_use]
    pub const fn valid(mut self, is_valid: fn(&T) -> bool, expected: &'static str) -> Self {
        self.valid = Some((is_valid, expected));
        self
    }

    /// What it does, from the documentation of its field.
    #[doc(hidden)]
    #[must_use]
    pub const fn help(mut self, help: &'static str) -> Self {
        self.help = help.trim_ascii_start();
        self
    }

    /// Its rows of the reference page.
    pub fn docs(&self) -> Vec<KeyDoc> {
        let row = |place, name, help| KeyDoc {
            place,
            name,
            value_type: T::TYPE,
            choices: T::CHOICES,
            range: None,
            default: self.default,
            required: false,
            secret: T::SECRET,
            help,
        };
        let pointer = |name, help| KeyDoc {
            value_type: String::TYPE,
            choices: &[],
            range: None,
            default: None,
            secret: false,
            ..row(KeyPlace::Config, name, help)
        };
        let key = self.key.map(|key| KeyDoc {
            required: self.required && self.file.is_none() && self.variable.is_none(),
            ..row(KeyPlace::Config, key, self.help)
        });
        let file = self.file.map(|key| pointer(key, FILE_HELP));
        let variable = self.variable.map(|key| pointer(key, VARIABLE_HELP));
        let env = self.env.map(|env| KeyDoc {
            default: self.env_default_of(&env),
            ..row(KeyPlace::Env, env.name, env.help.unwrap_or(self.help))
        });
        let ini = self.ini.map(|path| row(KeyPlace::File, path, self.help));
        [key, file, variable, env, ini]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Section and key in the file of the Go CCM.
    fn section_and_key(&self) -> Option<(&'static str, &'static str)> {
        self.ini.and_then(|path| path.split_once('.'))
    }

    fn env_default_of(&self, env: &Variable) -> Option<&'static str> {
        match (env.default.or(self.default), env.is_inverted) {
            (Some("true"), true) => Some("false"),
            (Some("false"), true) => Some("true"),
            (default, _) => default,
        }
    }
}

/// A value that may be as good as none.
pub trait MaybeEmpty {
    /// Whether there is nothing in it.
    fn is_empty(&self) -> bool;
}

impl MaybeEmpty for String {
    fn is_empty(&self) -> bool {
        Self::is_empty(self)
    }
}

impl MaybeEmpty for Secret {
    fn is_empty(&self) -> bool {
        Self::is_empty(self)
    }
}

impl<T: KeyValue + MaybeEmpty> Setting<T> {
    /// An empty text counts as not written.
    #[must_use]
    pub const fn non_empty(mut self) -> Self {
        self.is_unset = Some(T::is_empty);
        self
    }
}

impl Setting<Secret> {
    /// It goes into a header.
    #[must_use]
    pub const fn for_header(self) -> Self {
        let is_valid = |secret: &Secret| http::HeaderValue::from_str(secret.expose()).is_ok();
        self.valid(is_valid, "text without line breaks and control characters")
    }
}

impl Setting<String> {
    /// It is an address to listen on.
    #[must_use]
    pub const fn listen_address(self) -> Self {
        let has_port = |address: &String| {
            let port = address.rsplit_once(':').map(|(_, port)| port);
            port.is_some_and(|port| port.parse::<u16>().is_ok())
        };
        self.valid(has_port, "an address such as `127.0.0.1:9090`")
    }
}

impl Setting<bool> {
    /// Also written in this environment variable, which says the contrary.
    #[must_use]
    pub const fn env_not(self, name: &'static str) -> Self {
        let mut setting = self.env(name);
        if let Some(env) = &mut setting.env {
            env.is_inverted = true;
        }
        setting
    }
}

/// Declares a struct of settings: each field with its documentation, which is its help text, and its [`Setting`].
/// Groups are structs that were declared in the same way; the rest begins with its default.
///
/// Each field also becomes a function of the same name that returns the setting, for problems that only show when
/// several are seen together.
#[macro_export]
macro_rules! settings {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $($(#[doc = $help:literal])+ $field_vis:vis $field:ident: $type:ty = $setting:expr,)*
        }
        $(groups { $($(#[$group_meta:meta])* $group_vis:vis $group:ident: $group_type:ty,)* })?
        $(rest { $($(#[$rest_meta:meta])* $rest_vis:vis $rest:ident: $rest_type:ty,)* })?
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        $vis struct $name {
            $($(#[doc = $help])+ $field_vis $field: $type,)*
            $($($(#[$group_meta])* $group_vis $group: $group_type,)*)?
            $($($(#[$rest_meta])* $rest_vis $rest: $rest_type,)*)?
        }

        impl $name {
            $(
                pub(crate) const fn $field() -> $crate::Setting<
                    <$type as $crate::reexport::cloudkeel_api::KeyField>::Value,
                > {
                    $setting.help(concat!($($help),+))
                }
            )*
        }

        impl ::std::default::Default for $name {
            fn default() -> Self {
                $crate::Settings::defaults()
            }
        }

        impl $crate::Settings for $name {
            fn load(reader: &mut $crate::SettingsReader<'_>) -> Self {
                Self {
                    $($field: $crate::reexport::cloudkeel_api::KeyField::of(
                        reader.get(&Self::$field()),
                    ),)*
                    $($($group: $crate::Settings::load(reader),)*)?
                    $($($rest: ::std::default::Default::default(),)*)?
                }
            }

            fn keys() -> ::std::vec::Vec<$crate::reexport::cloudkeel_api::KeyDoc> {
                let mut docs = ::std::vec::Vec::new();
                $(docs.extend(Self::$field().docs());)*
                $($(docs.extend(<$group_type as $crate::Settings>::keys());)*)?
                docs
            }
        }
    };
}

#[cfg(test)]
mod tests;
