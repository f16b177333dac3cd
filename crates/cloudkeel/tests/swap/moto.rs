//! An account of moto, which the tiers `aws` and `go-ccm-aws` run: made, filled and read through its second API.

use cloudkeel_http::{Client, Request};
use serde_json::{Map, Value, json};

/// The parameters of a call.
pub(crate) type Call = Map<String, Value>;

/// One account. Programs reach it by a key whose ID is its number.
pub(crate) struct Moto {
    control: Client,
    pub(crate) url: String,
    /// The IDs of what an installer left in it.
    pub(crate) facts: Value,
}

impl Moto {
    pub(crate) async fn new() -> Self {
        let url = std::env::var("MOTO_URL").expect("the tier runs moto");
        let control = Client::builder(url.clone()).build().expect("a client");
        let made = Request::post("/kit/clouds").json(json!([]));
        let facts = control.fetch(made).await.expect("an account");
        Self {
            control,
            url,
            facts,
        }
    }

    pub(crate) fn account(&self) -> &str {
        self.fact("account")
    }

    fn fact(&self, name: &str) -> &str {
        self.facts[name].as_str().expect("a fact")
    }

    /// Something changes behind the back of all programs.
    pub(crate) async fn change(&self, what: &str, arguments: Value) -> Value {
        self.post("clouds", what, arguments).await
    }

    /// Every call since this was asked last: its parameters.
    pub(crate) async fn calls(&self) -> Vec<Call> {
        let path = format!("/kit/clouds/{}/calls", self.account());
        let calls = self.control.fetch(Request::get(path)).await;
        calls.unwrap_or_else(|error| panic!("{error}"))
    }

    /// A function of the records.
    pub(crate) async fn record(&self, function: &str, arguments: Value) -> Value {
        self.post("records", function, arguments).await
    }

    async fn post(&self, of: &str, what: &str, arguments: Value) -> Value {
        let path = format!("/kit/{of}/{}/{what}", self.account());
        let answer = self
            .control
            .fetch(Request::post(path).json(arguments))
            .await;
        answer.unwrap_or_else(|error| panic!("{what}: {error}"))
    }

    /// A `cloud.conf` off an instance, with these lines more in its first section.
    pub(crate) fn cloud_config(&self, more: &str) -> String {
        let subnet = self.facts["subnets"]["private"][0].as_str();
        let global = format!(
            "[Global]\nZone = us-east-1a\nVPC = {}\nSubnetID = {}\nKubernetesClusterID = {}\n{more}",
            self.fact("vpc"),
            subnet.expect("a subnet"),
            self.fact("cluster"),
        );
        // The names of the services are those of the Go SDK.
        let services = ["EC2", "Elastic Load Balancing", "Elastic Load Balancing v2"];
        let overrides = services.map(|service| {
            format!(
                "[ServiceOverride \"{service}\"]\nService = {service}\nRegion = us-east-1\nURL = {}\n\
                 SigningRegion = us-east-1\n",
                self.url
            )
        });
        [global, overrides.concat()].concat()
    }
}

/// `CreateRoute`, of a call.
pub(crate) fn action(call: &Call) -> &str {
    call["Action"].as_str().expect("a name")
}

pub(crate) fn is_mutating(call: &Call) -> bool {
    !action(call).starts_with("Describe")
}
