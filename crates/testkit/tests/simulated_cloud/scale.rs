//! Five thousand machines.

use cloudkeel_api::{Existence, Shared};
use cloudkeel_testkit::simulated_cloud::{Operation, Settings};

use crate::support::Lab;

#[tokio::test(start_paused = true)]
async fn five_thousand_machines_are_listed_in_a_hundred_pages_and_looked_up_in_as_many() {
    let lab = Lab::set_up(5_000, Settings::default()).await;
    let list = lab.instances().list().await.unwrap();
    assert_eq!(list.instances().len(), 5_000);
    assert_eq!(lab.cloud.calls().of(Operation::ListMachines), 100);

    lab.cloud.reset_calls();
    let nodes: Vec<_> = (0..5_000).map(|index| lab.node(index)).collect();
    let found = lab
        .instances()
        .find_many(&Shared::of_each(&nodes), None)
        .await;
    assert!(
        found
            .iter()
            .all(|found| matches!(found, Existence::Present(_)))
    );
    assert_eq!(lab.cloud.calls().total(), 100);
}
