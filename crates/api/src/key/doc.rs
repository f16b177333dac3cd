//! The documentation that a key prints about itself.

use std::fmt::Write as _;

use serde::Serialize;

/// Where a key is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum KeyPlace {
    /// On a Service or Node.
    Annotation,
    /// In the configuration of a cloud.
    Config,
    /// In the environment.
    Env,
    /// In the file of `--cloud-config`, in the form of the Go CCM.
    File,
    /// On the command line.
    Flag,
}

/// One row of the reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyDoc {
    /// Where it is written.
    pub place: KeyPlace,
    /// Its full name.
    pub name: &'static str,
    /// The type of its value.
    pub value_type: &'static str,
    /// The words that its value may be, if it is one of a few.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub choices: &'static [&'static str],
    /// The lowest and the highest number that its value may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<(u64, u64)>,
    /// Its default; `None` if there is none.
    pub default: Option<&'static str>,
    /// Whether it must be given.
    pub required: bool,
    /// Whether its value is never shown.
    pub secret: bool,
    /// What it does, as a sentence.
    pub help: &'static str,
}

/// Anything that can describe itself as a row of the reference.
pub trait Documented: Sync {
    /// The row.
    fn doc(&self) -> KeyDoc;
}

/// A Markdown table of keys, in the order given.
pub fn reference_table(docs: &[KeyDoc]) -> String {
    let mut table = String::from("| key | type | default | meaning |\n|---|---|---|---|\n");
    for doc in docs {
        let default = match (doc.required, doc.default) {
            (true, _) => "required".to_owned(),
            (false, Some(default)) => format!("`{}`", escape(default)),
            (false, None) => "–".to_owned(),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            table,
            "| `{}` | {} | {default} | {} |",
            escape(doc.name),
            doc.value_type,
            escape(doc.help)
        );
    }
    table
}

fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_row_per_key_and_survives_pipes() {
        let doc = KeyDoc {
            place: KeyPlace::Config,
            name: "mode",
            value_type: "text",
            choices: &[],
            range: None,
            default: Some("a|b"),
            required: false,
            secret: false,
            help: "One of a | b.",
        };
        let required = KeyDoc {
            name: "token",
            required: true,
            default: None,
            ..doc.clone()
        };
        let optional = KeyDoc {
            name: "network",
            default: None,
            ..doc.clone()
        };
        let table = reference_table(&[doc, required, optional]);
        let rows: Vec<_> = table.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| `mode` | text | `a\\|b` | One of a \\| b. |",
                "| `token` | text | required | One of a \\| b. |",
                "| `network` | text | – | One of a \\| b. |",
            ]
        );
    }
}
