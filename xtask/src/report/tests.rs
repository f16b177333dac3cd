use super::*;

fn tier(name: &'static str, result: TierResult, count: (u64, u64, u64), millis: u64) -> TierReport {
    let (passed, failed, skipped) = count;
    let count = Count {
        passed,
        failed,
        skipped,
    };
    TierReport {
        name,
        what: "a tier",
        result,
        tally: Tally::of(Unit::Test, count),
        gaps: Vec::new(),
        elsewhere: 0,
        counted: Vec::new(),
        time: Duration::from_millis(millis),
        build: Duration::from_millis(millis / 2),
    }
}

fn gap(test: &str) -> Skipped {
    Skipped {
        test: test.to_owned(),
        reason: "needs Go".to_owned(),
    }
}

fn mixed() -> Report {
    let mut unit = tier(
        "unit",
        TierResult::Failed("2 tests failed".into()),
        (4000, 2, 2),
        61_000,
    );
    unit.gaps = vec![gap("a"), gap("b")];
    let mut simulation = tier("simulation", TierResult::Passed, (4, 0, 0), 2_000);
    simulation.counted = vec!["24 seeds".to_owned()];
    Report::new(vec![
        tier("fmt", TierResult::Passed, (1, 0, 0), 840),
        unit,
        tier(
            "integration",
            TierResult::Skipped("needs `go` on PATH".into()),
            (0, 0, 0),
            0,
        ),
        simulation,
        tier("fuzz", TierResult::Unreached, (0, 0, 0), 0),
    ])
}

#[test]
fn the_table_has_a_row_for_each_tier_and_the_reasons() {
    let expected = "\
tier         result   passed             failed  skipped     time  of it building
fmt          passed   1 test                  0        0     0.8s            0.4s
unit         failed   4,000 tests             2        2    1m01s           30.5s  2 tests failed
integration  skipped  -                       -        -        -               -  needs `go` on PATH
simulation   passed   4 tests, 24 seeds       0        0     2.0s            1.0s
fuzz         spared   -                       -        -        -               -  the change cannot reach it
2 tests skipped: needs Go: a, b
";
    assert_eq!(mixed().table(Palette::Plain), expected);
}

#[test]
fn colours_do_not_move_the_columns() {
    let coloured = mixed().table(Palette::Colours);
    assert!(
        coloured.contains("\x1b[31mfailed \x1b[0m  4,000 tests"),
        "{coloured}"
    );
    let plain = ["\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"]
        .iter()
        .fold(coloured, |text, code| text.replace(code, ""));
    assert_eq!(plain, mixed().table(Palette::Plain));
}

#[test]
fn the_last_line_always_has_all_three_numbers() {
    let all_green = vec![tier("fmt", TierResult::Passed, (1, 0, 0), 1)];
    let gaps = vec![tier("unit", TierResult::Passed, (5, 0, 2), 1)];
    for (case, report, line) in [
        (
            "no tier",
            Report::new(vec![]),
            "0 passed, 0 failed, 0 skipped",
        ),
        (
            "all green",
            Report::new(all_green),
            "1 passed, 0 failed, 0 skipped",
        ),
        (
            "tests that could not run",
            Report::new(gaps),
            "5 passed, 0 failed, 2 skipped",
        ),
        (
            "a skipped tier is one more",
            mixed(),
            "4005 passed, 2 failed, 3 skipped",
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
            "passed in 0.8s: 1 test",
            "failed in 1m01s: 2 tests failed",
            "skipped: needs `go` on PATH",
            "passed in 2.0s: 4 tests, 24 seeds",
            "spared: the change cannot reach it",
        ]
    );
}

#[test]
fn a_run_failed_if_a_tier_did() {
    assert!(mixed().failed());
    let skipped = tier("a", TierResult::Skipped("why".into()), (0, 0, 0), 0);
    let passed = tier("b", TierResult::Passed, (1, 0, 0), 0);
    assert!(!Report::new(vec![skipped, passed]).failed());
}

#[test]
fn json_says_the_same_as_the_table() {
    let timing = Timing {
        program: "crates/api lib".to_owned(),
        tests: 3,
        time: Duration::from_millis(1_500),
    };
    let json = mixed().json("test", &[timing]);
    assert_eq!(json["command"], "test");
    assert_eq!(
        (&json["passed"], &json["failed"], &json["skipped"]),
        (&json!(4005), &json!(2), &json!(3))
    );
    assert_eq!(
        json["tiers"][1],
        json!({
            "name": "unit", "what": "a tier", "result": "failed", "reason": "2 tests failed",
            "counts": "4,000 tests", "passed": 4000, "failed": 2, "skipped": 2, "elsewhere": 0,
            "seconds": 61.0, "buildSeconds": 30.5,
        }),
    );
    assert_eq!(json["tiers"][0]["reason"], Value::Null);
    assert_eq!(
        json["programs"][0],
        json!({"name": "crates/api lib", "tests": 3, "seconds": 1.5})
    );
}

#[test]
fn the_longest_name_makes_the_column() {
    let timing = |program: &str, millis| Timing {
        program: program.to_owned(),
        tests: 12,
        time: Duration::from_millis(millis),
    };
    assert_eq!(
        timing_table(&[
            timing("crates/cloudkeel manager", 61_000),
            timing("xtask xtask", 40)
        ]),
        "\
test program              tests     time
crates/cloudkeel manager     12    1m01s
xtask xtask                  12     0.0s
"
    );
}

#[test]
fn the_list_of_tiers_says_which_cannot_run_here() {
    let tier = |name, in_check| Tier {
        name,
        what: "what it is",
        in_check,
        requires: &[],
        reach: crate::changed::Reach::Everything,
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
