//! XML as clouds answer with it: SOAP, and the query protocol of AWS.
//!
//! ```
//! use cloudkeel_toolkit::xml::Element;
//!
//! let body = b"<R xmlns='urn:x'><set><item><id>i-1</id></item><item><id>i-2</id></item></set></R>";
//! let answer = Element::parse(body).unwrap();
//! let ids: Vec<_> = answer.all_at("set/item").filter_map(|item| item.text_at("id")).collect();
//! assert_eq!(ids, ["i-1", "i-2"]);
//! ```
//!
//! For [`Response::decode`](cloudkeel_http::Response::decode), and for the functions that find the code of an error.
//! The parser refuses what no cloud sends: document types, and elements nested deeper than in any API.
//!
//! Requests are elements too, printed as text:
//!
//! ```
//! use cloudkeel_toolkit::xml::Element;
//!
//! let request = Element::new("Find").attribute("xmlns", "urn:x").with(Element::of("name", "a&b"));
//! assert_eq!(request.to_string(), r#"<Find xmlns="urn:x"><name>a&amp;b</name></Find>"#);
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// How deep elements may be nested.
const DEEPEST: usize = 64;

/// An element with everything in it. Names are without their namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Element {
    /// Its name.
    pub name: String,
    /// Its attributes. Of two with the same name, the one without a namespace counts.
    pub attributes: BTreeMap<String, String>,
    /// The elements in it, in their order.
    pub children: Vec<Self>,
    /// The text in it, without that of elements in it and without white space around it.
    pub text: String,
}

impl Element {
    /// An element of this name with nothing in it.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// An element with a text.
    pub fn of(name: impl Into<String>, text: impl fmt::Display) -> Self {
        Self {
            text: text.to_string(),
            ..Self::new(name)
        }
    }

    /// With an attribute.
    #[must_use]
    pub fn attribute(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.attributes.insert(name.into(), value.into());
        self
    }

    /// With one more element in it.
    #[must_use]
    pub fn with(mut self, child: Self) -> Self {
        self.children.push(child);
        self
    }

    /// With more elements in it.
    #[must_use]
    pub fn with_all(mut self, children: impl IntoIterator<Item = Self>) -> Self {
        self.children.extend(children);
        self
    }

    /// Reads a document: its one outermost element.
    pub fn parse(body: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
        let mut rest = text.trim_start_matches('\u{feff}');
        // The elements that are open, below the document itself.
        let mut open = vec![Self::default()];
        while !rest.is_empty() {
            let (text, markup) = rest.split_at(rest.find('<').unwrap_or(rest.len()));
            let last = open.last_mut().ok_or("an end without its beginning")?;
            last.text.push_str(&unescape(text)?);
            rest = read_markup(markup, &mut open)?;
        }
        match <[Self; 1]>::try_from(open) {
            Ok([document]) => document.only_child(),
            Err(open) => {
                let names: Vec<_> = open.into_iter().skip(1).map(|open| open.name).collect();
                Err(format!("<{}> has no end", names.join("> <")))
            }
        }
    }

    fn only_child(self) -> Result<Self, String> {
        match <[Self; 1]>::try_from(self.children) {
            Ok([root]) if self.text.trim().is_empty() => Ok(root),
            _ => Err("expected one element".to_owned()),
        }
    }

    /// Everything at a path such as `reservationSet/item`.
    pub fn all_at<'a>(&'a self, path: &str) -> impl Iterator<Item = &'a Self> {
        let mut found = vec![self];
        for name in path.split('/') {
            let children = found.iter().flat_map(|element| &element.children);
            found = children.filter(|child| child.name == name).collect();
        }
        found.into_iter()
    }

    /// The first element at a path.
    pub fn at(&self, path: &str) -> Option<&Self> {
        self.all_at(path).next()
    }

    /// The text of the first element at a path; `None` if there is no such element or nothing in it.
    pub fn text_at(&self, path: &str) -> Option<&str> {
        let text = self.at(path).map(|element| element.text.as_str());
        text.filter(|text| !text.is_empty())
    }

    /// The value of the first element at a path, which has to be there.
    pub fn value_at<T: FromStr>(&self, path: &str) -> Result<T, String> {
        let name = &self.name;
        let text = self.text_at(path);
        let text = text.ok_or_else(|| format!("<{name}> has no {path}"))?;
        let wrong = |_| format!("<{name}> has {text:?} as its {path}");
        text.parse().map_err(wrong)
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}", self.name)?;
        for (name, value) in &self.attributes {
            write!(f, " {name}=\"{}\"", escape(value))?;
        }
        write!(f, ">{}", escape(&self.text))?;
        for child in &self.children {
            child.fmt(f)?;
        }
        write!(f, "</{}>", self.name)
    }
}

