//! How a cloud's lists look on the wire, so that faults can make them wrong.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::xml::{Which, without};

/// What goes wrong with a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ListFault {
    /// A page has fewer items than its total announces.
    TruncatedPage,
    /// A page says that it is the last, while its total says otherwise.
    LostNextPage,
    /// A list is empty and says that there is nothing.
    EmptyList,
}

/// Where items, totals and links stand in the lists of an API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListShape {
    /// Lists in JSON. The items are the first array of the document, or of its object of the same depth.
    Json {
        /// A pointer that only lists have, such as `/meta/pagination`. Empty: whatever has an array is a list.
        is_list: &'static str,
        /// Pointers to links, markers and numbers of the next page, which are null or absent on the last one.
        next: &'static [&'static str],
        /// Pointers to totals.
        totals: &'static [&'static str],
        /// Pointers to numbers of the last page.
        last_page: &'static [&'static str],
    },
    /// Lists in XML.
    Xml {
        /// The element of an item.
        item: &'static str,
        /// The element that leads to the next page.
        next: &'static str,
    },
}

impl ListShape {
    /// Whatever has an array is a list, and all of it.
    pub const PLAIN_JSON: Self = Self::Json {
        is_list: "",
        next: &[],
        totals: &[],
        last_page: &[],
    };

    /// Whether lists say how long they are.
    pub(super) const fn announces_totals(&self) -> bool {
        matches!(self, Self::Json { totals, .. } if !totals.is_empty())
    }

    /// A body with its list made wrong; `None` if it is no list of this shape.
    pub fn corrupt(&self, body: &[u8], how: ListFault) -> Option<Vec<u8>> {
        match self {
            Self::Json { .. } => {
                let mut value = serde_json::from_slice(body).ok()?;
                self.corrupt_json(&mut value, how)?;
                serde_json::to_vec(&value).ok()
            }
            Self::Xml { item, next } => {
                let text = std::str::from_utf8(body).ok()?;
                let text = match how {
                    ListFault::TruncatedPage => without(text, item, Which::Last),
                    ListFault::LostNextPage => without(text, next, Which::All),
                    ListFault::EmptyList => {
                        without(&without(text, item, Which::All), next, Which::All)
                    }
                };
                Some(text.into_bytes())
            }
        }
    }

    fn corrupt_json(&self, value: &mut Value, how: ListFault) -> Option<()> {
        let Self::Json {
            is_list,
            next,
            totals,
            last_page,
        } = self
        else {
            return None;
        };
        // A bare array has neither links nor totals, whatever else the API answers with.
        if !value.is_array() {
            value.pointer(is_list)?;
        }
        let items = match value {
            Value::Array(items) => items,
            Value::Object(fields) => fields.values_mut().find_map(Value::as_array_mut)?,
            _ => return None,
        };
        match how {
            ListFault::TruncatedPage => {
                items.pop();
            }
            ListFault::EmptyList => items.clear(),
            ListFault::LostNextPage => {}
        }
        let mut set = |pointers: &[&str], to: &Value| {
            for pointer in pointers {
                if let Some(place) = value.pointer_mut(pointer) {
                    place.clone_from(to);
                }
            }
        };
        if how != ListFault::TruncatedPage {
            set(next, &Value::Null);
        }
        if how == ListFault::EmptyList {
            set(totals, &json!(0));
            set(last_page, &json!(1));
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGED: ListShape = ListShape::Json {
        is_list: "/page",
        next: &["/page/next"],
        totals: &["/page/total"],
        last_page: &[],
    };

    #[test]
    fn a_list_is_wrong_in_every_way_and_nothing_else_is() {
        let list = json!({"items": [1, 2], "page": {"next": "x", "total": 4}}).to_string();
        let xml = "<r><set><item>1</item><item>2</item></set><nextToken>t</nextToken></r>";
        let in_xml = ListShape::Xml {
            item: "item",
            next: "nextToken",
        };
        for (shape, body, how, expected) in [
            (
                PAGED,
                list.as_str(),
                ListFault::TruncatedPage,
                r#"{"items":[1],"page":{"next":"x","total":4}}"#,
            ),
            (
                PAGED,
                &list,
                ListFault::LostNextPage,
                r#"{"items":[1,2],"page":{"next":null,"total":4}}"#,
            ),
            (
                PAGED,
                &list,
                ListFault::EmptyList,
                r#"{"items":[],"page":{"next":null,"total":0}}"#,
            ),
            (PAGED, "[1,2]", ListFault::TruncatedPage, "[1]"),
            (
                ListShape::PLAIN_JSON,
                r#"{"a":[1]}"#,
                ListFault::EmptyList,
                r#"{"a":[]}"#,
            ),
            (
                in_xml,
                xml,
                ListFault::TruncatedPage,
                "<r><set><item>1</item></set><nextToken>t</nextToken></r>",
            ),
            (
                in_xml,
                xml,
                ListFault::LostNextPage,
                "<r><set><item>1</item><item>2</item></set></r>",
            ),
            (in_xml, xml, ListFault::EmptyList, "<r><set></set></r>"),
        ] {
            let corrupt = shape.corrupt(body.as_bytes(), how).unwrap();
            assert_eq!(String::from_utf8(corrupt).unwrap(), expected, "{how:?}");
        }
        for body in [r#"{"tags":[1]}"#, "7", "no JSON"] {
            let corrupt = PAGED.corrupt(body.as_bytes(), ListFault::EmptyList);
            assert_eq!(corrupt, None, "{body}");
        }
    }
}
