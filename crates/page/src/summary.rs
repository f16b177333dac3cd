//! The problems in one line: the first thing that a reader sees.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Level, PageData};

/// The problems.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Summary {
    /// The worst severity.
    pub level: Level,
    /// Such as `1 Service failing, 1 Node waiting`.
    pub text: String,
    /// The problems that it counts, the worst first.
    pub problems: Vec<Problem>,
    /// How many problems are not shown.
    pub more_problems: u64,
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Problem {
    /// Its severity.
    pub level: Level,
    /// Such as `Service default/web`.
    pub object: String,
    /// Its state, as in its row.
    pub state: String,
    /// The reason, if known.
    pub why: Option<String>,
}

const STANDBY: &str = "This replica stands by: the leader's page shows the cluster";

/// The category of a problem in the line.
type Counted = (&'static str, &'static str);

impl Summary {
    /// How many problems are shown.
    pub const MAX_PROBLEMS: usize = 20;

    /// The summary of the page's data.
    pub fn of(data: &PageData) -> Self {
        let leader = &data.leader;
        match &leader.holder {
            None => Self::without_leader(leader.error.as_deref()),
            Some(_) if !leader.is_shown => Self {
                text: STANDBY.to_owned(),
                ..Self::default()
            },
            Some(_) => Self::of_rows(data),
        }
    }

    fn without_leader(error: Option<&str>) -> Self {
        let text = "No manager leads: nothing is reconciled";
        let problem = Problem {
            level: Level::Bad,
            object: "Leader".to_owned(),
            state: "none".to_owned(),
            why: error.map(str::to_owned),
        };
        Self {
            level: Level::Bad,
            text: text.to_owned(),
            problems: vec![problem],
            more_problems: 0,
        }
    }

    fn of_rows(data: &PageData) -> Self {
        let mut counts: BTreeMap<(usize, Counted), u64> = BTreeMap::new();
        let mut problems = Vec::new();
        for (counted, problem) in all(data) {
            *counts.entry((rank(problem.level), counted)).or_default() += 1;
            if matches!(problem.level, Level::Bad | Level::Warning) {
                problems.push(problem);
            }
        }
        problems.sort_by_key(|problem| rank(problem.level));
        let more_problems = problems.len().saturating_sub(Self::MAX_PROBLEMS);
        problems.truncate(Self::MAX_PROBLEMS);
        let parts: Vec<_> = counts
            .iter()
            .map(|((_, (kind, state)), count)| format!("{} {state}", plural(*count, kind)))
            .collect();
        let level = counts.keys().map(|(rank, _)| *rank).min();
        Self {
            level: level.map_or(Level::Good, level_of),
            text: if parts.is_empty() {
                healthy_text(data)
            } else {
                parts.join(", ")
            },
            problems,
            more_problems: u64::try_from(more_problems).unwrap_or(u64::MAX),
        }
    }
}

/// All problems, with their categories.
fn all(data: &PageData) -> Vec<(Counted, Problem)> {
    let services = data.balancers.iter().filter_map(|row| {
        let state = match row.level {
            Level::Bad => "failing",
            Level::Warning => "waiting",
            Level::Neutral if row.state == "pending" => "pending",
            Level::Neutral | Level::Good => return None,
        };
        let object = format!("Service {}", row.service);
        Some((
            ("Service", state),
            problem(row.level, object, &row.state, row.note.as_ref()),
        ))
    });
    let nodes = data.nodes.iter().filter_map(|row| {
        let state = match row.level {
            Level::Bad => "not ready",
            Level::Warning if row.machine_state == "shut down" => "shut down",
            Level::Warning => "waiting",
            Level::Neutral | Level::Good => return None,
        };
        let object = format!("Node {}", row.name);
        Some((
            ("Node", state),
            problem(row.level, object, &row.state, row.note.as_ref()),
        ))
    });
    let clouds = data.clouds.iter().filter_map(|row| {
        let state = match row.level {
            Level::Bad => "failing",
            Level::Warning => "without deletions",
            Level::Neutral | Level::Good => return None,
        };
        let object = format!("Cloud {}", row.name);
        Some((
            ("cloud", state),
            problem(row.level, object, &row.state, row.note.as_ref()),
        ))
    });
    let routes = data.routes.iter().filter_map(|row| {
        let state = match row.level {
            Level::Bad => "missing",
            Level::Warning => "leading nowhere",
            Level::Neutral | Level::Good => return None,
        };
        let object = format!("Route {} to {}", row.destination, row.to);
        Some((
            ("route", state),
            problem(row.level, object, &row.state, None),
        ))
    });
    let controllers = data.controllers.iter().filter_map(|row| {
        let is_wrong = matches!(row.level, Level::Bad | Level::Warning);
        let object = format!("Controller {}", row.name);
        is_wrong.then(|| {
            (
                ("controller", "stopped"),
                problem(row.level, object, &row.state, row.note.as_ref()),
            )
        })
    });
    services
        .chain(nodes)
        .chain(clouds)
        .chain(routes)
        .chain(controllers)
        .collect()
}

