use super::*;

fn read(output: &str) -> Tests {
    let mut log = TestLog::default();
    output.lines().for_each(|line| log.read(line));
    log.finish()
}

const OK: &str =
    "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
const FAILED: &str = "test result: FAILED. 2 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s";

#[test]
fn result_lines_are_summed_and_everything_else_is_prose() {
    for (case, output, expected) in [
        ("nothing", String::new(), (0, 0)),
        ("one program", format!("running 3 tests\ntest a ... ok\n\n{OK}\n"), (3, 0)),
        ("two", format!("running 3 tests\n{OK}\nrunning 6 tests\n{FAILED}"), (5, 4)),
        ("an empty program", "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.00s".to_owned(), (0, 0)),
        ("quoted by a test", format!("  left: \"{OK}\"\nsaid: {OK}"), (0, 0)),
        ("cut short", "test result: ok. 3 passed; 0 fai".to_owned(), (0, 0)),
        ("in colour", format!("running 1 test\n{}", OK.replace("ok", "\x1b[32mok\x1b[m")), (3, 0)),
        ("windows line ends", format!("running 1 test\r\n{OK}\r\n"), (3, 0)),
        ("died before its result", format!("running 4 tests\ntest a ... ok\nrunning 3 tests\n{OK}"), (3, 1)),
        ("died at the end", "running 1 test\n".to_owned(), (0, 1)),
    ] {
        let tests = read(&output);
        assert_eq!((tests.passed, tests.failed), expected, "{case}");
        assert!(tests.skipped.is_empty(), "{case}: {:?}", tests.skipped);
    }
}

#[test]
fn a_test_that_another_tier_runs_is_no_gap_and_every_other_ignored_one_is() {
    let tests = read(
        "running 5 tests\n\
         test page::clicks ... ignored, needs Chromium: cargo xtask test --tier page\n\
         test the_manager ... ignored, not a test: the process that tests start\n\
         test nodes ... ignored, needs root\n\
         test old ... ignored\n\
         test result: ok. 0 passed; 0 failed; 5 ignored; 0 measured; 0 filtered out\n",
    );
    assert_eq!(tests.elsewhere, 2);
    let reasons: Vec<_> = tests
        .skipped
        .iter()
        .map(|s| (&*s.test, &*s.reason))
        .collect();
    assert_eq!(
        reasons,
        [
            ("nodes", "needs root"),
            ("old", "ignored without a reason"),
            ("a test", "ignored without a reason"),
        ]
    );
}

#[test]
fn a_failure_with_an_unmet_requirement_is_a_skipped_test_and_others_stay_failures() {
    let tests = read(
        "running 3 tests\n\
         test a ... FAILED\n\
         test b ... FAILED\n\
         test c ... ok\n\n\
         successes:\n\n\
         ---- c stdout ----\n\
         unmet requirement: that it can do without\n\n\
         failures:\n\n\
         ---- a stdout ----\n\
         unmet requirement: etcd, or Go to build it\n\
         unmet requirement: kube-apiserver, or Go to build it\n\
         thread 'a' panicked\n\n\
         ---- b stdout ----\n\
         thread 'b' panicked: unmet requirement: is not at the start of the line\n\n\
         failures:\n    a\n    b\n\n\
         test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n",
    );
    assert_eq!((tests.passed, tests.failed), (1, 1));
    let skipped = Skipped {
        test: "a".to_owned(),
        reason: "needs etcd, or Go to build it".to_owned(),
    };
    assert_eq!((tests.skipped, tests.unmet), (vec![skipped], 1));
}

#[test]
fn what_else_was_counted_is_kept() {
    let tests = read(&format!("running 3 tests\ncounted: 24 seeds\n{OK}\n"));
    assert_eq!(tests.counted, ["24 seeds"]);
}
