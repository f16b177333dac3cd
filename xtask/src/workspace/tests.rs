use super::*;

fn shell(script: &str) -> Command {
    let mut command = Workspace::made_up().command("sh");
    command.args(["-c", script]);
    command
}

#[test]
fn tee_shows_every_byte_counts_the_tests_and_keeps_the_messages_of_cargo() {
    let shown = b"running 2 tests\ntest \xff ... ok\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\nno newline at the end";
    let output = [b"{\"reason\":\"a\"}\n", &shown[..]].concat();
    let mut seen = Vec::new();
    let (tests, messages) = tee(&*output, |bytes| seen.extend_from_slice(bytes)).unwrap();
    assert_eq!((seen.as_slice(), tests.passed), (&shown[..], 2));
    assert_eq!(messages, ["{\"reason\":\"a\"}\n"]);
}

#[test]
fn a_command_is_shown_without_the_flag_that_only_we_need() {
    let mut clippy = Workspace::made_up().cargo_building("clippy");
    clippy.args(["--", "-D", "warnings"]);
    assert_eq!(in_words(&clippy), "cargo clippy -- -D warnings");
}

#[test]
fn a_check_is_one_test_that_passes_or_fails_with_its_command() {
    assert_eq!(
        Workspace::made_up().check(shell("exit 0")).unwrap(),
        Outcome::passed()
    );

    let failed = Workspace::made_up().check(shell("exit 7")).unwrap();
    assert_eq!(failed.tally.total().failed, 1);
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
    let value_of = |name: &str, variables: &[(&str, &str)]| {
        let (machine, cache) = (Machine::with(variables), Path::new("/cache"));
        let mut all = environment(&machine, cache, Palette::Plain).into_iter();
        all.find(|(present, _)| *present == name)
            .map(|(_, value)| value)
    };
    for (name, value, own) in [
        ("CARGO_TARGET_DIR", "/cache/target", "/mine"),
        ("CARGO_INCREMENTAL", "0", "1"),
    ] {
        assert_eq!(value_of(name, &[]), None, "{name}");
        assert_eq!(value_of(name, &[("CI", "false")]), None, "{name}");
        assert_eq!(
            value_of(name, &[("CI", "true")]),
            Some(value.into()),
            "{name}"
        );
        assert_eq!(
            value_of(name, &[("CI", "true"), (name, own)]),
            None,
            "{name}"
        );
    }
}

#[test]
fn the_callers_own_choices_win_except_for_the_path_of_the_cache() {
    let variables =
        |own: &[(&str, &str)], palette| environment(&Machine::with(own), Path::new("/c"), palette);
    let all = |colour: &str| {
        vec![
            ("CARGO_TERM_COLOR", OsString::from(colour)),
            ("RUST_BACKTRACE", "1".into()),
            ("CLOUDKEEL_CACHE", "/c".into()),
        ]
    };
    assert_eq!(variables(&[], Palette::Plain), all("never"));
    assert_eq!(variables(&[], Palette::Colours), all("always"));
    let own = [
        ("CARGO_TERM_COLOR", "auto"),
        ("RUST_BACKTRACE", "full"),
        ("CLOUDKEEL_CACHE", "c"),
    ];
    assert_eq!(
        variables(&own, Palette::Plain),
        vec![("CLOUDKEEL_CACHE", "/c".into())]
    );
}

#[test]
fn what_cargo_says_about_xtask_is_not_passed_on() {
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
