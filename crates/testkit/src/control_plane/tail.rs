//! The end of a log, for error messages.

/// The last lines of a text.
pub(super) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(count);
    lines.get(from..).unwrap_or_default().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_repeated() {
        for (case, text, count, expected) in [
            ("more than asked for", "a\nb\nc\n", 2, "b\nc"),
            ("fewer than asked for", "a\nb", 5, "a\nb"),
            ("none", "", 3, ""),
        ] {
            assert_eq!(last_lines(text, count), expected, "{case}");
        }
    }
}