/// A text as it is written in a document.
pub fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

/// Reads what begins with `<`, and returns what comes after it.
fn read_markup<'a>(markup: &'a str, open: &mut Vec<Element>) -> Result<&'a str, String> {
    if markup.is_empty() {
        return Ok(markup);
    }
    if let Some(comment) = markup.strip_prefix("<!--") {
        return Ok(until(comment, "-->")?.1);
    }
    if let Some(instruction) = markup.strip_prefix("<?") {
        return Ok(until(instruction, "?>")?.1);
    }
    if let Some(data) = markup.strip_prefix("<![CDATA[") {
        let (data, rest) = until(data, "]]>")?;
        let last = open.last_mut().ok_or("text behind the end")?;
        last.text.push_str(data);
        return Ok(rest);
    }
    if markup.starts_with("<!") {
        return Err("document types are refused".to_owned());
    }
    if let Some(end) = markup.strip_prefix("</") {
        let (name, rest) = until(end, ">")?;
        close(open, local_name(name.trim()))?;
        return Ok(rest);
    }
    let (tag, rest) = tag(markup.get(1..).unwrap_or_default())?;
    if open.len() > DEEPEST {
        return Err(format!("elements are nested more than {DEEPEST} deep"));
    }
    let (element, is_empty) = element(tag)?;
    let name = element.name.clone();
    open.push(element);
    if is_empty {
        close(open, &name)?;
    }
    Ok(rest)
}

/// Ends the innermost element.
fn close(open: &mut Vec<Element>, name: &str) -> Result<(), String> {
    let ended = open.pop().filter(|element| element.name == name);
    let mut ended = ended.ok_or_else(|| format!("</{name}> ends something else"))?;
    let text = ended.text.trim().to_owned();
    ended.text = text;
    let parent = open.last_mut().ok_or("an end without its beginning")?;
    parent.children.push(ended);
    Ok(())
}

fn until<'a>(text: &'a str, end: &str) -> Result<(&'a str, &'a str), String> {
    text.split_once(end)
        .ok_or_else(|| format!("expected {end}"))
}

/// A tag up to its `>`, which may also stand in an attribute.
fn tag(text: &str) -> Result<(&str, &str), String> {
    let mut quote = None;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (None, '>') => {
                let (tag, rest) = text.split_at(at);
                return Ok((tag, rest.get(1..).unwrap_or_default()));
            }
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
    }
    Err("expected >".to_owned())
}

/// The element that a tag begins, and whether it ends it too.
fn element(tag: &str) -> Result<(Element, bool), String> {
    let (tag, is_empty) = match tag.strip_suffix('/') {
        Some(tag) => (tag, true),
        None => (tag, false),
    };
    let (name, mut rest) = tag.split_at(tag.find(char::is_whitespace).unwrap_or(tag.len()));
    if name.is_empty() {
        return Err("an element without a name".to_owned());
    }
    let mut element = Element {
        name: local_name(name).to_owned(),
        ..Element::default()
    };
    while !rest.trim_start().is_empty() {
        let wrong = || format!("<{name}> has an attribute without a value");
        let (key, value) = rest.split_once('=').ok_or_else(wrong)?;
        let value = value.trim_start();
        let quote = value.chars().next().filter(|c| ['"', '\''].contains(c));
        let quote = quote.ok_or_else(wrong)?;
        let value = value.get(1..).unwrap_or_default();
        let (value, after) = value.split_once(quote).ok_or_else(wrong)?;
        let (key, value) = (key.trim(), unescape(value)?);
        let name = local_name(key);
        if name == key || !element.attributes.contains_key(name) {
            element.attributes.insert(name.to_owned(), value);
        }
        rest = after;
    }
    Ok((element, is_empty))
}

fn local_name(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, name)| name)
}

