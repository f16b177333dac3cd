//! XML, as command-style and SOAP APIs answer with it.

use std::fmt::Write as _;

use serde_json::Value;

/// Writes a value as an XML document. A field is an element, a list repeats the element of its name, and a field
/// that begins with `@` is an attribute of the element around it.
pub fn to_xml(root: &str, value: &Value) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    write_element(&mut text, root, value);
    text
}

fn write_element(text: &mut String, name: &str, value: &Value) {
    if let Value::Array(items) = value {
        for item in items {
            write_element(text, name, item);
        }
        return;
    }
    let _ = write!(text, "<{name}");
    if let Value::Object(fields) = value {
        for (field, value) in fields {
            if let Some(attribute) = field.strip_prefix('@') {
                let _ = write!(text, " {attribute}=\"{}\"", escaped(value));
            }
        }
    }
    text.push('>');
    match value {
        Value::Object(fields) => {
            for (field, value) in fields.iter().filter(|(field, _)| !field.starts_with('@')) {
                write_element(text, field, value);
            }
        }
        other => text.push_str(&escaped(other)),
    }
    let _ = write!(text, "</{name}>");
}

fn escaped(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

/// The name of an element without its namespace prefix.
fn local_name(tag: &str) -> &str {
    let name = tag.split([' ', '\t', '\r', '\n', '/']).next();
    let name = name.unwrap_or_default();
    name.rsplit_once(':').map_or(name, |(_, name)| name)
}

/// One tag of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tag<'a> {
    /// Where its `<` stands.
    start: usize,
    /// Behind its `>`.
    end: usize,
    name: &'a str,
    closes: bool,
    is_empty: bool,
}

/// The tags of a document, without comments, processing instructions and CDATA.
fn tags(text: &str) -> impl Iterator<Item = Tag<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at + text.get(at..)?.find('<')?;
            let end = start + text.get(start..)?.find('>')? + 1;
            at = end;
            let inner = text.get(start + 1..end - 1)?;
            if inner.starts_with(['?', '!']) {
                continue;
            }
            let closes = inner.starts_with('/');
            return Some(Tag {
                start,
                end,
                name: local_name(inner.trim_start_matches('/')),
                closes,
                is_empty: inner.ends_with('/'),
            });
        }
    })
}

/// The first element inside the element of this name: the operation of a SOAP request is the one inside `Body`.
pub(super) fn first_inside<'a>(text: &'a str, parent: &str) -> Option<&'a str> {
    let mut tags = tags(text).skip_while(|tag| tag.name != parent || tag.closes);
    tags.next()?;
    tags.next().filter(|tag| !tag.closes).map(|tag| tag.name)
}

/// Where the outermost elements of this name stand.
fn outermost(text: &str, name: &str) -> Vec<(usize, usize)> {
    let (mut found, mut depth, mut begun) = (Vec::new(), 0_usize, 0);
    for tag in tags(text).filter(|tag| tag.name == name) {
        match (tag.closes, tag.is_empty) {
            (false, true) if depth == 0 => found.push((tag.start, tag.end)),
            (false, true) => {}
            (false, false) => {
                if depth == 0 {
                    begun = tag.start;
                }
                depth += 1;
            }
            (true, _) => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    found.push((begun, tag.end));
                }
            }
        }
    }
    found
}

/// The text without some of the outermost elements of a name.
pub(super) fn without(text: &str, name: &str, which: Which) -> String {
    let mut gone = outermost(text, name);
    if which == Which::Last {
        gone = gone.pop().into_iter().collect();
    }
    let mut left = text.to_owned();
    for (start, end) in gone.into_iter().rev() {
        left.replace_range(start..end, "");
    }
    left
}

/// Which elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    All,
    Last,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_becomes_elements_attributes_and_lists() {
        let value = json!({
            "@xmlns": "http://example.com/",
            "disks": {"item": [{"id": 1, "name": "a<b"}, {"id": 2, "name": null}]},
            "more": false,
        });
        let text = to_xml("Answer", &value);
        let (_, text) = text.split_once('\n').unwrap();
        assert_eq!(
            text,
            "<Answer xmlns=\"http://example.com/\"><disks><item><id>1</id><name>a&lt;b</name></item>\
             <item><id>2</id><name></name></item></disks><more>false</more></Answer>"
        );
    }

    #[test]
    fn elements_are_found_by_their_local_name_and_depth() {
        let soap = "<?xml version='1.0'?><s:Envelope><!-- x --><s:Body>\n\
                    <vim:Login xmlns:vim='urn:vim25'><_this/></vim:Login></s:Body></s:Envelope>";
        assert_eq!(first_inside(soap, "Body"), Some("Login"));
        assert_eq!(first_inside("<a><Body></Body></a>", "Body"), None);
        let list = "<set><item>1<set><item>x</item></set></item><item>2</item><next>n</next></set>";
        let last = "<set><item>1<set><item>x</item></set></item><next>n</next></set>";
        assert_eq!(without(list, "item", Which::Last), last);
        assert_eq!(
            without(list, "item", Which::All),
            "<set><next>n</next></set>"
        );
        assert_eq!(without("<a/><b/>", "a", Which::All), "<b/>");
    }
}
