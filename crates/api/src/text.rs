//! Text of others in messages: short, and on one line.

use std::borrow::Cow;
use std::fmt::Write as _;

/// A text on one line, of at most so many bytes and how long it was. Control characters are escaped, so that it cannot begin
/// a line of its own in a log or move a terminal's cursor.
///
/// ```
/// # use cloudkeel_api::one_line;
/// assert_eq!(one_line("as it is", 100), "as it is");
/// assert_eq!(one_line("a\nb\u{1b}[2J", 100), r"a\nb\u{1b}[2J");
/// assert_eq!(one_line("abcdef", 3), "abc… (6 bytes)");
/// ```
pub fn one_line(text: &str, longest: usize) -> Cow<'_, str> {
    let end = text.floor_char_boundary(longest);
    let shown = text.get(..end).unwrap_or_default();
    if end == text.len() && !shown.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(shown.len() + 32);
    for char in shown.chars() {
        if char.is_control() {
            line.extend(char.escape_default());
        } else {
            line.push(char);
        }
    }
    if end < text.len() {
        let _ = write!(line, "… ({} bytes)", text.len());
    }
    Cow::Owned(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_not_cut_in_half() {
        assert_eq!(one_line("äöü", 3), "ä… (6 bytes)");
        assert_eq!(one_line("äöü", 6), "äöü");
        assert_eq!(one_line("", 0), "");
    }
}
