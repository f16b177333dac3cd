//! The HTTPS endpoints of the manager.
