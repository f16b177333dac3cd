//! Every call that is understood, in one table.

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
        /// Orders a server.
        CreateServer = POST "/v1/servers",
        /// Renames a server or replaces its labels.
        UpdateServer = PUT "/v1/servers/{id}",
        /// Gives a server up.
        DeleteServer = DELETE "/v1/servers/{id}",
        /// The actions of a server.
        ListServerActions = GET "/v1/servers/{id}/actions",
        /// Switches a server on.
        PowerOn = POST "/v1/servers/{id}/actions/poweron",
        /// Cuts the power of a server.
        PowerOff = POST "/v1/servers/{id}/actions/poweroff",
        /// Asks the system of a server to end.
        Shutdown = POST "/v1/servers/{id}/actions/shutdown",
        /// Asks the system of a server to start again.
        Reboot = POST "/v1/servers/{id}/actions/reboot",
        /// Cuts the power of a server and gives it back.
        Reset = POST "/v1/servers/{id}/actions/reset",
        /// Puts a server into a network.
        AttachServer = POST "/v1/servers/{id}/actions/attach_to_network",
        /// Takes a server out of a network.
        DetachServer = POST "/v1/servers/{id}/actions/detach_from_network",
        /// Replaces the further addresses of a server in a network.
        ChangeAliasIps = POST "/v1/servers/{id}/actions/change_alias_ips",
        /// Protects a server, or no longer.
        ChangeServerProtection = POST "/v1/servers/{id}/actions/change_protection",
        /// Locations, perhaps by name.
        ListLocations = GET "/v1/locations",
        /// One location.
        GetLocation = GET "/v1/locations/{id}",
        /// Data centres, perhaps by name.
        ListDatacenters = GET "/v1/datacenters",
        /// One data centre.
        GetDatacenter = GET "/v1/datacenters/{id}",
        /// Types of servers, perhaps by name.
        ListServerTypes = GET "/v1/server_types",
        /// One type of server.
        GetServerType = GET "/v1/server_types/{id}",
        /// Images, perhaps by name.
        ListImages = GET "/v1/images",
        /// One image.
        GetImage = GET "/v1/images/{id}",
        /// Networks, perhaps by name or labels.
        ListNetworks = GET "/v1/networks",
        /// One network.
        GetNetwork = GET "/v1/networks/{id}",
        /// Makes a network.
        CreateNetwork = POST "/v1/networks",
        /// Renames a network or replaces its labels.
        UpdateNetwork = PUT "/v1/networks/{id}",
        /// Removes a network.
        DeleteNetwork = DELETE "/v1/networks/{id}",
        /// The actions of a network.
        ListNetworkActions = GET "/v1/networks/{id}/actions",
        /// Adds a subnet.
        AddSubnet = POST "/v1/networks/{id}/actions/add_subnet",
        /// Removes a subnet.
        DeleteSubnet = POST "/v1/networks/{id}/actions/delete_subnet",
        /// Adds a route.
        AddRoute = POST "/v1/networks/{id}/actions/add_route",
        /// Removes a route.
        DeleteRoute = POST "/v1/networks/{id}/actions/delete_route",
        /// Widens a network.
        ChangeIpRange = POST "/v1/networks/{id}/actions/change_ip_range",
        /// Protects a network, or no longer.
        ChangeNetworkProtection = POST "/v1/networks/{id}/actions/change_protection",
        /// Types of balancers, perhaps by name.
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
        /// The actions of a balancer.
        ListLoadBalancerActions = GET "/v1/load_balancers/{id}/actions",
        /// Adds a service to a balancer.
        AddService = POST "/v1/load_balancers/{id}/actions/add_service",
        /// Changes a service of a balancer.
        UpdateService = POST "/v1/load_balancers/{id}/actions/update_service",
        /// Removes a service from a balancer.
        DeleteService = POST "/v1/load_balancers/{id}/actions/delete_service",
        /// Adds a target to a balancer.
        AddTarget = POST "/v1/load_balancers/{id}/actions/add_target",
        /// Removes a target from a balancer.
        RemoveTarget = POST "/v1/load_balancers/{id}/actions/remove_target",
        /// Changes how a balancer chooses.
        ChangeAlgorithm = POST "/v1/load_balancers/{id}/actions/change_algorithm",
        /// Changes the type of a balancer.
        ChangeType = POST "/v1/load_balancers/{id}/actions/change_type",
        /// Protects a balancer, or no longer.
        ChangeProtection = POST "/v1/load_balancers/{id}/actions/change_protection",
        /// Puts a balancer into a network.
        AttachLoadBalancer = POST "/v1/load_balancers/{id}/actions/attach_to_network",
        /// Takes a balancer out of a network.
        DetachLoadBalancer = POST "/v1/load_balancers/{id}/actions/detach_from_network",
        /// Makes a balancer public.
        EnablePublicInterface = POST "/v1/load_balancers/{id}/actions/enable_public_interface",
        /// Makes a balancer private.
        DisablePublicInterface = POST "/v1/load_balancers/{id}/actions/disable_public_interface",
        /// Changes the name behind an address of a balancer.
        ChangeDnsPtr = POST "/v1/load_balancers/{id}/actions/change_dns_ptr",
        /// Certificates, perhaps by name, labels or type.
        ListCertificates = GET "/v1/certificates",
        /// One certificate.
        GetCertificate = GET "/v1/certificates/{id}",
        /// Uploads a certificate or has one issued.
        CreateCertificate = POST "/v1/certificates",
        /// Renames a certificate or replaces its labels.
        UpdateCertificate = PUT "/v1/certificates/{id}",
        /// Removes a certificate.
        DeleteCertificate = DELETE "/v1/certificates/{id}",
        /// The actions of a certificate.
        ListCertificateActions = GET "/v1/certificates/{id}/actions",
        /// Tries once more to have a certificate issued.
        RetryCertificate = POST "/v1/certificates/{id}/actions/retry",
        /// Robot: all servers.
        RobotListServers = GET "/robot/server",
        /// Robot: one server.
        RobotGetServer = GET "/robot/server/{id}",
        /// Robot: how every server can be reset.
        RobotListResets = GET "/robot/reset",
        /// Robot: how one server can be reset, and whether it runs.
        RobotGetReset = GET "/robot/reset/{id}",
        /// Robot: resets a server.
        RobotReset = POST "/robot/reset/{id}",
    }
}

impl Operation {
    /// Whether it belongs to the Robot web service, with its own credentials and its own errors.
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
    fn lists_and_mutations_are_told_from_their_place() {
        assert!(Operation::ListServers.is_list());
        assert!(Operation::ListLoadBalancerActions.is_list());
        assert!(!Operation::GetServer.is_list());
        assert!(!Operation::CreateServer.is_list());
        assert!(Operation::UpdateServer.is_mutating());
        assert!(!Operation::GetServer.is_mutating());
        assert!(Operation::RobotReset.is_robot() && Operation::RobotReset.is_mutating());
        assert!(!Operation::GetServer.is_robot());
    }
}
