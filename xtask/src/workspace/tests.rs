use super::*;

fn count(passed: u64, failed: u64, ignored: u64) -> Count {
    Count {
        passed,
        failed,
        ignored,
    }
}

fn shell(script: &str) -> Command {
    let mut command = Workspace::made_up().command("sh");
    command.args(["-c", script]);
    command
}

#[test]
fn tee_shows_every_byte_and_counts_the_tests() {
    let output = b"running 2 tests\ntest \xff ... ok\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\nno newline at the end";
    let mut shown = Vec::new();
    let counted = tee(&output[..], |bytes| shown.extend_from_slice(bytes)).unwrap();
    assert_eq!((shown.as_slice(), counted), (&output[..], count(2, 0, 0)));
}

#[test]
fn a_test_run_is_judged_by_command_tests_and_emptiness() {
    let died = || Some("`cargo test` ended with 101".to_owned());
    for (case, problem, counted, expected) in [
        ("all green", None, count(3, 0, 1), (None, count(3, 0, 1))),
        (
            "one red",
            died(),
            count(2, 1, 0),
            (Some("1 test failed"), count(2, 1, 0)),
        ),
        (
            "two red",
            died(),
            count(2, 2, 0),
            (Some("2 tests failed"), count(2, 2, 0)),
        ),
        (
            "no build",
            died(),
            count(0, 0, 0),
            (Some("`cargo test` ended with 101"), count(0, 1, 0)),
        ),
        (
            "nothing ran",
            None,
            count(0, 0, 0),
            (Some("ran no test"), count(0, 1, 0)),
        ),
        (
            "all ignored",
            None,
            count(0, 0, 5),
            (Some("ran no test"), count(0, 1, 5)),
        ),
        (
            "red though it exits well",
            None,
            count(1, 1, 0),
            (Some("1 test failed"), count(1, 1, 0)),
        ),
    ] {
        let outcome = judge(problem, counted);
        assert_eq!(
            (outcome.problem.as_deref(), outcome.count),
            expected,
            "{case}"
        );
    }
}

#[test]
fn a_check_is_one_test_that_passes_or_fails_with_its_command() {
    assert_eq!(
        Workspace::made_up().check(shell("exit 0")).unwrap(),
        Outcome::passed()
    );

    let failed = Workspace::made_up().check(shell("exit 7")).unwrap();
    assert_eq!(failed.count, Count::ONE_FAILED);
    assert_eq!(
        failed.problem.as_deref(),
        Some("`sh -c 'exit 7'` ended with exit status: 7")
    );

    let error = Workspace::made_up()
        .check(Command::new("/no/such/program"))
        .unwrap_err();
    assert!(
        format!("{error:#}").starts_with("cannot run `program`: "),
        "{error:#}"
    );
}

#[test]
fn commands_run_in_the_root_with_the_environment_of_the_checks() {
    let read = output_of(shell("echo $GREETING; echo [$CARGO_PKG_NAME]; pwd")).unwrap();
    let expected = format!("hello\n[]\n{}\n", here().display());
    assert_eq!(String::from_utf8(read).unwrap(), expected);

    let error = output_of(shell("exit 3")).unwrap_err().to_string();
    assert_eq!(error, "`sh -c 'exit 3'` ended with exit status: 3");
}

#[test]
fn only_on_ci_the_target_folder_is_kept_in_the_cache_and_is_not_incremental() {
    let told = |name: &str, variables: &[(&str, &str)]| {
        let (machine, cache) = (Machine::with(variables), Path::new("/cache"));
        let mut all = environment(&machine, cache, Palette::Plain).into_iter();
        all.find(|(present, _)| *present == name)
            .map(|(_, value)| value)
    };
    for (name, value, own) in [
        ("CARGO_TARGET_DIR", "/cache/target", "/mine"),
        ("CARGO_INCREMENTAL", "0", "1"),
    ] {
        assert_eq!(told(name, &[]), None, "{name}");
        assert_eq!(told(name, &[("CI", "false")]), None, "{name}");
        assert_eq!(told(name, &[("CI", "true")]), Some(value.into()), "{name}");
        assert_eq!(told(name, &[("CI", "true"), (name, own)]), None, "{name}");
    }
}

#[test]
fn the_callers_own_choices_win_and_the_cache_is_said_outright() {
    let told = |variables: &[(&str, &str)], palette| {
        environment(&Machine::with(variables), Path::new("/c"), palette)
    };
    let all = |colour: &str| {
        vec![
            ("CARGO_TERM_COLOR", OsString::from(colour)),
            ("RUST_BACKTRACE", "1".into()),
            ("CLOUDKEEL_CACHE", "/c".into()),
        ]
    };
    assert_eq!(told(&[], Palette::Plain), all("never"));
    assert_eq!(told(&[], Palette::Colours), all("always"));
    let own = [
        ("CARGO_TERM_COLOR", "auto"),
        ("RUST_BACKTRACE", "full"),
        ("CLOUDKEEL_CACHE", "c"),
    ];
    assert_eq!(
        told(&own, Palette::Plain),
        vec![("CLOUDKEEL_CACHE", "/c".into())]
    );
}

#[test]
fn what_cargo_says_about_xtask_is_told_to_nobody_else() {
    // The test itself runs under cargo, which says these things.
    let about = Machine::this().variables_like(ABOUT_XTASK);
    for name in [
        "CARGO_MANIFEST_DIR",
        "CARGO_PKG_NAME",
        "CARGO_PKG_VERSION_MAJOR",
    ] {
        assert!(about.contains(&name.into()), "{name} among {about:?}");
    }
    assert!(
        !about.contains(&"CARGO".into()) && !about.contains(&"PATH".into()),
        "{about:?}"
    );
}

#[test]
fn two_outcomes_add_up_and_keep_the_first_problem() {
    let both = Outcome::failed("first".into()).and(Outcome::failed("second".into()));
    assert_eq!(
        both,
        Outcome {
            count: count(0, 2, 0),
            problem: Some("first".into()),
            skipped: None,
        }
    );
    assert_eq!(
        Outcome::passed().and(Outcome::passed()).count,
        count(2, 0, 0)
    );
}
