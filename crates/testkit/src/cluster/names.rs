//! Names that no other test uses.

use std::sync::atomic::{AtomicU32, Ordering};

/// A name that starts with `prefix` and is given out once, fit for every kind of object.
///
/// It differs between processes too, since names may reach things that outlive a control plane.
pub fn unique_name(prefix: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}-{:x}-{number}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_names_are_the_same() {
        let (first, second) = (unique_name("node"), unique_name("node"));
        assert_ne!(first, second);
        for name in [first, second] {
            assert!(name.starts_with("node-"), "{name}");
            let valid =
                |byte: u8| byte == b'-' || byte.is_ascii_lowercase() || byte.is_ascii_digit();
            assert!(name.bytes().all(valid), "{name} is not a DNS label");
        }
    }
}
