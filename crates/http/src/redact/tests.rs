use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Found by the fuzzer: in quadratic time, this text takes minutes.
#[test]
fn a_long_text_of_many_assignments_is_read_once() {
    for part in ["a: ", "<a:", "<a", "<password/>", "<a><b>"] {
        let text = part.repeat(100_000);
        assert_eq!(Redactor::default().text(&text), text);
    }
    for part in ["<password", "<password>"] {
        let text = part.repeat(100_000);
        assert!(Redactor::default().text(&text).len() < 30, "{part}");
    }
}

#[test]
fn names_are_recognized_in_any_spelling() {
    let redactor = Redactor::with_fields(["recovery_phrase"]);
    for name in [
        "password",
        "X-Auth-Token",
        "x-subject-token",
        "clientSecret",
        "client_secret",
        "Authorization",
        "Proxy-Authorization",
        "Set-Cookie",
        "api-key",
        "sig",
        "adminPass",
        "application_credential",
        "RecoveryPhrase",
        "X-Amz-Security-Token",
        "X-Amz-Signature",
        "vmware-api-session-id",
        "Cookie",
    ] {
        assert!(redactor.is_secret(name), "{name}");
    }
    for name in [
        "id",
        "name",
        "key",
        "design",
        "status",
        "author",
        "passenger",
        "X-Request-Id",
    ] {
        assert!(!redactor.is_secret(name), "{name}");
    }
}

#[test]
fn json_is_redacted_however_deep() {
    let shown = Redactor::default().json(&json!({
        "auth": 1,
        "server": {"id": 7, "adminPass": "hunter2", "meta": [{"token": {"deep": "hunter2"}}]},
        "note": "password=hunter2&user=joe",
    }));
    assert_eq!(
        shown,
        json!({
            "auth": REDACTED,
            "server": {"id": 7, "adminPass": REDACTED, "meta": [{"token": REDACTED}]},
            "note": "password=[redacted]&user=joe",
        })
    );
}

#[test]
fn text_is_redacted_in_every_notation() {
    for (given, expected) in [
        ("password=hunter2&a=b", "password=[redacted]&a=b"),
        (
            r#"{"password":"hunter2","a":"b"}"#,
            r#"{"password":"[redacted]","a":"b"}"#,
        ),
        (
            r#"{"password" : "hun\"ter2","a":1}"#,
            r#"{"password" : "[redacted]","a":1}"#,
        ),
        (r#"{"password":"hunter2"#, r#"{"password":"[redacted]"#),
        (r#"{"token":{"id":"hunter2"},"#, r#"{"token":[redacted]"#),
        (
            r#"{"m":"{\"secret\":\"hunter2\",\"a\":1}"#,
            r#"{"m":"{\"secret\":\"[redacted]\",\"a\":1}"#,
        ),
        ("Authorization: Bearer hunter2", "Authorization: [redacted]"),
        (
            "X-Auth-Token: hunter2\nAccept: x",
            "X-Auth-Token: [redacted]\nAccept: x",
        ),
        (
            "see https://joe:hunter2@host/x",
            "see https://[redacted]@host/x",
        ),
        ("no secret here: x=1", "no secret here: x=1"),
        (
            "<password>hunter2</password><a>b</a>",
            "<password>[redacted]</password><a>b</a>",
        ),
        (
            r#"<v:password xsi:type="s">hunter2</v:password>"#,
            r#"<v:password xsi:type="s">[redacted]</v:password>"#,
        ),
        (
            "<Credentials><Key>hunter2</Key></Credentials><a>b</a>",
            "<Credentials>[redacted]</Credentials><a>b</a>",
        ),
        ("<password>hunter2", "<password>[redacted]"),
        ("<password hunter2", "<password[redacted]"),
        ("<password/><a>b</a>", "<password/><a>b</a>"),
        (
            "vmware_soap_session=hunter2; x",
            "vmware_soap_session=[redacted]; x",
        ),
        ("", ""),
    ] {
        assert_eq!(Redactor::default().text(given), expected, "{given}");
    }
}

#[test]
fn what_stands_under_secret_names_is_found_as_it_may_be_repeated() {
    let text = "<v:password>a&amp;b-hunter2</v:password> password=plain <Credentials><Id>one\
                </Id><Key>two</Key></Credentials> <name>joe</name>";
    let found = Redactor::default().secrets_in(text);
    for secret in ["a&amp;b-hunter2", "a&b-hunter2", "plain", "one", "two"] {
        assert!(
            found.iter().any(|value| value == secret),
            "{secret}: {found:?}"
        );
    }
    assert!(!found.iter().any(|value| value == "joe"), "{found:?}");
}

#[test]
fn urls_are_redacted_but_stay_readable() {
    for (given, expected) in [
        (
            "https://token:5000/v3?page=2",
            "https://token:5000/v3?page=2",
        ),
        ("https://joe:hunter2@host/", "https://[redacted]@host/"),
        (
            "https://h/x?sig=hunter2&a=b",
            "https://h/x?sig=[redacted]&a=b",
        ),
        ("/x?api%5Fkey=hunter2", "/x?api%5Fkey=[redacted]"),
        ("https://h/x?a=b#access_token=hunter2", "https://h/x?a=b"),
        ("not a url", "not a url"),
    ] {
        assert_eq!(Redactor::default().url(given), expected);
    }
}

#[test]
fn a_body_that_is_too_big_to_be_parsed_is_redacted_as_text() {
    let numbers = "0,".repeat(MAX_PARSED_BYTES);
    let body = format!(r#"{{"pad":[{numbers}0],"password":"hunter2"}}"#);
    let (redactor, sent_secrets) = (
        Redactor::default(),
        SentSecrets::new(vec!["s3cr3t".to_owned()]),
    );
    let shown = redactor.body(body.as_bytes(), &sent_secrets, usize::MAX);
    assert!(shown.starts_with(r#"{"pad":[0,0"#), "{}", &shown[..50]);
    assert!(!shown.contains("hunter2"));
    let shown = redactor.body(format!("s3cr3t {body}").as_bytes(), &sent_secrets, 20);
    assert_eq!(shown, "[redacted] {\"pad\":[0…");
}

#[test]
fn excerpts_are_short_and_on_one_line() {
    assert_eq!(excerpt("a\nb\u{7}", 10), "a b ");
    assert_eq!(excerpt("äöü", 2), "äö…");
    assert_eq!(excerpt("äöü", 3), "äöü");
}

proptest! {
    #[test]
    fn no_text_makes_the_redactor_panic(text in any::<String>(), bytes in any::<Vec<u8>>()) {
        let redactor = Redactor::default();
        redactor.text(&text);
        redactor.url(&text);
        prop_assert!(redactor.body(&bytes, &SentSecrets::default(), 50).chars().count() <= 51);
    }

    #[test]
    fn a_secret_never_survives_between_arbitrary_text(
        before in "[a-z {}:,\"\\\\=&?/@]{0,30}",
        after in "[a-z {}:,\"\\\\=&?/@]{0,30}",
        notation in prop::sample::select(vec![
            "password=HUNTER2&", "\"token\":\"HUNTER2\"", "secret: HUNTER2\n", "'api_key': 'HUNTER2'",
            "<password>HUNTER2</password>", "<x:token a='b'>HUNTER2</x:token>",
        ]),
    ) {
        // A quoting or naming character before the name would make it part of another word.
        let text = format!("{before} {notation}{after}");
        let shown = Redactor::default().text(&text);
        prop_assert!(!shown.contains("HUNTER2"), "{text} became {shown}");
    }
}
