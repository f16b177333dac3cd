//! What the API server makes up: UIDs, the ends of generated names, addresses and ports. All of it
//! comes from one seed, so none of it is a secret.

use fastrand::Rng;

/// What names are completed with: no vowels and no digits that look like letters.
const NAME_SIGNS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const NAME_SUFFIX: usize = 5;
const NAME_LIMIT: usize = 63;

pub(crate) struct Generator(Rng);

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Rng::with_seed(seed))
    }

    /// A random UUID.
    pub(crate) fn uid(&mut self) -> String {
        let bits = self.0.u128(..);
        // Version 4, variant 1.
        let bits = (bits & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
        let hex = format!("{bits:032x}");
        let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default().to_owned();
        [
            part(0, 8),
            part(8, 12),
            part(12, 16),
            part(16, 20),
            part(20, 32),
        ]
        .join("-")
    }

    /// A name that starts like this.
    pub(crate) fn name(&mut self, start: &str) -> String {
        let mut name: String = start.chars().take(NAME_LIMIT - NAME_SUFFIX).collect();
        for _ in 0..NAME_SUFFIX {
            let sign = self.0.choice(NAME_SIGNS).copied().unwrap_or(b'x');
            name.push(char::from(sign));
        }
        name
    }

    /// A number of a range that is not taken, if one is left.
    pub(crate) fn free(
        &mut self,
        range: std::ops::Range<u32>,
        taken: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        if range.is_empty() {
            return None;
        }
        let start = self.0.u32(range.clone());
        let later = start..range.end;
        later
            .chain(range.start..start)
            .find(|number| !taken(*number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_things() {
        let make = |seed| {
            let mut generator = Generator::new(seed);
            (generator.uid(), generator.name("web-"))
        };
        assert_eq!(make(1), make(1));
        assert_ne!(make(1), make(2));
    }

    #[test]
    fn a_uid_is_a_random_uuid() {
        let uid = Generator::new(7).uid();
        let parts: Vec<_> = uid.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12], "{uid}");
        assert_eq!(&uid[14..15], "4", "{uid}");
        assert!(matches!(&uid[19..20], "8" | "9" | "a" | "b"), "{uid}");
    }

    #[test]
    fn every_free_number_is_found_and_no_other() {
        let mut generator = Generator::new(3);
        assert_eq!(generator.free(10..20, |number| number != 14), Some(14));
        assert_eq!(generator.free(10..20, |_| true), None);
        assert_eq!(generator.free(10..10, |_| false), None);
    }
}
