//! The node lifecycle controller: taints Nodes whose machines are shut down, and deletes those whose
//! machines are proven gone.

pub mod judge;
pub mod pace;
pub mod scope;
