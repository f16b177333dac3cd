//! Several runs of the same, of which one stands for all.

use serde_json::{Value, json};

use crate::cost::Cost;

/// Runs of one contestant with the same number of Nodes.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    /// From the fastest to the slowest, by the time to the last Event.
    runs: Vec<Cost>,
}

impl Rounds {
    pub(crate) fn add(&mut self, cost: Cost) {
        let place = self
            .runs
            .partition_point(|run| run.to_last_event <= cost.to_last_event);
        self.runs.insert(place, cost);
    }

    /// The run with the median time; of an even number, the slower of the two in the middle.
    pub(crate) fn median(&self) -> Option<&Cost> {
        self.runs.get(self.runs.len() / 2)
    }

    /// The shortest and the longest time, if there is more than one.
    pub(crate) fn range(&self) -> Option<[f64; 2]> {
        match self.runs.as_slice() {
            [fastest, .., slowest] => {
                Some([fastest, slowest].map(|run| run.to_last_event.as_secs_f64()))
            }
            _ => None,
        }
    }

    pub(crate) fn json(&self) -> Option<Value> {
        let mut median = self.median()?.json();
        let all: Vec<Value> = self.runs.iter().map(Cost::json).collect();
        if let Value::Object(fields) = &mut median {
            fields.insert("rounds".to_owned(), json!(all));
        }
        Some(median)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cloudkeel_bench_arena::Contestant;

    use super::*;

    fn rounds(seconds: &[u64]) -> Rounds {
        let mut rounds = Rounds::default();
        for seconds in seconds {
            rounds.add(Cost {
                contestant: Contestant::Cloudkeel,
                nodes: 1,
                elapsed: Duration::from_secs(*seconds),
                to_last_event: Duration::from_secs(2 * *seconds),
                cloud_calls: 0,
                node_writes: 0,
                event_writes: 0,
                servers: Duration::ZERO,
                cpu: Duration::ZERO,
                peak_kib: 0,
            });
        }
        rounds
    }

    #[test]
    fn the_run_in_the_middle_stands_for_all() {
        for (seconds, median, range) in [
            (&[4][..], 4, None),
            (&[9, 1, 5], 5, Some([2.0, 18.0])),
            (&[2, 9, 1, 5], 5, Some([2.0, 18.0])),
        ] {
            let rounds = rounds(seconds);
            let middle = rounds.median().map(|run| run.elapsed.as_secs());
            assert_eq!((middle, rounds.range()), (Some(median), range));
        }
        assert!(rounds(&[]).median().is_none() && rounds(&[]).json().is_none());
        let json = rounds(&[3, 1, 2]).json().unwrap();
        assert_eq!(json["seconds"], 2.0);
        let all = json["rounds"].as_array().unwrap().iter();
        let seconds: Vec<&Value> = all.map(|round| &round["secondsToLastEvent"]).collect();
        assert_eq!(seconds, [2.0, 4.0, 6.0]);
    }
}
