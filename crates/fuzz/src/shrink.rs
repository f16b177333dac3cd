//! Makes an input that breaks something smaller, for people to read.

/// How many tries a smaller input is worth.
const MOST_TRIES: usize = 3_000;

/// The smallest input that can be found by leaving parts out and writing plainer bytes, for which
/// `breaks` is still true.
pub fn smallest(input: &[u8], mut breaks: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let mut best = input.to_vec();
    let mut tries = 0;
    let mut part = best.len().div_ceil(2);
    while part > 0 && tries < MOST_TRIES {
        let mut shrunk = false;
        let mut from = 0;
        while from < best.len() && tries < MOST_TRIES {
            tries += 1;
            let mut without = best.clone();
            without.drain(from..(from + part).min(best.len()));
            if breaks(&without) {
                best = without;
                shrunk = true;
            } else {
                from += part;
            }
        }
        if !shrunk || part > best.len() {
            part /= 2;
        }
    }
    plainer(best, MOST_TRIES.saturating_sub(tries), &mut breaks)
}

/// Writes `0` for digits and `a` for the rest, where that makes no difference.
fn plainer(mut best: Vec<u8>, tries: usize, breaks: &mut impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    for at in 0..best.len().min(tries) {
        let mut plain = best.clone();
        let Some(byte) = plain.get_mut(at) else { break };
        let simple = if byte.is_ascii_digit() { b'0' } else { b'a' };
        if *byte == simple {
            continue;
        }
        *byte = simple;
        if breaks(&plain) {
            best = plain;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_matter_is_left_out() {
        let mut input = b"some text with a bug: BOOM and more".to_vec();
        input.extend([b'x'; 5_000]);
        let small = smallest(&input, |bytes| bytes.windows(4).any(|w| w == b"BOOM"));
        assert_eq!(small, b"BOOM");
    }

    #[test]
    fn bytes_that_do_not_matter_become_plain() {
        let small = smallest(b"{[99]}", |bytes| bytes.len() >= 4);
        assert_eq!(small.len(), 4);
        assert!(
            small.iter().all(|byte| matches!(byte, b'a' | b'0')),
            "{small:?}"
        );
    }
}
