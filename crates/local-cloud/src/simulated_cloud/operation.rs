//! Everything that can be asked of the cloud, in one table.

cloudkeel_emulation::operations! {
    /// One kind of call.
    pub enum Operation {
        /// The project and region of the token.
        ReadScope = GET "/v1/scope",
        /// All machines, or those of some IDs or a name.
        ListMachines = GET "/v1/machines",
        /// One machine.
        GetMachine = GET "/v1/machines/{id}",
        /// Makes a machine.
        CreateMachine = POST "/v1/machines",
        /// Destroys a machine.
        DeleteMachine = DELETE "/v1/machines/{id}",
        /// Switches a machine on.
        PowerOn = POST "/v1/machines/{id}/power-on",
        /// Switches a machine off.
        PowerOff = POST "/v1/machines/{id}/power-off",
        /// All balancers, or those of a name or with some labels.
        ListBalancers = GET "/v1/balancers",
        /// One balancer.
        GetBalancer = GET "/v1/balancers/{id}",
        /// Makes a balancer.
        CreateBalancer = POST "/v1/balancers",
        /// Changes a balancer.
        ChangeBalancer = PATCH "/v1/balancers/{id}",
        /// Takes a balancer down.
        DeleteBalancer = DELETE "/v1/balancers/{id}",
        /// Replaces the listeners of a balancer.
        SetListeners = PUT "/v1/balancers/{id}/listeners",
        /// Adds, drains and removes targets of a balancer.
        ChangeTargets = POST "/v1/balancers/{id}/targets",
        /// All routes.
        ListRoutes = GET "/v1/routes",
        /// Makes a route.
        CreateRoute = POST "/v1/routes",
        /// Removes a route.
        DeleteRoute = DELETE "/v1/routes/{id}",
        /// Makes and removes many routes.
        BatchRoutes = POST "/v1/routes/batch",
        /// One disk.
        GetVolume = GET "/v1/volumes/{id}",
        /// All managed clusters.
        ListClusters = GET "/v1/clusters",
        /// How far some work is.
        GetAction = GET "/v1/actions/{id}",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_operations_share_method_and_path() {
        let places: BTreeSet<_> = Operation::ALL.iter().map(ToString::to_string).collect();
        assert_eq!(places.len(), Operation::ALL.len());
    }

    #[test]
    fn lists_are_distinguished_from_single_reads_and_changes() {
        assert!(Operation::ListMachines.is_list());
        assert!(!Operation::ReadScope.is_list());
        assert!(!Operation::SetListeners.is_list());
    }
}
