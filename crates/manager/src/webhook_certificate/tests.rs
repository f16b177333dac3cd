use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use super::*;

fn names() -> Vec<String> {
    names_of(&WebhookService {
        namespace: "kube-system".to_owned(),
        name: "cloudkeel-webhook".to_owned(),
    })
}

fn day(number: i64) -> Timestamp {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    start + SignedDuration::from_hours(24 * number)
}

fn pems(bundle: &[u8]) -> usize {
    let text = std::str::from_utf8(bundle).unwrap();
    text.matches("BEGIN CERTIFICATE").count()
}

#[test]
fn a_certificate_is_made_once_and_renewed_before_it_expires_with_both_trusted_meanwhile() {
    let mut secret = Secret::default();
    let first = Stored::of(&secret)
        .renewed(&names(), day(0))
        .unwrap()
        .unwrap();
    first.write_to(&mut secret);
    let stored = Stored::of(&secret);
    assert_eq!(stored, first, "what is written is read");
    assert_eq!(pems(&stored.bundle(day(0))), 1);
    assert_eq!(stored.renewed(&names(), day(200)).unwrap(), None);

    let second = stored.renewed(&names(), day(260)).unwrap().unwrap();
    assert_ne!(second.current, first.current);
    assert_eq!(
        pems(&second.bundle(day(260))),
        2,
        "a replica may still serve the first"
    );
    assert_eq!(pems(&second.bundle(day(400))), 1, "the first has expired");
    second.write_to(&mut secret);
    assert_eq!(
        Stored::of(&secret).renewed(&names(), day(260)).unwrap(),
        None
    );
}

#[test]
fn what_cannot_be_served_is_made_anew() {
    let good = Stored::default()
        .renewed(&names(), day(0))
        .unwrap()
        .unwrap();
    let other = vec!["other.kube-system.svc".to_owned()];
    assert!(
        good.renewed(&other, day(0)).unwrap().is_some(),
        "another Service"
    );
    let mut broken = Secret::default();
    good.write_to(&mut broken);
    let data = broken.data.as_mut().unwrap();
    data.insert("tls.key".to_owned(), ByteString(b"no key".to_vec()));
    assert_eq!(Stored::of(&broken).current, None);
}
