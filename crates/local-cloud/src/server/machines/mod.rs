//! Where machines come from besides the API: a file, or the Nodes of a cluster.

mod file;
mod nodes;
mod sync;

pub use self::file::MachinesFileError;
pub(crate) use self::file::read as read_file;
pub use self::nodes::NodesError;
pub(crate) use self::nodes::{connect, follow};
pub(crate) use self::sync::{Reported, Source, replace_all};
