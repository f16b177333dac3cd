//! Every call that is understood, in one table: those that a cloud controller manager makes.

cloudkeel_emulation::operations! {
    /// One kind of call.
    pub enum Operation {
        /// A token for a project, and the catalogue.
        Login = POST "/identity/v3/auth/tokens" as read,
        /// Servers, perhaps by name.
        ListServers = GET "/compute/v2.1/servers/detail",
        /// One server.
        GetServer = GET "/compute/v2.1/servers/{id}",
        /// Flavors.
        ListFlavors = GET "/compute/v2.1/flavors/detail",
        /// What Neutron can do.
        ListExtensions = GET "/network/v2.0/extensions",
        /// Networks.
        ListNetworks = GET "/network/v2.0/networks",
        /// Subnets.
        ListSubnets = GET "/network/v2.0/subnets",
        /// One subnet.
        GetSubnet = GET "/network/v2.0/subnets/{id}",
        /// Ports, perhaps of a device.
        ListPorts = GET "/network/v2.0/ports",
        /// Changes a port.
        UpdatePort = PUT "/network/v2.0/ports/{id}",
        /// One router.
        GetRouter = GET "/network/v2.0/routers/{id}",
        /// Replaces the routes of a router.
        UpdateRouter = PUT "/network/v2.0/routers/{id}",
        /// Adds routes to a router.
        AddRoutes = PUT "/network/v2.0/routers/{id}/add_extraroutes",
        /// Removes routes from a router.
        RemoveRoutes = PUT "/network/v2.0/routers/{id}/remove_extraroutes",
        /// Floating IPs.
        ListFloatingIps = GET "/network/v2.0/floatingips",
        /// Creates a floating IP.
        CreateFloatingIp = POST "/network/v2.0/floatingips",
        /// Attaches or detaches a floating IP.
        UpdateFloatingIp = PUT "/network/v2.0/floatingips/{id}",
        /// Deletes a floating IP.
        DeleteFloatingIp = DELETE "/network/v2.0/floatingips/{id}",
        /// Security groups with their rules.
        ListSecurityGroups = GET "/network/v2.0/security-groups",
        /// Creates a security group.
        CreateSecurityGroup = POST "/network/v2.0/security-groups",
        /// Describes a security group.
        UpdateSecurityGroup = PUT "/network/v2.0/security-groups/{id}",
        /// Deletes a security group that no port has.
        DeleteSecurityGroup = DELETE "/network/v2.0/security-groups/{id}",
        /// Adds a rule to a security group.
        CreateRule = POST "/network/v2.0/security-group-rules",
        /// Removes a rule of a security group.
        DeleteRule = DELETE "/network/v2.0/security-group-rules/{id}",
        /// The versions of Octavia.
        ListVersions = GET "/load-balancer/",
        /// Load balancers, perhaps by name or tags.
        ListLoadBalancers = GET "/load-balancer/v2.0/lbaas/loadbalancers",
        /// One load balancer.
        GetLoadBalancer = GET "/load-balancer/v2.0/lbaas/loadbalancers/{id}",
        /// Creates a load balancer with its parts.
        CreateLoadBalancer = POST "/load-balancer/v2.0/lbaas/loadbalancers",
        /// Renames or tags a load balancer.
        UpdateLoadBalancer = PUT "/load-balancer/v2.0/lbaas/loadbalancers/{id}",
        /// Deletes a load balancer.
        DeleteLoadBalancer = DELETE "/load-balancer/v2.0/lbaas/loadbalancers/{id}",
        /// Listeners, perhaps of a load balancer.
        ListListeners = GET "/load-balancer/v2.0/lbaas/listeners",
        /// Adds a listener.
        CreateListener = POST "/load-balancer/v2.0/lbaas/listeners",
        /// Changes a listener.
        UpdateListener = PUT "/load-balancer/v2.0/lbaas/listeners/{id}",
        /// Deletes a listener.
        DeleteListener = DELETE "/load-balancer/v2.0/lbaas/listeners/{id}",
        /// Pools, perhaps of a load balancer.
        ListPools = GET "/load-balancer/v2.0/lbaas/pools",
        /// Adds a pool.
        CreatePool = POST "/load-balancer/v2.0/lbaas/pools",
        /// Changes a pool.
        UpdatePool = PUT "/load-balancer/v2.0/lbaas/pools/{id}",
        /// Deletes a pool with its members and its monitor.
        DeletePool = DELETE "/load-balancer/v2.0/lbaas/pools/{id}",
        /// The members of a pool.
        ListMembers = GET "/load-balancer/v2.0/lbaas/pools/{id}/members",
        /// Replaces the members of a pool.
        SetMembers = PUT "/load-balancer/v2.0/lbaas/pools/{id}/members",
        /// Adds a member.
        CreateMember = POST "/load-balancer/v2.0/lbaas/pools/{id}/members",
        /// Changes a member.
        UpdateMember = PUT "/load-balancer/v2.0/lbaas/pools/{id}/members/{member}",
        /// Removes a member.
        DeleteMember = DELETE "/load-balancer/v2.0/lbaas/pools/{id}/members/{member}",
        /// Health monitors.
        ListMonitors = GET "/load-balancer/v2.0/lbaas/healthmonitors",
        /// One health monitor.
        GetMonitor = GET "/load-balancer/v2.0/lbaas/healthmonitors/{id}",
        /// Adds a health monitor.
        CreateMonitor = POST "/load-balancer/v2.0/lbaas/healthmonitors",
        /// Changes a health monitor.
        UpdateMonitor = PUT "/load-balancer/v2.0/lbaas/healthmonitors/{id}",
        /// Deletes a health monitor.
        DeleteMonitor = DELETE "/load-balancer/v2.0/lbaas/healthmonitors/{id}",
        /// One volume.
        GetVolume = GET "/volume/v3/volumes/{id}",
        /// One secret.
        GetSecret = GET "/key-manager/v1/secrets/{id}",
        /// One container of secrets.
        GetContainer = GET "/key-manager/v1/containers/{id}",
    }
}
