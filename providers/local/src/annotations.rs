//! The local cloud's own annotations. They win over the neutral ones.

cloudkeel_toolkit::annotations! {
    /// The prefix of all of them, and of machine labels that become Node labels.
    pub const PREFIX = "local.cloudkeel.dev/";

    TYPE: String = "lb-type",
        "The size of the load balancer: `small`, `medium` or `large`. Not changed if not given.";
    PROTECTED: bool = "lb-protected",
        "Whether the cloud refuses to delete the load balancer. Not changed if not given. A protected one is \
         released, not deleted, when its Service is deleted.";
    BALANCER_ID: String = "lb-id",
        "Written by cloudkeel: the ID of the load balancer in the cloud.";
}

#[cfg(test)]
mod tests;
