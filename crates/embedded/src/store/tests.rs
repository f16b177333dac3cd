use serde_json::json;

use super::*;

fn change(store: &mut Store, name: &str, after: Option<u32>) {
    let before = store.get("nodes", name).cloned();
    let commit = Commit {
        version: store.next_version(),
        at: Timestamp::UNIX_EPOCH,
        sent_at: Timestamp::UNIX_EPOCH,
        by: "test".into(),
        verb: Verb::Update,
        resource: "nodes",
        subresource: None,
        namespace: String::new(),
        name: name.to_owned(),
        before,
        after: after.map(|value| Arc::new(json!(value))),
    };
    store.commit(name, commit);
}

fn shown(snapshot: &Snapshot) -> Vec<(&str, u64)> {
    let entries = snapshot.iter();
    entries
        .map(|(key, value)| (key.as_str(), value.as_u64().unwrap()))
        .collect()
}

#[test]
fn the_past_is_what_it_was() {
    let mut store = Store::new(100);
    change(&mut store, "a", Some(1));
    change(&mut store, "b", Some(2));
    let then = store.version();
    change(&mut store, "a", Some(3));
    change(&mut store, "b", None);
    change(&mut store, "c", Some(4));
    change(&mut store, "c", None);
    assert_eq!(
        shown(&store.as_of("nodes", then).unwrap()),
        [("a", 1), ("b", 2)]
    );
    assert_eq!(
        shown(&store.as_of("nodes", store.version()).unwrap()),
        [("a", 3)]
    );
    let later: Vec<_> = store
        .since(then)
        .unwrap()
        .map(|commit| commit.version)
        .collect();
    assert_eq!(later, [then + 1, then + 2, then + 3, then + 4]);
}

#[test]
fn what_is_forgotten_is_not_made_up() {
    let mut store = Store::new(2);
    for value in 0..5 {
        change(&mut store, "a", Some(value));
    }
    let now = store.version();
    assert!(store.since(now - 2).is_some());
    assert!(store.since(now - 3).is_none());
    assert!(store.as_of("nodes", now - 3).is_none());
    store.compact();
    assert!(store.since(now - 1).is_none());
    assert_eq!(store.since(now).unwrap().count(), 0);
}