fn problem(level: Level, object: String, state: &str, why: Option<&String>) -> Problem {
    Problem {
        level,
        object,
        state: state.to_owned(),
        why: why.cloned(),
    }
}

fn healthy_text(data: &PageData) -> String {
    let count = |rows: usize| u64::try_from(rows).unwrap_or(u64::MAX);
    let nodes = plural(count(data.nodes.len()), "Node");
    let services = plural(count(data.balancers.len()), "load balancer");
    format!("All is well: {nodes}, {services}")
}

fn plural(count: u64, kind: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {kind}{ending}")
}

/// The worst first.
const LEVELS: [Level; 4] = [Level::Bad, Level::Warning, Level::Neutral, Level::Good];

const fn rank(level: Level) -> usize {
    level.rank()
}

fn level_of(rank: usize) -> Level {
    LEVELS.get(rank).copied().unwrap_or(Level::Good)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BalancerRow, CloudRow, Leader, NodeRow, RouteRow};

    fn led() -> PageData {
        PageData {
            leader: Leader {
                holder: Some("pod-a".to_owned()),
                is_shown: true,
                error: None,
            },
            ..PageData::default()
        }
    }

    fn service(name: &str, level: Level, note: Option<&str>) -> BalancerRow {
        BalancerRow {
            service: name.to_owned(),
            level,
            note: note.map(str::to_owned),
            ..BalancerRow::default()
        }
    }

    fn node(name: &str, level: Level) -> NodeRow {
        NodeRow {
            name: name.to_owned(),
            level,
            ..NodeRow::default()
        }
    }

    #[test]
    fn the_worst_comes_first_and_everything_is_counted() {
        let data = PageData {
            balancers: vec![
                service("a/good", Level::Good, None),
                BalancerRow {
                    state: "pending".to_owned(),
                    ..service("a/new", Level::Neutral, None)
                },
                service("a/not-ours", Level::Neutral, None),
                service("a/web", Level::Bad, Some("no such annotation")),
                service("a/api", Level::Bad, None),
            ],
            nodes: vec![
                node("n1", Level::Good),
                node("n2", Level::Warning),
                NodeRow {
                    machine_state: "shut down".to_owned(),
                    ..node("n3", Level::Warning)
                },
            ],
            clouds: vec![CloudRow {
                level: Level::Bad,
                ..CloudRow::default()
            }],
            routes: vec![RouteRow {
                level: Level::Bad,
                ..RouteRow::default()
            }],
            ..led()
        };
        let summary = Summary::of(&data);
        assert_eq!(summary.level, Level::Bad);
        assert_eq!(
            summary.text,
            "2 Services failing, 1 cloud failing, 1 route missing, 1 Node shut down, \
             1 Node waiting, 1 Service pending"
        );
        let first = &summary.problems[0];
        assert_eq!(
            (first.object.as_str(), first.why.as_deref()),
            ("Service a/web", Some("no such annotation"))
        );
        assert_eq!(
            summary.problems.len(),
            6,
            "what is only pending is no problem"
        );
    }

    #[test]
    fn all_is_well_only_under_a_leader() {
        let mut data = PageData {
            nodes: vec![node("n1", Level::Good), node("n2", Level::Good)],
            balancers: vec![service("a/web", Level::Good, None)],
            ..led()
        };
        let summary = Summary::of(&data);
        assert_eq!(
            (summary.level, summary.text.as_str()),
            (Level::Good, "All is well: 2 Nodes, 1 load balancer")
        );
        data.leader.is_shown = false;
        let summary = Summary::of(&data);
        assert_eq!(
            (summary.level, summary.text.as_str()),
            (Level::Neutral, STANDBY)
        );
        data.leader.holder = None;
        data.leader.error = Some("the API server does not answer".to_owned());
        let summary = Summary::of(&data);
        assert_eq!(
            (summary.level, summary.text.as_str()),
            (Level::Bad, "No manager leads: nothing is reconciled")
        );
        let why = summary.problems[0].why.as_deref();
        assert_eq!(why, Some("the API server does not answer"));
    }

    #[test]
    fn of_many_problems_the_rest_is_counted() {
        let data = PageData {
            nodes: (0..50).map(|n| node(&n.to_string(), Level::Bad)).collect(),
            ..led()
        };
        let summary = Summary::of(&data);
        assert_eq!(summary.text, "50 Nodes not ready");
        assert_eq!(summary.problems.len(), Summary::MAX_PROBLEMS);
        assert_eq!(summary.more_problems, 30);
    }
}
