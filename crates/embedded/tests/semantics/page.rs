//! The numbers in `docs/embedded.md`.

use std::path::Path;

/// The heading of the table of groups.
const GROUPS: &str = "| group | cases | answers compared |";
/// The heading of the table of suites that run on both servers.
const SUITES: &str = "| suite | where | tests on each |";

/// The page, from the folder of this crate.
const PAGE: &str = "../../docs/embedded.md";

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The cells of a table, without its heading.
fn table(heading: &str) -> Vec<Vec<String>> {
    let page = read(PAGE);
    let rows = page.lines().skip_while(|line| *line != heading).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let cells = |line: &str| -> Vec<String> {
        let cells = line.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().replace("**", "")).collect()
    };
    let rows: Vec<_> = rows.map(cells).collect();
    assert!(rows.len() > 2, "no table under {heading}");
    rows
}

fn number(cell: &str) -> usize {
    cell.parse()
        .unwrap_or_else(|_| panic!("{cell:?} is no number"))
}

/// The cases and answers of a group: its row begins with its name.
pub(crate) fn row_of(group: &str) -> Option<(usize, usize)> {
    let rows = table(GROUPS);
    let is_its = |row: &&Vec<String>| {
        let rest = row[0].strip_prefix(group);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    };
    let row = rows.iter().find(is_its)?;
    Some((number(&row[1]), number(&row[2])))
}

#[test]
fn the_sums_on_the_page_are_right() {
    for (heading, columns) in [(GROUPS, &[1, 2][..]), (SUITES, &[2])] {
        let mut rows = table(heading);
        let sum = rows.pop().expect("a row");
        for column in columns {
            let all = rows.iter().map(|row| number(&row[*column]));
            assert_eq!(number(&sum[*column]), all.sum::<usize>(), "{sum:?}");
        }
    }
}

#[test]
fn every_suite_on_the_page_has_as_many_tests_as_it_says() {
    let mut rows = table(SUITES);
    rows.pop();
    for row in rows {
        let place = row[1].trim_matches('`');
        let counted: usize = files(place)
            .iter()
            .map(|file| tests_in(&read(&format!("../../{file}"))))
            .sum();
        assert_eq!(counted, number(&row[2]), "{place}");
    }
}

/// `a/{b,c}.rs` are two files.
fn files(place: &str) -> Vec<String> {
    let Some((before, rest)) = place.split_once('{') else {
        return vec![place.to_owned()];
    };
    let (names, after) = rest.split_once('}').expect("a closing brace");
    let names = names.split(',');
    names.map(|name| format!("{before}{name}{after}")).collect()
}

/// The tests that a file runs on both servers.
fn tests_in(file: &str) -> usize {
    let lists = file.split("on_both_apis![").skip(1);
    let names = lists.filter_map(|list| list.split_once(']'));
    let names = names.flat_map(|(names, _)| names.split(','));
    names.filter(|name| !name.trim().is_empty()).count()
}
