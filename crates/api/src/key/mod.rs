//! Typed keys: annotations, configuration, environment variables and flags. Each is declared once, as a constant
//! that parses its value, rejects an invalid one, and prints its own documentation.

mod annotation;
mod config;
mod doc;
mod duration;
mod env;
mod flag;
mod named;
mod nearest;
mod problem;
mod value;

pub use annotation::{AnnotationKey, UnknownAnnotation, unknown_annotations};
pub use config::{ConfigKey, ConfigReader};
pub use doc::{Documented, KeyDoc, KeyPlace, reference_table};
pub use duration::{format_go_duration, parse_go_duration};
pub use env::{EnvKey, EnvReader};
pub use flag::{FlagKey, FlagValues};
pub use nearest::nearest;
pub use problem::{Problem, Problems};
pub use value::{KeyField, KeyValue};
