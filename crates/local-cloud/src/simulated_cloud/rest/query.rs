//! The query of a list.

use std::collections::BTreeMap;

use cloudkeel_provider_local::wire::{Balancer, Machine};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::super::refusal::Refusal;

/// What a list is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ListQuery {
    pub(super) page: u64,
    pub(super) per_page: u64,
    pub(super) ids: Vec<u64>,
    name: Option<String>,
    hostname: Option<String>,
    uuid: Option<String>,
    labels: Vec<(String, String)>,
}

impl ListQuery {
    /// Reads a query. More per page than the cloud gives is cut down to what it gives.
    pub(super) fn parse(text: &str, page_size: u64) -> Result<Self, Refusal> {
        let mut query = Self {
            page: 1,
            per_page: page_size,
            ids: Vec::new(),
            name: None,
            hostname: None,
            uuid: None,
            labels: Vec::new(),
        };
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decode_str(value).decode_utf8_lossy().into_owned();
            match key {
                "page" => query.page = number(key, &value)?.max(1),
                "perPage" => query.per_page = number(key, &value)?.clamp(1, page_size.max(1)),
                "id" => query.ids.push(number(key, &value)?),
                "name" => query.name = Some(value),
                "hostname" => query.hostname = Some(value),
                "uuid" => query.uuid = Some(value),
                "label" => query.labels.push(label(&value)?),
                _ => return Err(Refusal::unreadable(format!("unknown parameter {key:?}"))),
            }
        }
        // A batch answers in the order of the IDs, each once, however it was asked.
        query.ids.sort_unstable();
        query.ids.dedup();
        Ok(query)
    }

    pub(super) fn fits_machine(&self, machine: &Machine) -> bool {
        let hostname = machine.hostname.as_deref();
        let uuid = |wanted: &str| wanted.eq_ignore_ascii_case(&machine.uuid);
        (self.hostname.is_none() || self.hostname.as_deref() == hostname)
            && self.uuid.as_deref().is_none_or(uuid)
            && self.fits(&machine.name, &machine.labels)
    }

    pub(super) fn fits_balancer(&self, balancer: &Balancer) -> bool {
        (self.ids.is_empty() || self.ids.contains(&balancer.id))
            && self.fits(&balancer.name, &balancer.labels)
    }

    fn fits(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        self.name.as_deref().is_none_or(|wanted| wanted == name)
            && self
                .labels
                .iter()
                .all(|(key, value)| labels.get(key) == Some(value))
    }

    /// The path of the next page.
    pub(super) fn next(&self, path: &str) -> String {
        let mut next = format!("{path}?page={}&perPage={}", self.page + 1, self.per_page);
        let ids = self.ids.iter().map(|id| ("id", id.to_string()));
        let texts = [
            ("name", &self.name),
            ("hostname", &self.hostname),
            ("uuid", &self.uuid),
        ];
        let texts = texts
            .into_iter()
            .filter_map(|(key, text)| Some((key, text.clone()?)));
        let labels = self.labels.iter();
        let labels = labels.map(|(key, value)| ("label", format!("{key}={value}")));
        for (key, value) in ids.chain(texts).chain(labels) {
            next.push('&');
            next.push_str(key);
            next.push('=');
            next.extend(utf8_percent_encode(&value, NON_ALPHANUMERIC));
        }
        next
    }
}

fn number(key: &str, value: &str) -> Result<u64, Refusal> {
    value
        .parse()
        .map_err(|_| Refusal::unreadable(format!("{key}: {value:?}: expected a number")))
}

fn label(value: &str) -> Result<(String, String), Refusal> {
    value
        .split_once('=')
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .ok_or_else(|| Refusal::unreadable(format!("label: {value:?}: expected `key=value`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_asked_for_in_the_same_way() {
        let text = "page=2&perPage=10&name=a%20b&label=x%2Fy%3Dz&id=7&id=3&id=7";
        let query = ListQuery::parse(text, 50).unwrap();
        assert_eq!(query.ids, [3, 7]);
        let next = query.next("/v1/machines");
        let (path, text) = next.split_once('?').unwrap();
        assert_eq!(path, "/v1/machines");
        let next = ListQuery::parse(text, 50).unwrap();
        assert_eq!(next, ListQuery { page: 3, ..query });
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_too_much_is_cut_down() {
        for (query, why) in [
            ("page=x", "page: \"x\": expected a number"),
            ("id=", "id: \"\": expected a number"),
            ("label=x", "label: \"x\": expected `key=value`"),
            ("sort=name", "unknown parameter \"sort\""),
        ] {
            let refusal = ListQuery::parse(query, 50).unwrap_err();
            assert_eq!(refusal.info.message, why, "{query}");
        }
        assert_eq!(ListQuery::parse("perPage=1000", 50).unwrap().per_page, 50);
        assert_eq!(ListQuery::parse("perPage=0", 50).unwrap().per_page, 1);
    }
}
