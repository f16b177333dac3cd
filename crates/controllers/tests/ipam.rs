//! The node IPAM controller in real time: on the real API server, with no more rights than the role that every
//! cluster has built in for it, and on the embedded one.

#[cfg(test)]
#[path = "ipam/harness.rs"]
mod harness;
#[cfg(test)]
#[path = "ipam/interposer.rs"]
mod interposer;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use cloudkeel_controllers::ipam::IpamSettings;
    use cloudkeel_controllers::runtime::{NodeWriter, WriteError};
    use cloudkeel_testkit::cluster::unique_name;
    use cloudkeel_testkit::either_api::EitherApi;
    use cloudkeel_testkit::on_both_apis;
    use futures::future::join_all;
    use ipnet::IpNet;
    use kube::Client;

    use super::harness::{Cluster, settings};
    use super::interposer::{Interposer, Manner};

    on_both_apis![
        fifty_nodes_get_networks_of_their_own_and_keep_them_over_a_restart,
        dual_stack_nodes_get_a_network_of_each_family_in_the_order_of_the_cluster,
        a_node_without_a_network_is_reported_and_gets_that_of_a_deleted_one,
        a_network_set_by_hand_meanwhile_stays_and_ours_is_free_again,
        nodes_whose_answers_were_lost_have_one_network_each_and_not_the_same,
        the_api_server_guards_what_the_controller_relies_on,
    ];

    /// Sixty-four blocks.
    fn small_range() -> IpamSettings {
        IpamSettings {
            mask_size: Some(26),
            ..settings(&["10.32.0.0/20"])
        }
    }

    async fn fifty_nodes_get_networks_of_their_own_and_keep_them_over_a_restart(on: EitherApi) {
        let cluster = Cluster::on(on).await;
        let early: Vec<_> = (0..50).map(|_| unique_name("early")).collect();
        let first = cluster.start(&small_range()).await;
        join_all(early.iter().map(|name| cluster.create(name))).await;
        let before = join_all(early.iter().map(|name| cluster.wait_for_cidrs(name))).await;
        first.stop().await;

        // While no controller runs, one Node is deleted and others are created.
        cluster.delete(&early[7]).await;
        let late: Vec<_> = (0..10).map(|_| unique_name("late")).collect();
        join_all(late.iter().map(|name| cluster.create(name))).await;
        let _second = cluster.start(&small_range()).await;
        let new = join_all(late.iter().map(|name| cluster.wait_for_cidrs(name))).await;
        let after = join_all(early.iter().map(|name| cluster.cidrs(name))).await;

        let mut expected = before;
        expected[7].clear();
        assert_eq!(after, expected, "what was given stays");
        let all: Vec<String> = after.into_iter().chain(new).flatten().collect();
        assert_eq!(all.len(), 59);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 59, "{all:?}");
        let range: IpNet = "10.32.0.0/20".parse().unwrap();
        for cidr in &all {
            let cidr: IpNet = cidr.parse().unwrap();
            assert!(cidr.prefix_len() == 26 && range.contains(&cidr), "{cidr}");
        }
    }

    async fn dual_stack_nodes_get_a_network_of_each_family_in_the_order_of_the_cluster(
        on: EitherApi,
    ) {
        let cluster = Cluster::on(on).await;
        let _running = cluster
            .start(&settings(&["fd00:77::/48", "10.77.0.0/16"]))
            .await;
        let mut seen = BTreeSet::new();
        for name in [unique_name("dual"), unique_name("dual")] {
            cluster.create(&name).await;
            let cidrs = cluster.wait_for_cidrs(&name).await;
            let families: Vec<_> = cidrs.iter().map(|cidr| cidr.contains(':')).collect();
            assert_eq!(families, [true, false], "{cidrs:?}");
            seen.extend(cidrs);
        }
        assert_eq!(seen.len(), 4, "{seen:?}");
    }

    async fn a_node_without_a_network_is_reported_and_gets_that_of_a_deleted_one(on: EitherApi) {
        let cluster = Cluster::on(on).await;
        let _running = cluster.start(&settings(&["10.88.0.0/23"])).await;
        let [leaving, staying, waiting] = ["leaving", "staying", "waiting"].map(unique_name);
        cluster.create(&leaving).await;
        let freed = cluster.wait_for_cidrs(&leaving).await;
        cluster.create(&staying).await;
        cluster.wait_for_cidrs(&staying).await;
        cluster.create(&waiting).await;

        let event = cluster.wait_for_event(&waiting, "CIDRNotAvailable").await;
        let message = format!("Node {waiting} status is now: CIDRNotAvailable");
        assert_eq!(event.message.as_deref(), Some(message.as_str()));
        assert_eq!(event.type_.as_deref(), Some("Normal"));
        let component = event.source.and_then(|source| source.component);
        assert_eq!(component.as_deref(), Some("cidrAllocator"));
        assert_eq!(cluster.cidrs(&waiting).await, [] as [&str; 0]);

        cluster.delete(&leaving).await;
        assert_eq!(cluster.wait_for_cidrs(&waiting).await, freed);
    }

    async fn a_network_set_by_hand_meanwhile_stays_and_ours_is_free_again(on: EitherApi) {
        let cluster = Cluster::on(on).await;
        let by_hand = Manner::SetFirst("10.99.1.0/24");
        let raced = Interposer::before(cluster.client().await, by_hand);
        let _running = cluster
            .start_through(&settings(&["10.99.0.0/23"]), raced.client())
            .await;
        let [first, second, third] = ["first", "second", "third"].map(unique_name);
        cluster.create(&first).await;
        assert_eq!(cluster.wait_for_cidrs(&first).await, ["10.99.1.0/24"]);
        cluster.create(&second).await;
        assert_eq!(cluster.wait_for_cidrs(&second).await, ["10.99.0.0/24"]);
        cluster.create(&third).await;
        cluster.wait_for_event(&third, "CIDRNotAvailable").await;
        assert_eq!(cluster.cidrs(&third).await, [] as [&str; 0]);
        assert_eq!(raced.writes(), [first, second]);
    }

    async fn nodes_whose_answers_were_lost_have_one_network_each_and_not_the_same(on: EitherApi) {
        let cluster = Cluster::on(on).await;
        let deaf = Interposer::before(cluster.client().await, Manner::LoseAnswers(3));
        let running = cluster
            .start_through(&settings(&["10.111.0.0/23"]), deaf.client())
            .await;
        let [first, second] = ["first", "second"].map(unique_name);
        cluster.create(&first).await;
        assert_eq!(cluster.wait_for_cidrs(&first).await, ["10.111.0.0/24"]);
        cluster.create(&second).await;
        assert_eq!(cluster.wait_for_cidrs(&second).await, ["10.111.1.0/24"]);
        running.stop().await;
        for node in [first, second] {
            let writes = deaf.writes().iter().filter(|name| **name == node).count();
            assert_eq!(writes, 3, "three tries, then it was read");
        }
    }

    async fn try_write(
        client: &Client,
        name: &str,
        uid: &str,
        cidr: &str,
    ) -> Result<(), WriteError> {
        let writer = NodeWriter::new(client.clone());
        let mut node = writer.read(name).await?;
        uid.clone_into(&mut node.facts.uid);
        writer
            .write_pod_cidrs(&node, &[cidr.parse().unwrap()])
            .await?;
        Ok(())
    }

    async fn the_api_server_guards_what_the_controller_relies_on(on: EitherApi) {
        let cluster = Cluster::on(on).await;
        let client = cluster.client().await;
        let name = unique_name("guarded");
        let uid = cluster.create(&name).await.metadata.uid.unwrap();
        let write = async |uid: &str, cidr: &str| try_write(&client, &name, uid, cidr).await;

        let predecessor = write("7c5c2d37-0000-0000-0000-000000000000", "10.1.0.0/24").await;
        assert!(predecessor.is_err(), "another UID, another Node");
        assert_eq!(cluster.cidrs(&name).await, [] as [&str; 0]);

        assert!(write(&uid, "10.1.1.0/24").await.is_ok());
        assert!(write(&uid, "10.1.1.0/24").await.is_ok(), "the same again");
        let other = write(&uid, "10.1.2.0/24").await;
        assert!(other.is_err(), "what is set stays");
        assert_eq!(cluster.cidrs(&name).await, ["10.1.1.0/24"]);
    }
}
