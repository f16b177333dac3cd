//! What the API server counted: the same eyes for every contestant.

use anyhow::{Context as _, Result};
use kube::Client;

/// Requests that were answered so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Requests {
    /// PUT and PATCH of Nodes, status included.
    pub node_writes: u64,
    /// Events made or counted up.
    pub event_writes: u64,
}

/// Reads the API server's own metrics.
pub async fn requests(client: &Client) -> Result<Requests> {
    let request = http::Request::get("/metrics").body(Vec::new())?;
    let text = client.request_text(request).await;
    Ok(count(&text.context("the API server serves no metrics")?))
}

fn count(text: &str) -> Requests {
    let mut requests = Requests::default();
    for line in text.lines() {
        let Some(labels) = line.strip_prefix("apiserver_request_total{") else {
            continue;
        };
        let has = |label: &str| labels.contains(label);
        let value = line.rsplit(' ').next().and_then(|text| text.parse().ok());
        let value: u64 = value.unwrap_or(0);
        let writes = ["PUT", "PATCH", "POST"]
            .iter()
            .any(|verb| has(&format!("verb=\"{verb}\"")));
        if writes && has("resource=\"nodes\"") && !has("verb=\"POST\"") {
            requests.node_writes += value;
        } else if writes && has("resource=\"events\"") {
            requests.event_writes += value;
        }
    }
    requests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_writes_of_nodes_and_events_count() {
        let line = |resource: &str, verb: &str, count: u64| {
            format!(
                "apiserver_request_total{{code=\"200\",resource=\"{resource}\",verb=\"{verb}\"}} {count}\n"
            )
        };
        let text = [
            line("nodes", "PUT", 1),
            line("nodes", "PATCH", 2),
            line("nodes", "POST", 4),
            line("nodes", "GET", 8),
            line("leases", "PUT", 16),
            line("events", "POST", 32),
            line("events", "PATCH", 64),
        ]
        .concat();
        let expected = Requests {
            node_writes: 3,
            event_writes: 96,
        };
        assert_eq!(count(&text), expected);
    }
}
