//! Every call that is understood, in one table: those that a cloud controller manager makes.

cloudkeel_emulation::operations! {
    /// One kind of call.
    pub enum Operation {
        /// Some actions, by ID.
        ListActions = GET "/v1/actions",
        /// One action.
        GetAction = GET "/v1/actions/{id}",
        /// Servers, perhaps by name, labels or status.
        ListServers = GET "/v1/servers",
        /// One server.
        GetServer = GET "/v1/servers/{id}",
        /// All locations, or the one of a name.
        ListLocations = GET "/v1/locations",
        /// One location.
        GetLocation = GET "/v1/locations/{id}",
        /// Networks, perhaps by name or labels.
        ListNetworks = GET "/v1/networks",
        /// One network.
        GetNetwork = GET "/v1/networks/{id}",
        /// Adds a route to a network.
        AddRoute = POST "/v1/networks/{id}/actions/add_route",
        /// Takes a route from a network.
        DeleteRoute = POST "/v1/networks/{id}/actions/delete_route",
        /// All types of balancers, or the one of a name.
        ListLoadBalancerTypes = GET "/v1/load_balancer_types",
        /// One type of balancer.
        GetLoadBalancerType = GET "/v1/load_balancer_types/{id}",
        /// Balancers, perhaps by name or labels.
        ListLoadBalancers = GET "/v1/load_balancers",
        /// One balancer.
        GetLoadBalancer = GET "/v1/load_balancers/{id}",
        /// Orders a balancer.
        CreateLoadBalancer = POST "/v1/load_balancers",
        /// Renames a balancer or replaces its labels.
        UpdateLoadBalancer = PUT "/v1/load_balancers/{id}",
        /// Gives a balancer up.
        DeleteLoadBalancer = DELETE "/v1/load_balancers/{id}",
        /// Adds a service to a balancer.
        AddService = POST "/v1/load_balancers/{id}/actions/add_service",
        /// Changes a service of a balancer.
        UpdateService = POST "/v1/load_balancers/{id}/actions/update_service",
        /// Takes a service from a balancer.
        DeleteService = POST "/v1/load_balancers/{id}/actions/delete_service",
        /// Adds a target to a balancer.
        AddTarget = POST "/v1/load_balancers/{id}/actions/add_target",
        /// Takes a target from a balancer.
        RemoveTarget = POST "/v1/load_balancers/{id}/actions/remove_target",
        /// Changes how a balancer chooses among its targets.
        ChangeAlgorithm = POST "/v1/load_balancers/{id}/actions/change_algorithm",
        /// Changes the type of a balancer.
        ChangeType = POST "/v1/load_balancers/{id}/actions/change_type",
        /// Puts a balancer into a network.
        AttachLoadBalancer = POST "/v1/load_balancers/{id}/actions/attach_to_network",
        /// Takes a balancer out of a network.
        DetachLoadBalancer = POST "/v1/load_balancers/{id}/actions/detach_from_network",
        /// Lets a balancer be reached by its public addresses.
        EnablePublicInterface = POST "/v1/load_balancers/{id}/actions/enable_public_interface",
        /// Keeps a balancer from being reached by its public addresses.
        DisablePublicInterface = POST "/v1/load_balancers/{id}/actions/disable_public_interface",
        /// Sets the name behind a public address of a balancer.
        ChangeDnsPtr = POST "/v1/load_balancers/{id}/actions/change_dns_ptr",
        /// Certificates, perhaps by name or labels.
        ListCertificates = GET "/v1/certificates",
        /// One certificate.
        GetCertificate = GET "/v1/certificates/{id}",
        /// Uploads a certificate, or has one issued.
        CreateCertificate = POST "/v1/certificates",
        /// Gives a certificate up.
        DeleteCertificate = DELETE "/v1/certificates/{id}",
        /// All dedicated servers.
        RobotListServers = GET "/robot/server",
        /// One dedicated server.
        RobotGetServer = GET "/robot/server/{id}",
        /// How a dedicated server can be reset, and whether it runs.
        RobotGetReset = GET "/robot/reset/{id}",
    }
}

impl Operation {
    /// Whether it belongs to the Robot web service, which has habits of its own.
    pub fn is_robot(self) -> bool {
        self.path().starts_with("/robot/")
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
    fn lists_and_robot_are_distinguished_from_the_rest() {
        assert!(Operation::ListServers.is_list() && Operation::RobotListServers.is_list());
        assert!(!Operation::GetServer.is_list() && !Operation::AddTarget.is_list());
        assert!(Operation::RobotGetReset.is_robot() && !Operation::GetServer.is_robot());
    }
}
