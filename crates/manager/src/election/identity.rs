//! The identity of a candidate.

use uuid::Uuid;

/// `<hostname>_<uuid>`: the host shows where the leader runs; the UUID distinguishes processes on one host, and
/// restarts of one process.
pub fn unique_identity() -> String {
    let host = hostname::get().unwrap_or_default();
    format!("{}_{}", host.to_string_lossy(), Uuid::new_v4())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_names_the_host_and_is_given_out_once() {
        let identity = unique_identity();
        let (host, unique) = identity.rsplit_once('_').unwrap();
        assert_eq!(host, hostname::get().unwrap().to_string_lossy());
        assert_eq!(unique.len(), 36, "{unique}");
        assert_ne!(identity, unique_identity());
    }
}
