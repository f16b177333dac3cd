//! Makes broken input from good examples.

use fastrand::Rng;

use crate::json;

/// No input is longer: parsers of ours are linear, and long inputs cost rounds.
const LONGEST: usize = 48 * 1024;

/// How deep is too deep for a parser that recurses without counting.
const DEEP: usize = 5_000;

/// Numbers at the edges of what types hold, and some that are none.
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "-1",
    "1",
    "127",
    "255",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "-2147483649",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "1e309",
    "-1e309",
    "1e-400",
    "0.1",
    "NaN",
    "Infinity",
    "-inf",
    "0x10",
    "1_000",
    "+5",
    "٣",
];

/// Texts that are short, legal and surprising.
const ODDITIES: &[&str] = &[
    "",
    " ",
    "\0",
    "\u{feff}",
    "\u{202e}",
    "\u{200d}",
    "e\u{301}",
    "İ",
    "ß",
    "\u{1f468}\u{200d}\u{1f469}",
    "\u{10ffff}",
    "\u{fffd}",
    "\u{2028}",
    "\r\n",
    "\n",
    "\t",
    "%00",
    "%",
    "%zz",
    "..",
    "../",
    "//",
    "://",
    "::",
    "[::]",
    "::ffff:1.2.3.4",
    "0.0.0.0/0",
    "::/0",
    "1.2.3.4/33",
    "null",
    "true",
    "{}",
    "[]",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "'",
    "<<: *a",
    "&a",
    "*a",
    "!!binary",
    "---",
    "-",
    "=",
    ",",
    ":",
    ";",
    "9999-12-31T23:59:59.999999999Z",
    "-009999-01-01T00:00:00Z",
    "1970-01-01T00:00:60Z",
    "-1h",
    "9223372036854775807ns",
    "1h1h1h",
];

/// Bytes that no text has.
const NOT_TEXT: &[&[u8]] = &[
    b"\xff",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xe2\x82",
    b"\x80",
];

/// Makes inputs from a seed.
pub struct Mutator {
    rng: Rng,
    examples: Vec<Vec<u8>>,
    words: Vec<String>,
}

impl Mutator {
    /// One that works on these examples, with these words.
    pub fn new(seed: u64, examples: Vec<Vec<u8>>, words: Vec<String>) -> Self {
        Self {
            rng: Rng::with_seed(seed),
            examples,
            words,
        }
    }

