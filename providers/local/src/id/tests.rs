use proptest::prelude::*;

use super::*;

#[test]
fn only_the_one_spelling_is_read() {
    for text in [
        "local://",
        "local://demo",
        "local://demo/",
        "local:///7",
        "local://demo/x",
        "local://demo/-1",
        "local://demo/+7",
        "local://demo/007",
        "local://demo/7/8",
        "local://demo/99999999999999999999",
    ] {
        let error = text.parse::<LocalId>().unwrap_err();
        assert!(matches!(error, IdError::Malformed(_)), "{text}");
    }
    for text in ["", "demo/7", "locals://demo/7", "hcloud://7"] {
        let error = text.parse::<LocalId>().unwrap_err();
        assert!(matches!(error, IdError::Foreign(_)), "{text}");
    }
}

proptest! {
    #[test]
    fn printing_and_reading_gives_the_same_id(project in "[!-.0-~]{1,20}", machine: u64) {
        let id = LocalId::new(project, machine);
        prop_assert_eq!(id.to_string().parse::<LocalId>(), Ok(id.clone()));
        prop_assert_eq!(LocalId::read(&id.provider_id()), Ok(id));
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,40}") {
        if let Ok(id) = text.parse::<LocalId>() {
            prop_assert_eq!(id.to_string(), text);
        }
    }
}
