use serde_json::json;

use super::*;

fn kind(plural: &str) -> &'static Kind {
    Kind::find("", "v1", plural).unwrap()
}

#[test]
fn labels_are_selected_as_kubernetes_writes_it() {
    let node = json!({"metadata": {"name": "a", "labels": {"zone": "x", "empty": ""}}});
    for (selector, selected) in [
        ("", true),
        ("zone=x", true),
        ("zone==x", true),
        ("zone=y", false),
        ("zone!=y", true),
        ("zone!=x", false),
        ("absent!=x", true),
        ("zone in (x, y)", true),
        ("zone in (y)", false),
        ("zone notin (y,z)", true),
        ("absent notin (y)", true),
        ("zone", true),
        ("absent", false),
        ("!absent", true),
        ("!zone", false),
        ("empty=", true),
        ("zone in (x,y),!absent,empty", true),
        ("zone=x,absent", false),
    ] {
        let selection = Selection::new(kind("nodes"), None, Some(selector), None).unwrap();
        assert_eq!(
            selection.matches(kind("nodes"), &node),
            selected,
            "{selector}"
        );
    }
}

#[test]
fn a_selector_that_cannot_be_read_is_refused() {
    for selector in ["zone in x", "a=b=c", "in (", "!", "zone in ()x", "-a=b"] {
        let refusal = Selection::new(kind("nodes"), None, Some(selector), None).unwrap_err();
        assert_eq!(refusal.code, 400, "{selector}");
    }
}

#[test]
fn fields_are_those_of_the_kind() {
    let service = json!({
        "metadata": {"name": "web", "namespace": "shop"}, "spec": {"type": "LoadBalancer"},
    });
    for (selector, selected) in [
        ("metadata.name=web", true),
        ("metadata.name=web,metadata.namespace=shop", true),
        ("metadata.namespace!=shop", false),
        ("spec.type=LoadBalancer", true),
        ("spec.type==NodePort", false),
    ] {
        let selection = Selection::new(kind("services"), None, None, Some(selector)).unwrap();
        assert_eq!(
            selection.matches(kind("services"), &service),
            selected,
            "{selector}"
        );
    }
    let unknown = Selection::new(kind("services"), None, None, Some("spec.ports=1")).unwrap_err();
    assert_eq!(unknown.message, "field label not supported: spec.ports");
}
