use super::*;

#[test]
fn all_annotations_stand_under_the_prefix_and_say_what_they_do() {
    for doc in docs() {
        assert!(doc.name.starts_with(PREFIX), "{}", doc.name);
        assert!(doc.help.ends_with('.'), "{}", doc.name);
    }
}
