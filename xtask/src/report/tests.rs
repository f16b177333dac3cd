use super::*;
use crate::workspace::Outcome;

fn tier(name: &'static str, verdict: Verdict, count: (u64, u64, u64), millis: u64) -> TierReport {
    let (passed, failed, ignored) = count;
    let count = Count {
        passed,
        failed,
        ignored,
    };
    TierReport {
        name,
        what: "a tier",
        verdict,
        count,
        time: Duration::from_millis(millis),
    }
}

fn mixed() -> Report {
    Report::new(vec![
        tier("fmt", Verdict::Passed, (1, 0, 0), 840),
        tier(
            "unit",
            Verdict::Failed("2 tests failed".into()),
            (40, 2, 3),
            61_000,
        ),
        tier(
            "integration",
            Verdict::Skipped("needs `go` on PATH".into()),
            (0, 0, 0),
            0,
        ),
    ])
}

#[test]
fn the_table_has_a_row_for_each_tier_and_its_reason() {
    let expected = "\
tier         result   passed  failed  ignored     time
fmt          passed        1       0        0     0.8s
unit         failed       40       2        3    1m01s  2 tests failed
integration  skipped       -       -        -        -  needs `go` on PATH
";
    assert_eq!(mixed().table(Palette::Plain), expected);
}

#[test]
fn colours_do_not_move_the_columns() {
    let coloured = mixed().table(Palette::Colours);
    assert!(
        coloured.contains("\x1b[31mfailed \x1b[0m      40       2"),
        "{coloured}"
    );
    let plain = ["\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"]
        .iter()
        .fold(coloured, |text, code| text.replace(code, ""));
    assert_eq!(plain, mixed().table(Palette::Plain));
}

#[test]
fn the_last_line_names_what_was_skipped_only_if_something_was() {
    let all_green = vec![tier("fmt", Verdict::Passed, (1, 0, 0), 1)];
    let ignored = vec![tier("unit", Verdict::Passed, (5, 0, 2), 1)];
    for (case, report, line) in [
        ("no tier", Report::new(vec![]), "0 passed, 0 failed"),
        ("all green", Report::new(all_green), "1 passed, 0 failed"),
        (
            "ignored tests are skipped",
            Report::new(ignored),
            "5 passed, 0 failed, 2 skipped",
        ),
        (
            "a skipped tier is one more",
            mixed(),
            "41 passed, 2 failed, 4 skipped",
        ),
    ] {
        assert_eq!(report.last_line(), line, "{case}");
    }
}

#[test]
fn every_tier_ends_with_a_line_that_says_how() {
    let lines: Vec<String> = mixed().tiers.iter().map(TierReport::line).collect();
    assert_eq!(
        lines,
        [
            "passed in 0.8s",
            "failed in 1m01s: 2 tests failed",
            "skipped: needs `go` on PATH",
        ]
    );
}

#[test]
fn a_run_failed_if_a_tier_did() {
    assert!(mixed().failed());
    let skipped = tier("a", Verdict::Skipped("why".into()), (0, 0, 0), 0);
    let passed = tier("b", Verdict::Passed, (1, 0, 0), 0);
    assert!(!Report::new(vec![skipped, passed]).failed());
}

#[test]
fn json_says_the_same_as_the_table() {
    let json = mixed().json("test");
    assert_eq!(json["command"], "test");
    assert_eq!(
        (&json["passed"], &json["failed"], &json["skipped"]),
        (&json!(41), &json!(2), &json!(4))
    );
    assert_eq!(
        json["tiers"][1],
        json!({
            "name": "unit", "what": "a tier", "result": "failed", "reason": "2 tests failed",
            "passed": 40, "failed": 2, "ignored": 3, "seconds": 61.0,
        }),
    );
    assert_eq!(json["tiers"][0]["reason"], Value::Null);
}

#[test]
fn the_list_of_tiers_says_which_cannot_run_here() {
    let tier = |name, in_check| Tier {
        name,
        what: "what it is",
        in_check,
        requires: &[],
        first_run: None,
        run: |_| Ok(Outcome::passed()),
    };
    let (unit, real) = (tier("unit", true), tier("real", false));
    let rows = [
        (&unit, None),
        (&real, Some("needs `go` on PATH".to_owned())),
    ];
    assert_eq!(
        tier_list(&rows),
        "\
tier  check  what        here
unit  yes    what it is  yes
real  no     what it is  no, needs `go` on PATH
",
    );
    let json = tier_list_json(&rows);
    assert_eq!(json[1]["reason"], "needs `go` on PATH");
    assert_eq!(
        (&json[0]["runs_here"], &json[1]["runs_here"]),
        (&json!(true), &json!(false))
    );
}

#[test]
fn times_are_short() {
    for (millis, words) in [
        (0, "0.0s"),
        (840, "0.8s"),
        (59_000, "59.0s"),
        (60_000, "1m00s"),
        (365_900, "6m05s"),
    ] {
        assert_eq!(in_words(Duration::from_millis(millis)), words);
    }
}
