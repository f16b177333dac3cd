//! Path templates such as `/servers/{id}`, filled with values that cannot change the path.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but the characters that never need encoding.
pub(crate) const STRICT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A value for `{name}`.
#[derive(Clone, PartialEq)]
pub(crate) struct Param {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    pub(crate) keep_slashes: bool,
}

/// The path, or which parameter does not fit.
pub(crate) fn fill(template: &str, params: &[Param]) -> Result<String, String> {
    if !template.starts_with('/') {
        return Err(format!("path {template:?} must start with a slash"));
    }
    let mut path = String::with_capacity(template.len() + 32);
    let mut used = 0;
    let mut rest = template;
    while let Some((before, from_name)) = rest.split_once('{') {
        let (name, after) = from_name
            .split_once('}')
            .ok_or_else(|| format!("path {template:?} has an unclosed brace"))?;
        let param = params
            .iter()
            .find(|param| param.name == name)
            .ok_or_else(|| format!("path {template:?} lacks a value for {{{name}}}"))?;
        path.push_str(before);
        path.push_str(&param.encoded(template)?);
        used += 1;
        rest = after;
    }
    if used < params.len() {
        return Err(format!(
            "path {template:?} takes {used} values, {} were given",
            params.len()
        ));
    }
    path.push_str(rest);
    Ok(path)
}

impl Param {
    fn encoded(&self, template: &str) -> Result<String, String> {
        let segments: Vec<&str> = if self.keep_slashes {
            self.value.split('/').collect()
        } else {
            vec![&self.value]
        };
        // A server would resolve these to another resource.
        if segments
            .iter()
            .any(|segment| matches!(*segment, "" | "." | ".."))
        {
            return Err(format!(
                "path {template:?}: {:?} cannot stand for {{{}}}",
                self.value, self.name
            ));
        }
        let encoded: Vec<String> = segments
            .iter()
            .map(|segment| utf8_percent_encode(segment, STRICT).to_string())
            .collect();
        Ok(encoded.join("/"))
    }
}
