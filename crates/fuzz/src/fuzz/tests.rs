use super::*;
use crate::target::Reader;
use crate::watch_panics;

/// Within so many rounds every planted bug is found.
const ROUNDS: u64 = 5_000;

fn example() -> Vec<Vec<u8>> {
    vec![br#"{"size": 7, "name": "web", "rules": [{"port": 80}]}"#.to_vec()]
}

fn planted(name: &'static str, reader: fn() -> Reader) -> Target {
    let words = || vec!["port".to_owned(), "size".to_owned()];
    Target::new(name, "a bug", example, words, reader)
}

fn find(target: Target) -> Option<Found> {
    watch_panics();
    let span = Span {
        seed: 1,
        rounds: ROUNDS,
    };
    fuzz(target, span, &mut |_, _| ControlFlow::Continue(())).1
}

fn field(input: &[u8], name: &str) -> Option<serde_json::Value> {
    let value: serde_json::Value = serde_json::from_slice(input).ok()?;
    value.get(name).cloned()
}

#[test]
fn planted_bugs_are_found_shrunk_and_found_again() {
    let deep = planted("panic behind the parser", || {
        Box::new(|input| {
            if let Some(size) = field(input, "size").and_then(|size| size.as_u64())
                && size > u64::from(u32::MAX)
            {
                panic!("planted: {size}");
            }
            Ok(())
        })
    });
    let found = find(deep).expect("the planted panic");
    assert!(matches!(&found.how, Broken::Panic(what) if what.contains("planted")));
    assert!(found.input.len() < 40, "{:?}", found.input);
    let again = Guard::new(deep).read(&found.input);
    assert!(again.is_some_and(|again| again.is_like(&found.how)));

    let property = planted("a property that does not hold", || {
        Box::new(|input| match std::str::from_utf8(input) {
            Ok(text) if text.contains('\0') => Err("NUL: it was let in".to_owned()),
            _ => Ok(()),
        })
    });
    let found = find(property).expect("the broken property");
    assert_eq!(found.how, Broken::Property("NUL: it was let in".to_owned()));
    assert_eq!(found.input, b"\0");

    let slice = planted("a slice in the middle of a letter", || {
        Box::new(|input| {
            let text = String::from_utf8_lossy(input);
            let _ = text.len() > 60 && text[..60].is_empty();
            Ok(())
        })
    });
    let found = find(slice).expect("the slice");
    assert!(matches!(&found.how, Broken::Panic(what) if what.contains("boundary")));
    assert!(find(planted("no bug", || Box::new(|_| Ok(())))).is_none());
}
