//! Which rows a reader sees: those that match a search, the worst first, a page at a time. A cluster may have thousands.

use serde::{Deserialize, Serialize};

use crate::{BalancerRow, Level, NodeRow, PageData, RouteRow};

/// How many rows of a list fit on one page of it.
const ROWS: usize = 50;
/// Load balancers take more room.
const CARDS: usize = 24;

/// What a reader looks at: searches, and pages of the lists, counted from zero.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct View {
    /// Words that a Node has to contain, anywhere in its row.
    pub nodes: String,
    /// The page of the Nodes.
    pub nodes_page: usize,
    /// Words that a load balancer has to contain.
    pub balancers: String,
    /// The page of the load balancers.
    pub balancers_page: usize,
    /// Words that a route has to contain.
    pub routes: String,
    /// The page of the routes.
    pub routes_page: usize,
}

/// How much of each list is shown.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Windows {
    /// Of the Nodes.
    pub nodes: Window,
    /// Of the load balancers.
    pub balancers: Window,
    /// Of the routes.
    pub routes: Window,
}

/// How much of a list is shown.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Window {
    /// How many there are.
    pub total: usize,
    /// How many match the search.
    pub matching: usize,
    /// How many of all are broken.
    pub bad: usize,
    /// How many of all need attention.
    pub warning: usize,
    /// The page that is shown, from zero.
    pub page: usize,
    /// How many pages there are.
    pub pages: usize,
}

/// A row that can be searched and sorted.
trait Row {
    fn level(&self) -> Level;
    fn texts(&self) -> Vec<&str>;
}

impl Row for NodeRow {
    fn level(&self) -> Level {
        self.level
    }

    fn texts(&self) -> Vec<&str> {
        let texts = [
            &self.name,
            &self.state,
            &self.cloud,
            &self.machine,
            &self.machine_state,
            &self.kind,
        ];
        let lists = self.addresses.iter().chain(&self.taints).chain(&self.note);
        texts.into_iter().chain(lists).map(String::as_str).collect()
    }
}

impl Row for BalancerRow {
    fn level(&self) -> Level {
        self.level
    }

    fn texts(&self) -> Vec<&str> {
        let texts = [&self.service, &self.state, &self.cloud];
        let lists = self
            .addresses
            .iter()
            .chain(&self.listeners)
            .chain(&self.note);
        let targets = self
            .targets
            .iter()
            .flat_map(|target| [&target.node, &target.state]);
        let all = texts.into_iter().chain(lists).chain(targets);
        all.map(String::as_str).collect()
    }
}

impl Row for RouteRow {
    fn level(&self) -> Level {
        self.level
    }

    fn texts(&self) -> Vec<&str> {
        [&self.destination, &self.to, &self.cloud, &self.state]
            .map(String::as_str)
            .into()
    }
}

impl PageData {
    /// What this reader sees of it. The summary still counts everything.
    #[must_use]
    pub fn seen_by(mut self, view: &View) -> Self {
        self.windows = Windows {
            nodes: show(&mut self.nodes, &view.nodes, view.nodes_page, ROWS),
            balancers: show(
                &mut self.balancers,
                &view.balancers,
                view.balancers_page,
                CARDS,
            ),
            routes: show(&mut self.routes, &view.routes, view.routes_page, ROWS),
        };
        self
    }
}

/// Keeps the rows of one page. As long as all fit on it, they stay in their order, so that none moves while it is read.
fn show<R: Row>(rows: &mut Vec<R>, search: &str, page: usize, size: usize) -> Window {
    let of_level = |level| rows.iter().filter(|row| row.level() == level).count();
    let (total, bad, warning) = (rows.len(), of_level(Level::Bad), of_level(Level::Warning));
    let words: Vec<_> = search.split_whitespace().map(str::to_lowercase).collect();
    if !words.is_empty() {
        rows.retain(|row| has_all(row, &words));
    }
    let matching = rows.len();
    let pages = matching.div_ceil(size).max(1);
    let page = page.min(pages - 1);
    if pages > 1 {
        rows.sort_by_key(|row| row.level().rank());
        let first = page * size;
        rows.truncate(first.saturating_add(size));
        rows.drain(..first.min(rows.len()));
    }
    Window {
        total,
        matching,
        bad,
        warning,
        page,
        pages,
    }
}

fn has_all(row: &impl Row, words: &[String]) -> bool {
    let texts: Vec<_> = row.texts().iter().map(|text| text.to_lowercase()).collect();
    words
        .iter()
        .all(|word| texts.iter().any(|text| text.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(count: usize) -> PageData {
        let node = |number: usize| NodeRow {
            name: format!("node-{number:04}"),
            level: match number % 100 {
                7 => Level::Warning,
                42 => Level::Bad,
                _ => Level::Good,
            },
            ..NodeRow::default()
        };
        PageData {
            nodes: (0..count).map(node).collect(),
            ..PageData::default()
        }
    }

    fn seen(count: usize, view: &View) -> (Window, Vec<String>) {
        let data = nodes(count).seen_by(view);
        let names = data.nodes.into_iter().map(|row| row.name);
        (data.windows.nodes, names.collect())
    }

    #[test]
    fn what_fits_on_one_page_stays_in_its_order() {
        let (window, names) = seen(50, &View::default());
        assert_eq!((window.total, window.pages, window.bad), (50, 1, 1));
        assert_eq!(names[0], "node-0000");
        assert_eq!(names.len(), 50);
    }

    #[test]
    fn of_many_the_worst_come_first_and_the_rest_is_on_other_pages() {
        let (window, names) = seen(2000, &View::default());
        let expected = Window {
            total: 2000,
            matching: 2000,
            bad: 20,
            warning: 20,
            page: 0,
            pages: 40,
        };
        assert_eq!(window, expected);
        assert_eq!(names.len(), 50);
        assert_eq!(
            [&names[0], &names[20], &names[40]],
            ["node-0042", "node-0007", "node-0000"]
        );
        let last = View {
            nodes_page: 99,
            ..View::default()
        };
        let (window, names) = seen(2000, &last);
        assert_eq!((window.page, names[49].as_str()), (39, "node-1999"));
    }

    #[test]
    fn a_search_finds_every_word_anywhere_in_a_row() {
        let mut data = nodes(3);
        data.nodes[1].addresses = vec!["10.0.0.7".to_owned()];
        data.nodes[1].kind = "CX22".to_owned();
        for (search, expected) in [("10.0.0 cx22", 1), ("NODE-", 3), ("nothing", 0), (" ", 3)] {
            let view = View {
                nodes: search.to_owned(),
                ..View::default()
            };
            let seen = data.clone().seen_by(&view);
            assert_eq!(seen.nodes.len(), expected, "{search:?}");
            assert_eq!(
                (seen.windows.nodes.total, seen.windows.nodes.matching),
                (3, expected)
            );
        }
    }
}