fn unescape(text: &str) -> Result<String, String> {
    let mut parts = text.split('&');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let wrong = || format!("\"&{part}\" is no character");
        let (entity, rest) = part.split_once(';').ok_or_else(wrong)?;
        let number = |digits: &str, radix| u32::from_str_radix(digits, radix).ok();
        let character = match entity {
            "amp" => Some('&'),
            "lt" => Some('<'),
            "gt" => Some('>'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            other => {
                let code = match other.strip_prefix("#x") {
                    Some(digits) => number(digits, 16),
                    None => other
                        .strip_prefix('#')
                        .and_then(|digits| number(digits, 10)),
                };
                code.and_then(char::from_u32)
            }
        };
        plain.push(character.ok_or_else(wrong)?);
        plain.push_str(rest);
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FAULT: &str = r#"<?xml version="1.0"?>
<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/">
 <!-- not <this> -->
 <soapenv:Body><soapenv:Fault>
  <faultstring>The session is not authenticated &amp; more.</faultstring>
  <detail><NotAuthenticatedFault xsi:type="NotAuthenticated" note='a > b'><object type="Folder">group-d1</object></NotAuthenticatedFault></detail>
 </soapenv:Fault></soapenv:Body>
</soapenv:Envelope>
"#;

    #[test]
    fn an_envelope_is_read_without_its_namespaces() {
        let envelope = Element::parse(FAULT.as_bytes()).unwrap();
        assert_eq!(envelope.name, "Envelope");
        let fault = envelope.at("Body/Fault").unwrap();
        let said = fault.text_at("faultstring");
        assert_eq!(said, Some("The session is not authenticated & more."));
        let detail = fault.at("detail/NotAuthenticatedFault").unwrap();
        assert_eq!(detail.attributes["type"], "NotAuthenticated");
        assert_eq!(detail.attributes["note"], "a > b");
        assert_eq!(detail.text_at("object"), Some("group-d1"));
        assert_eq!(fault.text_at("faultcode"), None);
        assert_eq!(fault.text_at("detail"), None, "only elements are in it");
    }

    #[test]
    fn values_lists_and_empty_elements_are_distinguished() {
        let text = "<r><n> 7 </n><s><i>a</i></s><s/><s><i>b</i><i><![CDATA[<c>]]></i></s><e></e>\
                    <x>&#65;&#x42;&lt;</x></r>";
        let root = Element::parse(text.as_bytes()).unwrap();
        assert_eq!(root.value_at::<u16>("n"), Ok(7));
        let items: Vec<_> = root.all_at("s/i").map(|item| item.text.as_str()).collect();
        assert_eq!(items, ["a", "b", "<c>"]);
        assert_eq!(root.text_at("x"), Some("AB<"));
        assert!(root.at("e").is_some() && root.text_at("e").is_none());
        let missing = root.value_at::<u16>("e").unwrap_err();
        assert_eq!(missing, "<r> has no e");
        let wrong = root.value_at::<u16>("x").unwrap_err();
        assert_eq!(wrong, "<r> has \"AB<\" as its x");
    }

    #[test]
    fn of_two_attributes_the_one_without_a_namespace_counts() {
        for text in ["<a type='x' i:type='y'/>", "<a i:type='y' type='x'/>"] {
            let element = Element::parse(text.as_bytes()).unwrap();
            assert_eq!(element.attributes["type"], "x", "{text}");
        }
    }

    #[test]
    fn what_is_no_document_is_refused() {
        let deep = "<a>".repeat(DEEPEST + 1) + &"</a>".repeat(DEEPEST + 1);
        for (text, why) in [
            ("", "expected one element"),
            ("{}", "expected one element"),
            ("<a/><b/>", "expected one element"),
            ("<a><b></a>", "</a> ends something else"),
            ("<a><b>", "<a> <b> has no end"),
            ("</a>", "</a> ends something else"),
            ("<a", "expected >"),
            ("< a/>", "an element without a name"),
            ("<a b/>", "<a> has an attribute without a value"),
            ("<a>&nbsp;</a>", "\"&nbsp;\" is no character"),
            (
                "<!DOCTYPE a [<!ENTITY b \"c\">]><a/>",
                "document types are refused",
            ),
            (&deep, "elements are nested more than 64 deep"),
        ] {
            assert_eq!(
                Element::parse(text.as_bytes()),
                Err(why.to_owned()),
                "{text}"
            );
        }
        assert!(Element::parse(b"<a>\xff</a>").is_err());
    }

    proptest! {
        #[test]
        fn what_is_escaped_reads_as_it_was(text in "[ -~äß]{0,40}") {
            let document = format!("<a b=\"{0}\">{0}</a>", escape(&text));
            let read = Element::parse(document.as_bytes()).unwrap();
            prop_assert_eq!(&read.attributes["b"], &text);
            prop_assert_eq!(read.text, text.trim());
        }

        #[test]
        fn what_is_printed_reads_as_it_was(text in "[ -~äß]{0,20}", value in "[ -~äß]{0,20}") {
            let child = Element::of("c", text.trim()).attribute("x", &*value);
            let element = Element::new("a").with(child.clone()).with_all([Element::new("d"), child]);
            let read = Element::parse(element.to_string().as_bytes());
            prop_assert_eq!(read, Ok(element));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "[<>/!?\\[\\]&;#x=\"' a:é-]{0,60}") {
            let _ = Element::parse(text.as_bytes());
        }
    }
}
