use proptest::prelude::*;

use super::*;

const VCENTER: &str = "56492e42-22ad-3911-6d72-59cc8f26bc90";
const GUEST: &str = "422e4956-ad22-1139-6d72-59cc8f26bc90";

fn read(text: &str) -> Result<String, IdError> {
    VmUuid::read(&text.parse().unwrap()).map(|uuid| uuid.to_string())
}

#[test]
fn an_id_is_read_in_every_form_that_was_ever_written() {
    for text in [
        format!("vsphere://{VCENTER}"),
        format!("vsphere://{}", VCENTER.to_uppercase()),
        VCENTER.to_owned(),
    ] {
        assert_eq!(read(&text).unwrap(), VCENTER, "{text}");
    }
    let uuid = VmUuid::parse(VCENTER).unwrap();
    assert_eq!(uuid.provider_id().as_str(), format!("vsphere://{VCENTER}"));
}

#[test]
fn what_is_no_uuid_is_malformed_and_another_cloud_is_foreign() {
    let simple = VCENTER.replace('-', "");
    for (text, is_malformed) in [
        ("vsphere://".to_owned(), true),
        ("vsphere://node-1".to_owned(), true),
        (format!("vsphere://{simple}"), true),
        (format!("vsphere://{{{VCENTER}}}"), true),
        (format!("vsphere:///{VCENTER}"), true),
        (format!("hcloud://{VCENTER}"), false),
        (format!("openstack:///{VCENTER}"), false),
        ("node-1".to_owned(), false),
    ] {
        let error = read(&text).unwrap_err();
        let found = matches!(error, IdError::Malformed(_));
        assert_eq!(found, is_malformed, "{text}: {error}");
        assert!(error.to_string().contains(&text), "{error}");
    }
}

#[test]
fn both_byte_orders_name_the_same_machine() {
    let (ours, guests) = (
        VmUuid::parse(VCENTER).unwrap(),
        VmUuid::parse(GUEST).unwrap(),
    );
    assert_eq!(ours.swapped().to_string(), GUEST);
    assert_eq!(guests.swapped().to_string(), VCENTER);
    assert_eq!(ours, guests);
    assert_eq!(ours.cmp(&guests), Ordering::Equal);
    let other = VmUuid::parse("56492e42-22ad-3911-6d72-59cc8f26bc91").unwrap();
    assert_ne!(ours, other);
}

proptest! {
    #[test]
    fn swapping_twice_changes_nothing(bytes: [u8; 16]) {
        let uuid = VmUuid(Uuid::from_bytes(bytes));
        prop_assert_eq!(uuid.swapped().swapped().0, uuid.0);
        prop_assert_eq!(uuid.swapped(), uuid);
    }
}
