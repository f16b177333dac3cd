use std::sync::{Arc, Mutex};

use cloudkeel_provider_local::wire::{Hop, Route};

use super::*;

/// A table with a route of another owner in it.
#[derive(Debug, Default, Clone)]
struct Fake(Arc<Mutex<FakeRoutes>>);

#[derive(Debug, Default)]
struct FakeRoutes {
    ours: BTreeMap<IpNet, IpAddr>,
    foreign: BTreeMap<IpNet, IpAddr>,
    writes: usize,
}

impl RouteTable for Fake {
    fn permitted(&mut self) -> Result<(), RouteError> {
        Ok(())
    }

    fn add(&mut self, to: IpNet, via: IpAddr) -> Result<(), RouteError> {
        let mut routes = self.0.lock().unwrap();
        if routes.ours.contains_key(&to) || routes.foreign.contains_key(&to) {
            return Err(RouteError::Exists);
        }
        routes.writes += 1;
        routes.ours.insert(to, via);
        Ok(())
    }

    fn remove(&mut self, to: IpNet, via: IpAddr) -> Result<(), RouteError> {
        let mut routes = self.0.lock().unwrap();
        if routes.ours.get(&to) != Some(&via) {
            return Err(RouteError::Missing);
        }
        routes.writes += 1;
        routes.ours.remove(&to);
        Ok(())
    }

    fn ours(&mut self) -> Result<Vec<(IpNet, IpAddr)>, RouteError> {
        let routes = self.0.lock().unwrap();
        Ok(routes.ours.iter().map(|(to, via)| (*to, *via)).collect())
    }
}

fn net(third: u8) -> IpNet {
    format!("10.244.{third}.0/24").parse().unwrap()
}

fn hop(last: u8) -> IpAddr {
    [192, 168, 1, last].into()
}

fn wanted(routes: &[(u8, Option<u8>)]) -> Vec<WantedRoute> {
    let route = |(third, via): &(u8, Option<u8>)| WantedRoute {
        route: Route {
            id: (*third).into(),
            destination: net(*third),
            hop: Hop::Machine(1),
            blackhole: via.is_none(),
        },
        via: via.map(hop),
    };
    routes.iter().map(route).collect()
}

#[test]
fn the_table_follows_the_world_with_no_write_too_many() {
    let table = Fake::default();
    let mut keeper = RouteKeeper::with(Box::new(table.clone()));
    for (case, routes, installed, writes) in [
        (
            "two",
            &[(1, Some(1)), (2, Some(2))][..],
            vec![(1, 1), (2, 2)],
            2,
        ),
        (
            "again",
            &[(1, Some(1)), (2, Some(2))],
            vec![(1, 1), (2, 2)],
            2,
        ),
        (
            "moved",
            &[(1, Some(1)), (2, Some(3))],
            vec![(1, 1), (2, 3)],
            4,
        ),
        ("leads nowhere", &[(1, None), (2, Some(3))], vec![(2, 3)], 5),
        ("gone", &[], vec![], 6),
    ] {
        keeper.apply(&wanted(routes));
        let expected: BTreeMap<_, _> = installed.iter().map(|(n, h)| (net(*n), hop(*h))).collect();
        let now = table.0.lock().unwrap();
        assert_eq!((&now.ours, now.writes), (&expected, writes), "{case}");
        assert_eq!(keeper.stats().installed, expected, "{case}");
    }
}

#[test]
fn a_foreign_route_is_reported_and_left_alone() {
    let table = Fake::default();
    table.0.lock().unwrap().foreign.insert(net(1), hop(9));
    let mut keeper = RouteKeeper::with(Box::new(table.clone()));
    keeper.apply(&wanted(&[(1, Some(1)), (2, Some(2))]));
    let problem = keeper.stats().problems.get(&net(1)).unwrap();
    assert_eq!(problem, "there is a route to this network already");
    keeper.close();
    let left = table.0.lock().unwrap();
    assert!(left.ours.is_empty(), "{left:?}");
    assert_eq!(left.foreign.len(), 1);
}

#[test]
fn what_a_killed_process_left_behind_is_taken_over() {
    let table = Fake::default();
    let left = BTreeMap::from([(net(1), hop(1)), (net(2), hop(9))]);
    table.0.lock().unwrap().ours = left;
    let mut keeper = RouteKeeper::with(Box::new(table.clone()));
    keeper.apply(&wanted(&[(1, Some(1)), (2, Some(2))]));
    let now = table.0.lock().unwrap();
    let expected = BTreeMap::from([(net(1), hop(1)), (net(2), hop(2))]);
    assert_eq!((&now.ours, now.writes), (&expected, 2));
}

#[test]
fn a_route_that_was_deleted_is_put_back() {
    let table = Fake::default();
    let mut keeper = RouteKeeper::with(Box::new(table.clone()));
    let routes = wanted(&[(1, Some(1)), (2, Some(2))]);
    keeper.apply(&routes);
    assert!(!keeper.look_again(), "all is well");
    table.0.lock().unwrap().ours.remove(&net(1));
    assert!(keeper.look_again());
    keeper.apply(&routes);
    assert_eq!(table.0.lock().unwrap().ours.len(), 2);
}

#[test]
fn without_the_kernel_the_reason_is_reported() {
    let mut keeper = RouteKeeper::new(RouteMode::Table).unwrap();
    keeper.apply(&wanted(&[(1, Some(1))]));
    let stats = keeper.stats();
    assert!(!stats.kernel && stats.installed.is_empty());
    assert_eq!(stats.reason.as_deref(), Some("--routes=table was given"));
}
