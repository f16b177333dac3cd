//! What is fuzzed.

/// What a target says of one input: nothing, or which property it breaks.
pub type Check = Result<(), String>;

/// Reads any bytes.
pub type Reader = Box<dyn FnMut(&[u8]) -> Check>;

/// Something that reads what others wrote.
#[derive(Clone, Copy)]
pub struct Target {
    /// As in `--target`.
    pub name: &'static str,
    /// What it reads.
    pub what: &'static str,
    /// How often a round is worth it: a share of the rounds asked for, in percent.
    pub share: u32,
    /// Good inputs.
    pub examples: fn() -> Vec<Vec<u8>>,
    /// Words that mean something to it.
    pub words: fn() -> Vec<String>,
    /// Made anew after every panic, for that may have broken it.
    pub reader: fn() -> Reader,
}

impl Target {
    /// One that reads plain text with a function.
    pub(crate) const fn new(
        name: &'static str,
        what: &'static str,
        examples: fn() -> Vec<Vec<u8>>,
        words: fn() -> Vec<String>,
        reader: fn() -> Reader,
    ) -> Self {
        Self {
            name,
            what,
            share: 100,
            examples,
            words,
            reader,
        }
    }

    /// The same, with this share of the rounds: for targets that are slow.
    pub(crate) const fn share(mut self, percent: u32) -> Self {
        self.share = percent;
        self
    }
}
