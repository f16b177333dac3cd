//! Every call that is understood, in one table: those that a cloud controller manager makes.

cloudkeel_emulation::operations! {
    /// One kind of call.
    pub enum Operation {
        /// Whose token it is.
        GetAccount = GET "/v2/account",
        /// All regions.
        ListRegions = GET "/v2/regions",
        /// Droplets, perhaps by name.
        ListDroplets = GET "/v2/droplets",
        /// One droplet.
        GetDroplet = GET "/v2/droplets/{id}",
        /// All load balancers.
        ListLoadBalancers = GET "/v2/load_balancers",
        /// One load balancer.
        GetLoadBalancer = GET "/v2/load_balancers/{id}",
        /// Creates a load balancer, or says with `validate_only` whether it could.
        CreateLoadBalancer = POST "/v2/load_balancers",
        /// Replaces all settings of a load balancer, or says with `validate_only` whether it could.
        UpdateLoadBalancer = PUT "/v2/load_balancers/{id}",
        /// Deletes a load balancer.
        DeleteLoadBalancer = DELETE "/v2/load_balancers/{id}",
        /// Certificates, perhaps by name.
        ListCertificates = GET "/v2/certificates",
        /// One certificate.
        GetCertificate = GET "/v2/certificates/{id}",
        /// Creates a tag.
        CreateTag = POST "/v2/tags",
        /// One tag.
        GetTag = GET "/v2/tags/{name}",
        /// Deletes a tag, and takes it off everything.
        DeleteTag = DELETE "/v2/tags/{name}",
        /// Puts a tag on resources.
        TagResources = POST "/v2/tags/{name}/resources",
        /// Takes a tag off resources.
        UntagResources = DELETE "/v2/tags/{name}/resources",
        /// All firewalls.
        ListFirewalls = GET "/v2/firewalls",
        /// One firewall.
        GetFirewall = GET "/v2/firewalls/{id}",
        /// Creates a firewall.
        CreateFirewall = POST "/v2/firewalls",
        /// Replaces all settings of a firewall.
        UpdateFirewall = PUT "/v2/firewalls/{id}",
        /// The region of the droplet that asks, from its metadata service.
        GetOwnRegion = GET "/metadata/v1/region",
    }
}
