//! The forms in which a credential travels, and could be shown.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Shorter pieces of base64 are found in text by chance.
const SHORTEST: usize = 6;

/// Each credential as it is, encoded for URLs, and in base64, also in the middle of something longer: a header for basic
/// authentication has a user in front of the password.
pub(super) fn encoded_forms(secrets: &[String]) -> Vec<String> {
    let secrets = secrets.iter().filter(|secret| !secret.is_empty());
    secrets.flat_map(|secret| forms_of(secret)).collect()
}

/// What most encoders of URLs replace.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

fn forms_of(secret: &str) -> Vec<String> {
    let mut forms = vec![secret.to_owned()];
    for encoded in [NON_ALPHANUMERIC, RESERVED] {
        let in_url = utf8_percent_encode(secret, encoded);
        let in_lower_case = in_url.clone().map(|piece| match piece.strip_prefix('%') {
            Some(_) => piece.to_lowercase(),
            None => piece.to_owned(),
        });
        forms.extend([in_lower_case.collect(), in_url.to_string()]);
    }
    for before in 0..3 {
        forms.extend(base64_after(before, secret));
    }
    forms.sort_unstable();
    forms.dedup();
    forms
}

/// The characters of base64 that say nothing but the secret, if so many bytes stand in front of it. Each says 6 bits.
fn base64_after(before: usize, secret: &str) -> Vec<String> {
    let mut bytes = vec![0; before];
    bytes.extend(secret.as_bytes());
    let first = (before * 8).div_ceil(6);
    let last = bytes.len() * 8 / 6;
    let inner = |text: String| text.get(first..last).map(str::to_owned);
    let encoded = [
        STANDARD_NO_PAD.encode(&bytes),
        URL_SAFE_NO_PAD.encode(&bytes),
    ];
    let forms = encoded.into_iter().filter_map(inner);
    forms.filter(|form| form.len() >= SHORTEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_found_in_every_form() {
        let secret = "s3cret/p?ss-w\u{f6}rd";
        let forms = encoded_forms(&[secret.to_owned()]);
        let is_found = |text: &str| forms.iter().any(|form| text.contains(form.as_str()));
        for user in ["", "u", "me", "bob", "alice"] {
            let pair = format!("{user}:{secret}\n");
            for text in [STANDARD_NO_PAD.encode(&pair), URL_SAFE_NO_PAD.encode(&pair)] {
                assert!(is_found(&text), "{user}: {text} in {forms:?}");
            }
        }
        for text in [
            "GET /?key=s3cret/p?ss-w\u{f6}rd",
            "key=s3cret%2Fp%3Fss-w%C3%B6rd",
            "key=s3cret%2fp%3fss-w%c3%b6rd",
            "key=s3cret%2Fp%3Fss%2Dw%C3%B6rd",
        ] {
            assert!(is_found(text), "{text} in {forms:?}");
        }
        for text in [
            "s3cret",
            "key=other",
            "Authorization: Basic dXNlcjpvdGhlcg==",
        ] {
            assert!(!is_found(text), "{text} in {forms:?}");
        }
    }
}
