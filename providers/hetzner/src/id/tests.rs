use proptest::prelude::*;

use super::*;

#[test]
fn every_form_that_was_ever_written_is_read() {
    for (text, id) in [
        ("hcloud://42", HetznerId::Cloud(42)),
        ("hrobot://321", HetznerId::Robot(321)),
        ("hcloud://bm-321", HetznerId::Robot(321)),
    ] {
        assert_eq!(text.parse(), Ok(id), "{text}");
    }
}

#[test]
fn what_cannot_be_read_says_why() {
    type Why = fn(String) -> IdError;
    for (text, why, said) in [
        ("", IdError::Foreign as Why, "begins neither"),
        ("42", IdError::Foreign, "begins neither"),
        (
            "aws:///eu-west-1a/i-0abc",
            IdError::Foreign,
            "begins neither",
        ),
        ("hclouds://42", IdError::Foreign, "begins neither"),
        ("hcloud:/42", IdError::Foreign, "begins neither"),
        ("hcloud://", IdError::Malformed, "has nothing behind"),
        ("hrobot://", IdError::Malformed, "has nothing behind"),
        ("hcloud://bm-", IdError::Malformed, "has nothing behind"),
        (
            "hcloud://my-server",
            IdError::Malformed,
            "expected `hcloud://<number>`",
        ),
        (
            "hcloud://42/1",
            IdError::Malformed,
            "expected `hcloud://<number>`",
        ),
        (
            "hcloud://-42",
            IdError::Malformed,
            "expected `hcloud://<number>`",
        ),
        (
            "hcloud://+42",
            IdError::Malformed,
            "expected `hcloud://<number>`",
        ),
        (
            "hcloud://042",
            IdError::Malformed,
            "expected `hcloud://<number>`",
        ),
        (
            "hcloud://9223372036854775808",
            IdError::Malformed,
            "expected `hcloud://<number>`",
        ),
        (
            "hrobot://bm-42",
            IdError::Malformed,
            "expected `hcloud://<number>`",
        ),
        (
            "hcloud://bm-x",
            IdError::Malformed,
            "expected `hcloud://<number>`",
        ),
    ] {
        let error = text.parse::<HetznerId>().unwrap_err();
        assert_eq!(error, why(error.to_string()), "{text}");
        assert!(error.to_string().contains(said), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn printing_and_reading_gives_the_same_id(number in 0..i64::MAX as u64, robot: bool) {
        let id = if robot { HetznerId::Robot(number) } else { HetznerId::Cloud(number) };
        prop_assert_eq!(id.to_string().parse::<HetznerId>(), Ok(id));
        prop_assert_eq!(HetznerId::read(&id.provider_id()), Ok(id));
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "(hcloud://|hrobot://|hcloud://bm-)?.{0,30}") {
        let _ = text.parse::<HetznerId>();
    }
}
