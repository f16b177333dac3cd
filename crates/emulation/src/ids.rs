//! IDs that are given out once and never again. They follow from a counter, so runs repeat.

/// Gives out IDs in the form that a cloud uses.
#[derive(Debug, Default)]
pub struct Ids {
    last: u64,
}

impl Ids {
    /// The first ID comes after this one.
    pub const fn after(last: u64) -> Self {
        Self { last }
    }

    /// The last ID that was given out.
    pub const fn last(&self) -> u64 {
        self.last
    }

    /// Gives out nothing up to this number, which a resource has already.
    pub fn skip_to(&mut self, used: u64) {
        self.last = self.last.max(used);
    }

    /// The next number.
    pub const fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// The next UUID.
    pub fn uuid(&mut self) -> String {
        uuid_of(self.number())
    }

    /// The next ID such as `vol-0000000000000001a`: a prefix and 17 hexadecimal digits.
    pub fn prefixed(&mut self, prefix: &str) -> String {
        format!("{prefix}-{:017x}", self.number())
    }
}

/// The UUID that belongs to a number.
pub fn uuid_of(number: u64) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_comes_twice_whatever_its_form() {
        let mut ids = Ids::after(9);
        assert_eq!(ids.number(), 10);
        assert_eq!(ids.uuid(), "00000000-0000-4000-8000-00000000000b");
        assert_eq!(ids.prefixed("vol"), "vol-0000000000000000c");
        ids.skip_to(20);
        ids.skip_to(3);
        assert_eq!((ids.number(), ids.last()), (21, 21));
    }
}
