//! Reads typed flags from a command line and collects all problems.

use cloudkeel_api::{FlagKey, FlagValues, KeyValue, Problem, Problems};

pub(super) struct OptionReader<'a> {
    values: &'a FlagValues,
    problems: Problems,
    notes: Vec<String>,
}

impl<'a> OptionReader<'a> {
    pub(super) const fn new(values: &'a FlagValues) -> Self {
        Self {
            values,
            problems: Problems::new(),
            notes: Vec::new(),
        }
    }

    /// A flag that has a default, so there is always a value unless it is invalid.
    pub(super) fn value<T: KeyValue>(&mut self, key: &FlagKey<T>) -> Option<T> {
        self.optional(key)?
    }

    /// A flag without a default. The outer `None` means: invalid, and the problem is recorded.
    #[expect(
        clippy::option_option,
        reason = "wrong and absent are different, and both go on"
    )]
    pub(super) fn optional<T: KeyValue>(&mut self, key: &FlagKey<T>) -> Option<Option<T>> {
        let read = key.get(self.values);
        self.problems.note(read)
    }

    /// A text for which empty means absent.
    #[expect(
        clippy::option_option,
        reason = "wrong and absent are different, and both go on"
    )]
    pub(super) fn text(&mut self, key: &FlagKey<String>) -> Option<Option<String>> {
        let text = self.optional(key)?;
        Some(text.filter(|text| !text.is_empty()))
    }

    /// A comma list that may also be repeated; all of it together, or the default.
    pub(super) fn list(&mut self, key: &FlagKey<Vec<String>>) -> Option<Vec<String>> {
        if self.is_given(key.name()) {
            let all = key.all(self.values);
            return self.problems.note(all).map(|lists| lists.concat());
        }
        Some(self.optional(key)?.unwrap_or_default())
    }

    /// Every value of a flag that may be repeated.
    pub(super) fn repeated(&mut self, key: &FlagKey<String>) -> Option<Vec<String>> {
        let all = key.all(self.values);
        self.problems.note(all)
    }

    pub(super) fn is_given(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// The value is of the right type but not allowed.
    pub(super) fn refuse(&mut self, flag: &str, value: impl Into<String>, expected: &str) {
        self.problems
            .push(Problem::unexpected(flag, value, expected));
    }

    /// A problem that concerns several flags.
    pub(super) fn note(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Something harmless in a command line of a Go CCM that an operator should know.
    pub(super) fn warn(&mut self, note: String) {
        self.notes.push(note);
    }

    pub(super) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    pub(super) fn finish<T>(self, value: Option<T>) -> Result<T, Problems> {
        self.problems.into_result()?;
        value.ok_or_else(|| Problem::new("flags", "are incomplete").into())
    }
}
