//! Rust source without its comments and literals, so that rules see code only.

/// The source with every comment, string and character literal left out; line numbers stay.
pub(crate) fn code_only(source: &str) -> String {
    masked(source, "")
}

/// The source without its comments, and with a quote for every line of a literal; line numbers stay.
pub(crate) fn without_comments(source: &str) -> String {
    masked(source, "\"")
}

/// Leaves comments out, and puts `literal` in place of each line of a literal.
fn masked(source: &str, literal: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(character) = rest.chars().next() {
        let in_a_word = code.ends_with(|before: char| before.is_alphanumeric() || before == '_');
        let (skipped, length) = match opaque(rest, in_a_word) {
            Some(length) => (true, length),
            None => (false, character.len_utf8()),
        };
        let (token, after) = rest.split_at(length);
        if skipped && !token.starts_with('/') {
            let lines: Vec<&str> = token.split('\n').map(|_| literal).collect();
            code.push_str(&lines.join("\n"));
        } else if skipped {
            code.extend(token.chars().filter(|&character| character == '\n'));
        } else {
            code.push_str(token);
        }
        rest = after;
    }
    code
}

/// The length of the comment or literal that begins here, if one does.
fn opaque(rest: &str, in_a_word: bool) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return Some(block_comment(rest));
    }
    if rest.starts_with('"') {
        return Some(quoted(rest, '"'));
    }
    if rest.starts_with('\'') {
        return character_literal(rest);
    }
    if in_a_word { None } else { raw_string(rest) }
}

/// Block comments nest.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    loop {
        let here = rest.split_at(at).1;
        if here.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with("*/") {
            depth -= 1;
            at += 2;
        } else {
            match here.chars().next() {
                Some(character) => at += character.len_utf8(),
                None => return rest.len(),
            }
        }
        if depth == 0 {
            return at;
        }
    }
}

/// A literal that ends at the next quote without a backslash before it.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            end if end == quote => return at + end.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

/// `'x'` and `'\n'` are literals, `'x` is a lifetime.
fn character_literal(rest: &str) -> Option<usize> {
    let mut after = rest.chars().skip(1);
    let is_literal = match after.next()? {
        '\\' => true,
        _ => after.next()? == '\'',
    };
    is_literal.then(|| quoted(rest, '\''))
}

/// `r"…"`, `r#"…"#`, and the same with `br` or `cr`.
fn raw_string(rest: &str) -> Option<usize> {
    let after = ["r", "br", "cr"]
        .iter()
        .find_map(|prefix| rest.strip_prefix(prefix))?;
    let body = after.trim_start_matches('#');
    let hashes = after.split_at(after.len() - body.len()).0;
    let body = body.strip_prefix('"')?;
    let end = format!("\"{hashes}");
    let start = rest.len() - body.len();
    Some(
        body.find(&end)
            .map_or(rest.len(), |at| start + at + end.len()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_vanish_and_code_stays() {
        for (case, source, code) in [
            ("plain", "let a = 1;", "let a = 1;"),
            ("line comment", "a // b \"\nc", "a \nc"),
            ("line comment at the end", "a // b", "a "),
            ("block comment", "a /* b\n */ c", "a \n c"),
            ("nested comment", "a /* b /* c */ d */ e", "a  e"),
            ("open comment", "a /* b", "a "),
            ("string", "f(\"a // b\") // c", "f() "),
            ("escaped quote", r#"f("a\"b") g"#, "f() g"),
            ("escaped backslash", r#"f("a\\") "b" g"#, "f()  g"),
            ("string over lines", "f(\"a\nb\") g", "f(\n) g"),
            ("raw string", "f(r\"a\\\") g", "f() g"),
            ("hashed raw string", "f(r#\"a \"b\" c\"#) g", "f() g"),
            ("raw bytes", "f(br##\"a \"# b\"##) g", "f() g"),
            ("raw identifier", "let r#type = 1;", "let r#type = 1;"),
            ("word that ends in r", "bar\"a\" b", "bar b"),
            ("character", "f('\"', '\\'', 'a') g", "f(, , ) g"),
            ("wide character", "f('→') g", "f() g"),
            (
                "lifetime",
                "fn f<'a>(a: &'a str) {}",
                "fn f<'a>(a: &'a str) {}",
            ),
            ("open string", "f(\"a", "f("),
        ] {
            assert_eq!(code_only(source), code, "{case}");
        }
    }

    #[test]
    fn every_line_of_a_literal_can_be_kept_as_one() {
        let source = "let a = \"one\n\ntwo\"; // note\n/* note */\nlet b = 'c';";
        assert_eq!(
            without_comments(source),
            "let a = \"\n\"\n\"; \n\nlet b = \";"
        );
    }
}
