use serde_json::json;

use super::*;

struct Disk(u64, &'static str, Labels);

impl Listed for Disk {
    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "id" => Some(json!(self.0)),
            "name" => Some(json!(self.1)),
            _ => None,
        }
    }

    fn labels(&self) -> Option<&Labels> {
        Some(&self.2)
    }
}

const NUMBERED: ListApi = ListApi {
    paging: Paging::Numbered {
        page: "page",
        per_page: "per_page",
        default: 2,
        max: 3,
        rejects_zero: true,
    },
    filters: &[Filter::number("id"), Filter::ignore_case("name")],
    labels: LabelParam::Selector("selector"),
    sort: Some(("sort", &["id", "name"])),
    rejects_unknown: true,
};

const MARKED: ListApi = ListApi {
    paging: Paging::Marker {
        marker: "marker",
        limit: "limit",
        max: 3,
    },
    filters: &[Filter::exact("name")],
    labels: LabelParam::Pair("tag"),
    sort: None,
    rejects_unknown: false,
};

fn disks() -> Vec<Disk> {
    let labels = |env: &str| Labels::from([("env".to_owned(), env.to_owned())]);
    vec![
        Disk(1, "d", labels("prod")),
        Disk(2, "b", labels("test")),
        Disk(3, "c", labels("prod")),
        Disk(4, "a", Labels::new()),
    ]
}

fn shown(api: &ListApi, query: &str) -> (Vec<u64>, u64, Option<String>) {
    let disks = disks();
    let query = api.read(Params::parse(query)).unwrap();
    let page = query.select(&disks);
    let next = query.next_link("/disks", &page);
    let ids = page.items.iter().map(|disk| disk.0).collect();
    (ids, page.total, next)
}

#[test]
fn numbered_pages_are_filtered_sorted_and_linked() {
    for (query, ids, total, next) in [
        ("", vec![1, 2], 4, Some("/disks?page=2")),
        ("page=2", vec![3, 4], 4, None),
        ("page=9", vec![], 4, None),
        (
            "per_page=9",
            vec![1, 2, 3],
            4,
            Some("/disks?per_page=9&page=2"),
        ),
        ("id=4&id=2", vec![2, 4], 2, None),
        ("name=B", vec![2], 1, None),
        ("selector=env%3Dprod", vec![1, 3], 2, None),
        ("selector=!env", vec![4], 1, None),
        ("sort=name", vec![4, 2], 4, Some("/disks?sort=name&page=2")),
        (
            "sort=id:desc",
            vec![4, 3],
            4,
            Some("/disks?sort=id%3Adesc&page=2"),
        ),
        (
            "sort=-name",
            vec![1, 3],
            4,
            Some("/disks?sort=-name&page=2"),
        ),
    ] {
        let next = next.map(str::to_owned);
        assert_eq!(shown(&NUMBERED, query), (ids, total, next), "{query}");
    }
}

#[test]
fn marked_pages_begin_behind_an_item() {
    for (query, ids, next) in [
        ("limit=2", vec![1, 2], Some("/disks?limit=2&marker=2")),
        ("limit=2&marker=2", vec![3, 4], None),
        ("marker=4", vec![], None),
        ("tag=env%3Dprod", vec![1, 3], None),
        ("unknown=1&name=c", vec![3], None),
    ] {
        let (found, _, link) = shown(&MARKED, query);
        assert_eq!((found, link.as_deref()), (ids, next), "{query}");
    }
}

#[test]
fn a_query_that_makes_no_sense_names_its_parameter() {
    for (api, query, param) in [
        (&NUMBERED, "page=0", "page"),
        (&NUMBERED, "page=x", "page"),
        (&NUMBERED, "per_page=-1", "per_page"),
        (&NUMBERED, "id=x", "id"),
        (&NUMBERED, "sort=colour", "sort"),
        (&NUMBERED, "sort=id:up", "sort"),
        (&NUMBERED, "selector=a%20b", "selector"),
        (&NUMBERED, "size=1", "size"),
        (&MARKED, "tag=x", "tag"),
        (&MARKED, "limit=x", "limit"),
    ] {
        let error = api.read(Params::parse(query)).unwrap_err();
        assert_eq!(error.param, param, "{query}");
    }
}
