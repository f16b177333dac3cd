//! Which clouds there are: from cloudkeel's own file, or from a Go CCM's flags, environment and file.

mod cloud;
mod file;
mod load;

pub use cloud::{BalancerScope, CloudEntry, NodeScope, TargetScope};
pub use file::{API_VERSION, CloudFile, KIND, key_docs};
pub use load::{ConfigError, Setup, load, load_named};
