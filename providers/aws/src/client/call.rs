//! A call as data: an action and its parameters, in the query protocol of AWS.

use std::fmt::Display;

use cloudkeel_http::Request;

/// A service of AWS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Service {
    /// Instances, networks, security groups, routes.
    Ec2,
    /// Classic load balancers.
    Elb,
    /// Network load balancers.
    ElbV2,
    /// Who the credential is, and roles.
    Sts,
}

impl Service {
    pub(crate) const ALL: [Self; 4] = [Self::Ec2, Self::Elb, Self::ElbV2, Self::Sts];

    /// As `ServiceOverride` names it: the ID of the Go SDK.
    pub(crate) const fn id(self) -> &'static str {
        match self {
            Self::Ec2 => "EC2",
            Self::Elb => "Elastic Load Balancing",
            Self::ElbV2 => "Elastic Load Balancing v2",
            Self::Sts => "STS",
        }
    }

    /// As signatures and host names have it.
    pub(crate) const fn signing_name(self) -> &'static str {
        match self {
            Self::Ec2 => "ec2",
            Self::Elb | Self::ElbV2 => "elasticloadbalancing",
            Self::Sts => "sts",
        }
    }

    /// In metrics, logs and errors.
    const fn short_name(self) -> &'static str {
        match self {
            Self::Ec2 => "ec2",
            Self::Elb => "elb",
            Self::ElbV2 => "elbv2",
            Self::Sts => "sts",
        }
    }

    const fn version(self) -> &'static str {
        match self {
            Self::Ec2 => "2016-11-15",
            Self::Elb => "2012-06-01",
            Self::ElbV2 => "2015-12-01",
            Self::Sts => "2011-06-15",
        }
    }

    /// The parameter that asks for the next page, and the element of the answer that has its value.
    pub(crate) const fn page_token(self) -> (&'static str, &'static str) {
        match self {
            Self::Ec2 => ("NextToken", "nextToken"),
            Self::Elb | Self::ElbV2 | Self::Sts => ("Marker", "NextMarker"),
        }
    }
}

/// One call. Its parameters are compared in tests and printed with a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) service: Service,
    pub(crate) action: &'static str,
    pub(crate) params: Vec<(String, String)>,
    filters: usize,
}

impl Call {
    pub(crate) const fn new(service: Service, action: &'static str) -> Self {
        Self {
            service,
            action,
            params: Vec::new(),
            filters: 0,
        }
    }

    pub(crate) const fn ec2(action: &'static str) -> Self {
        Self::new(Service::Ec2, action)
    }

    pub(crate) const fn elb(action: &'static str) -> Self {
        Self::new(Service::Elb, action)
    }

    pub(crate) const fn elbv2(action: &'static str) -> Self {
        Self::new(Service::ElbV2, action)
    }

    /// One parameter.
    #[must_use]
    pub(crate) fn set(mut self, name: impl Into<String>, value: impl Display) -> Self {
        self.params.push((name.into(), value.to_string()));
        self
    }

    /// One parameter, if there is a value.
    #[must_use]
    pub(crate) fn set_some(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.set(name, value),
            None => self,
        }
    }

    /// A list: EC2 numbers the name itself, the others its `member`.
    #[must_use]
    pub(crate) fn list<T: Display>(
        mut self,
        name: &str,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        for (value, place) in values.into_iter().zip(1..) {
            let name = self.member(name, place);
            self = self.set(name, value);
        }
        self
    }

    /// A list of structures.
    #[must_use]
    pub(crate) fn each<T>(
        mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        fields: impl Fn(T) -> Vec<(&'static str, String)>,
    ) -> Self {
        for (item, place) in items.into_iter().zip(1..) {
            let member = self.member(name, place);
            for (field, value) in fields(item) {
                self = self.set(format!("{member}.{field}"), value);
            }
        }
        self
    }

    fn member(&self, name: &str, place: usize) -> String {
        match self.service {
            Service::Ec2 => format!("{name}.{place}"),
            _ => format!("{name}.member.{place}"),
        }
    }

    /// A filter of EC2: any of the values.
    #[must_use]
    pub(crate) fn filter<T: Display>(
        mut self,
        name: &str,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        self.filters += 1;
        let prefix = format!("Filter.{}", self.filters);
        self = self.set(format!("{prefix}.Name"), name);
        for (value, place) in values.into_iter().zip(1..) {
            self = self.set(format!("{prefix}.Value.{place}"), value);
        }
        self
    }

    /// Tags of something new, or more tags of something that is there.
    #[must_use]
    pub(crate) fn tags<'a>(
        self,
        name: &str,
        tags: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) -> Self {
        self.each(name, tags, |(key, value)| {
            vec![("Key", key.clone()), ("Value", value.clone())]
        })
    }

    /// Tags of a new resource of EC2.
    #[must_use]
    pub(crate) fn tag_specification<'a>(
        self,
        resource_type: &str,
        tags: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) -> Self {
        self.set("TagSpecification.1.ResourceType", resource_type)
            .tags("TagSpecification.1.Tag", tags)
    }

    /// Whether it only reads.
    pub(crate) fn reads(&self) -> bool {
        self.action.starts_with("Describe") || self.service == Service::Sts
    }

    pub(crate) fn request(&self) -> Request {
        let head = [("Action", self.action), ("Version", self.service.version())];
        let head = head.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let pairs = head.into_iter().chain(self.params.iter().cloned());
        let operation = format!("{} {}", self.service.short_name(), self.action);
        let request = Request::post("/").form(pairs).named(operation);
        if self.reads() {
            return request.read_only();
        }
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_filters_and_tags_are_numbered_as_each_service_wants_it() {
        let tags = [("k".to_owned(), "v".to_owned())].into();
        let tags: &std::collections::BTreeMap<String, String> = &tags;
        let ec2 = Call::ec2("DescribeInstances")
            .list("InstanceId", ["i-1", "i-2"])
            .filter("vpc-id", ["vpc-1"])
            .filter("tag-key", ["a", "b"])
            .tag_specification("security-group", tags);
        let elb = Call::elb("CreateLoadBalancer")
            .list("Subnets", ["s-1"])
            .tags("Tags", tags);
        let shown = |call: &Call| -> Vec<String> {
            let pairs = call.params.iter();
            pairs
                .map(|(name, value)| format!("{name}={value}"))
                .collect()
        };
        assert_eq!(
            shown(&ec2),
            [
                "InstanceId.1=i-1",
                "InstanceId.2=i-2",
                "Filter.1.Name=vpc-id",
                "Filter.1.Value.1=vpc-1",
                "Filter.2.Name=tag-key",
                "Filter.2.Value.1=a",
                "Filter.2.Value.2=b",
                "TagSpecification.1.ResourceType=security-group",
                "TagSpecification.1.Tag.1.Key=k",
                "TagSpecification.1.Tag.1.Value=v",
            ]
        );
        assert_eq!(
            shown(&elb),
            [
                "Subnets.member.1=s-1",
                "Tags.member.1.Key=k",
                "Tags.member.1.Value=v"
            ]
        );
        assert!(ec2.reads() && !ec2.request().is_mutating());
        assert!(!elb.reads() && elb.request().is_mutating());
        assert_eq!(elb.request().operation(), "elb CreateLoadBalancer");
    }
}