    /// The next input.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.example();
        for _ in 0..=self.rng.usize(..4) {
            self.mutate(&mut input);
        }
        input.truncate(LONGEST);
        input
    }

    fn example(&mut self) -> Vec<u8> {
        let chosen = self.rng.choice(&self.examples);
        chosen.cloned().unwrap_or_default()
    }

    fn mutate(&mut self, input: &mut Vec<u8>) {
        match self.rng.u8(..14) {
            0 => self.flip_bit(input),
            1 => self.set_byte(input),
            2 => {
                let at = self.place(input);
                input.truncate(at);
            }
            3 => {
                let (from, to) = self.stretch(input);
                input.drain(from..to);
            }
            4 => self.repeat(input),
            5 => self.splice(input),
            6 | 7 => {
                let word = self.word();
                self.insert(input, &word);
            }
            8 | 9 => self.replace_number(input),
            10 => self.nest(input),
            11 => self.lengthen(input),
            12 => {
                let bytes = self.rng.choice(NOT_TEXT).copied().unwrap_or_default();
                self.insert(input, bytes);
            }
            _ => json::mutate(&mut self.rng, input, &self.words),
        }
    }

    fn place(&mut self, input: &[u8]) -> usize {
        self.rng.usize(..=input.len())
    }

    /// A part of the input, short more often than not.
    fn stretch(&mut self, input: &[u8]) -> (usize, usize) {
        let from = self.place(input);
        let most = (input.len() - from).min(1 << self.rng.u32(..10));
        (from, from + self.rng.usize(..=most))
    }

    fn flip_bit(&mut self, input: &mut [u8]) {
        let bit = 1 << self.rng.u8(..8);
        if let Some(byte) = self.rng.choice(input.iter_mut()) {
            *byte ^= bit;
        }
    }

    fn set_byte(&mut self, input: &mut [u8]) {
        let value = self.rng.u8(..);
        if let Some(byte) = self.rng.choice(input.iter_mut()) {
            *byte = value;
        }
    }

    fn insert(&mut self, input: &mut Vec<u8>, bytes: &[u8]) {
        let at = self.place(input);
        input.splice(at..at, bytes.iter().copied());
    }

    fn repeat(&mut self, input: &mut Vec<u8>) {
        let (from, to) = self.stretch(input);
        let part = input.get(from..to).unwrap_or_default();
        let times = 1 << self.rng.u32(..8);
        let part = part.repeat(times);
        input.splice(to..to, part.into_iter().take(LONGEST));
    }

    /// The beginning of this one and the end of another.
    fn splice(&mut self, input: &mut Vec<u8>) {
        let other = self.example();
        let (at, from) = (self.place(input), self.place(&other));
        input.truncate(at);
        input.extend(other.get(from..).unwrap_or_default());
    }

    fn word(&mut self) -> Vec<u8> {
        let word = match self.rng.u8(..4) {
            0 => self.rng.choice(NUMBERS).copied(),
            1 => self.rng.choice(ODDITIES).copied(),
            _ => self.rng.choice(&self.words).map(String::as_str),
        };
        word.unwrap_or_default().as_bytes().to_vec()
    }

    /// Another number in the place of one that is there, or of anything.
    fn replace_number(&mut self, input: &mut Vec<u8>) {
        let number = self.rng.choice(NUMBERS).copied().unwrap_or_default();
        let start = self.place(input);
        let digit = |byte: &u8| byte.is_ascii_digit();
        let rest = input.get(start..).unwrap_or_default();
        let Some(from) = rest.iter().position(digit).map(|at| start + at) else {
            return self.insert(input, number.as_bytes());
        };
        let digits = input.get(from..).unwrap_or_default();
        let length = digits.iter().take_while(|byte| digit(byte)).count();
        input.splice(from..from + length, number.bytes());
    }

    fn nest(&mut self, input: &mut Vec<u8>) {
        const BRACKETS: &[(&str, &str)] = &[
            ("[", "]"),
            ("{\"a\":", "}"),
            ("(", ")"),
            ("- ", ""),
            ("a:\n ", ""),
            ("\"", "\""),
        ];
        let (open, close) = self.rng.choice(BRACKETS).copied().unwrap_or_default();
        let depth = self.rng.usize(1..DEEP);
        let (from, to) = self.stretch(input);
        let inner = input.get(from..to).unwrap_or_default().to_vec();
        let close = if self.rng.bool() { close } else { "" };
        let nested = [
            open.repeat(depth).into_bytes(),
            inner,
            close.repeat(depth).into_bytes(),
        ];
        input.splice(from..to, nested.concat());
    }

    fn lengthen(&mut self, input: &mut Vec<u8>) {
        let letter = *self.rng.choice(b"a0.-/\xc3 ,=").unwrap_or(&b'a');
        let length = 1 << self.rng.u32(4..15);
        self.insert(input, &vec![letter; length]);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn inputs(seed: u64) -> Vec<Vec<u8>> {
        let examples = vec![br#"{"a": 1, "b": [2, "x"]}"#.to_vec(), b"k=v".to_vec()];
        let mut mutator = Mutator::new(seed, examples, vec!["word".to_owned()]);
        (0..2_000).map(|_| mutator.next_input()).collect()
    }

    #[test]
    fn the_same_seed_makes_the_same_inputs_and_another_makes_others() {
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
    }

    #[test]
    fn inputs_are_bounded_and_hardly_ever_the_same() {
        let inputs = inputs(3);
        assert!(inputs.iter().all(|input| input.len() <= LONGEST));
        let different: BTreeSet<_> = inputs.iter().collect();
        assert!(different.len() > 1_500, "{}", different.len());
    }

    #[test]
    fn every_kind_of_trouble_is_made() {
        let inputs = inputs(4);
        let any = |is: &dyn Fn(&[u8]) -> bool| inputs.iter().any(|input| is(input));
        let contains = |part: &'static [u8]| {
            move |input: &[u8]| input.windows(part.len()).any(|window| window == part)
        };
        for (trouble, found) in [
            ("no text", any(&|input| std::str::from_utf8(input).is_err())),
            ("NUL", any(&contains(b"\0"))),
            ("depth", any(&contains(&[b'['; 500]))),
            ("length", any(&contains(&[b'a'; 4_000]))),
            ("a word", any(&contains(b"word"))),
            ("a huge number", any(&contains(b"1e309"))),
            (
                "both examples",
                any(&|i| contains(b"{")(i) && contains(b"k=v")(i)),
            ),
            ("nothing", any(&<[u8]>::is_empty)),
        ] {
            assert!(found, "{trouble}");
        }
    }

    #[test]
    fn without_examples_there_are_inputs_too() {
        let mut mutator = Mutator::new(1, vec![], vec![]);
        assert!((0..100).any(|_| !mutator.next_input().is_empty()));
    }
}
