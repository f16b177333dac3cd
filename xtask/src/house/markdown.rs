//! The few things that the checks need to know of Markdown.

/// The code of a page, in spans and in fenced blocks, with everything else left out; line numbers stay.
pub(crate) fn code_in(page: &str) -> String {
    let lines: Vec<String> = Parts::of(page)
        .0
        .into_iter()
        .map(|(_, code)| code.join(" "))
        .collect();
    lines.join("\n")
}

/// Each span of code and each line of a fenced block, with the number of its line.
pub(crate) fn spans_in(page: &str) -> impl Iterator<Item = (usize, String)> {
    let numbered = Parts::of(page).0.into_iter().zip(1..);
    numbered.flat_map(|((_, code), number)| code.into_iter().map(move |span| (number, span)))
}

/// The text of a page without its code; line numbers stay.
pub(crate) fn text_in(page: &str) -> String {
    let lines: Vec<String> = Parts::of(page)
        .0
        .into_iter()
        .map(|(text, _)| text)
        .collect();
    lines.join("\n")
}

/// The text and the code of each line.
struct Parts(Vec<(String, Vec<String>)>);

impl Parts {
    fn of(page: &str) -> Self {
        let mut fence: Option<&str> = None;
        let line = |line| {
            let trimmed = str::trim_start(line);
            let marker = ["```", "~~~"]
                .into_iter()
                .find(|it| trimmed.starts_with(it));
            match (fence, marker) {
                (None, Some(_)) => fence = marker,
                (Some(open), Some(close)) if open == close => fence = None,
                (Some(_), _) => return (String::new(), vec![line.to_owned()]),
                (None, None) => return spans(line),
            }
            (String::new(), Vec::new())
        };
        Self(page.lines().map(line).collect())
    }
}

/// The text of a line, with two backticks where code was, and its code.
fn spans(line: &str) -> (String, Vec<String>) {
    let (mut text, mut code) = (String::new(), Vec::new());
    for (index, part) in line.split('`').enumerate() {
        if index % 2 == 0 {
            text.push_str(part);
        } else {
            text.push_str("``");
            code.push(part.to_owned());
        }
    }
    (text, code)
}

/// The anchors of a page, as GitHub makes them from its headings.
pub(crate) fn anchors(page: &str) -> Vec<String> {
    let fenced = text_in(page);
    let is_heading =
        |line: &&str| line.trim_start_matches('#').starts_with(' ') && line.starts_with('#');
    let headings = fenced
        .lines()
        .zip(page.lines())
        .filter(|(text, _)| is_heading(text))
        .map(|(_, line)| slug(line.trim_start_matches('#').trim()));
    let mut anchors: Vec<String> = Vec::new();
    for slug in headings {
        let is_again = |anchor: &&String| {
            let number = anchor
                .strip_prefix(&*slug)
                .and_then(|rest| rest.strip_prefix('-'));
            **anchor == slug || number.is_some_and(|rest| rest.parse::<u32>().is_ok())
        };
        let times = anchors.iter().filter(is_again).count();
        anchors.push(if times == 0 {
            slug
        } else {
            format!("{slug}-{times}")
        });
    }
    anchors
}

/// Lower case, blanks as hyphens, and of the rest only letters, digits, hyphens and underscores. Of a link only
/// its text counts.
fn slug(heading: &str) -> String {
    let mut plain = heading.to_owned();
    while let Some((before, rest)) = plain.split_once("](") {
        let after = rest.split_once(')').map_or("", |(_, after)| after);
        plain = format!("{before}{after}");
    }
    plain
        .to_lowercase()
        .chars()
        .filter_map(|character| match character {
            ' ' => Some('-'),
            '-' | '_' => Some(character),
            _ => character.is_alphanumeric().then_some(character),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_text_are_taken_apart() {
        let page = "a `b` c `d`\n```sh\ne\n```\nf\n~~~\n```\n~~~\ng `h`\n";
        assert_eq!(code_in(page), "b d\n\ne\n\n\n\n```\n\nh");
        assert_eq!(text_in(page), "a `` c ``\n\n\n\nf\n\n\n\ng ``");
    }

    #[test]
    fn anchors_are_those_of_github() {
        let page = "# One & two\n## `--flag` at 3 p.m.\n```sh\n# no heading\n```\n## Same\n### Same\n#no heading\n## A [link](b.md) here\n";
        assert_eq!(
            anchors(page),
            [
                "one--two",
                "--flag-at-3-pm",
                "same",
                "same-1",
                "a-link-here"
            ]
        );
    }
}
