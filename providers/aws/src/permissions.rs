//! The IAM permissions that each feature needs, and the policies made of them.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// What some of the provider's work needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permission {
    /// The feature.
    pub feature: &'static str,
    /// What it needs, without a wildcard.
    pub actions: &'static [&'static str],
}

/// The permissions of each feature. Every cluster needs those of `Nodes`.
pub const PERMISSIONS: &[Permission] = &[
    Permission {
        feature: "Nodes",
        actions: &[
            "ec2:DescribeAvailabilityZones",
            "ec2:DescribeInstances",
            "ec2:DescribeInstanceTopology",
            "ec2:DescribeSubnets",
        ],
    },
    Permission {
        feature: "Fargate Nodes",
        actions: &["ec2:DescribeNetworkInterfaces"],
    },
    Permission {
        feature: "Routes",
        actions: &[
            "ec2:CreateRoute",
            "ec2:DeleteRoute",
            "ec2:DescribeRouteTables",
            "ec2:ModifyInstanceAttribute",
        ],
    },
    Permission {
        feature: "Tagging",
        actions: &["ec2:CreateTags", "ec2:DeleteTags"],
    },
    Permission {
        feature: "PersistentVolume labels",
        actions: &["ec2:DescribeVolumes"],
    },
    Permission {
        feature: "Load balancers, both kinds",
        actions: &[
            "ec2:AuthorizeSecurityGroupIngress",
            "ec2:CreateSecurityGroup",
            "ec2:CreateTags",
            "ec2:DeleteSecurityGroup",
            "ec2:DeleteTags",
            "ec2:DescribeRouteTables",
            "ec2:DescribeSecurityGroups",
            "ec2:RevokeSecurityGroupIngress",
            "elasticloadbalancing:AddTags",
            "elasticloadbalancing:CreateLoadBalancer",
            "elasticloadbalancing:DeleteLoadBalancer",
            "elasticloadbalancing:DescribeAccountLimits",
            "elasticloadbalancing:DescribeLoadBalancerAttributes",
            "elasticloadbalancing:DescribeLoadBalancers",
            "elasticloadbalancing:DescribeTags",
            "elasticloadbalancing:ModifyLoadBalancerAttributes",
            "elasticloadbalancing:RemoveTags",
            "iam:CreateServiceLinkedRole",
        ],
    },
    Permission {
        feature: "Classic load balancers",
        actions: &[
            "elasticloadbalancing:ApplySecurityGroupsToLoadBalancer",
            "elasticloadbalancing:AttachLoadBalancerToSubnets",
            "elasticloadbalancing:ConfigureHealthCheck",
            "elasticloadbalancing:CreateLoadBalancerListeners",
            "elasticloadbalancing:CreateLoadBalancerPolicy",
            "elasticloadbalancing:DeleteLoadBalancerListeners",
            "elasticloadbalancing:DeregisterInstancesFromLoadBalancer",
            "elasticloadbalancing:DescribeInstanceHealth",
            "elasticloadbalancing:DetachLoadBalancerFromSubnets",
            "elasticloadbalancing:RegisterInstancesWithLoadBalancer",
            "elasticloadbalancing:SetLoadBalancerPoliciesForBackendServer",
            "elasticloadbalancing:SetLoadBalancerPoliciesOfListener",
        ],
    },
    Permission {
        feature: "Network load balancers",
        actions: &[
            "elasticloadbalancing:CreateListener",
            "elasticloadbalancing:CreateTargetGroup",
            "elasticloadbalancing:DeleteListener",
            "elasticloadbalancing:DeleteTargetGroup",
            "elasticloadbalancing:DeregisterTargets",
            "elasticloadbalancing:DescribeListeners",
            "elasticloadbalancing:DescribeTargetGroupAttributes",
            "elasticloadbalancing:DescribeTargetGroups",
            "elasticloadbalancing:DescribeTargetHealth",
            "elasticloadbalancing:ModifyListener",
            "elasticloadbalancing:ModifyTargetGroup",
            "elasticloadbalancing:ModifyTargetGroupAttributes",
            "elasticloadbalancing:RegisterTargets",
            "elasticloadbalancing:SetSecurityGroups",
        ],
    },
    Permission {
        feature: "A role of its own (RoleARN)",
        actions: &["sts:AssumeRole"],
    },
];

/// The section of the reference page.
pub(crate) fn reference() -> String {
    let mut text = String::from(
        "## IAM permissions\n\nEach feature needs these actions. Without `elasticloadbalancing:DescribeTags` and \
         `elasticloadbalancing:RemoveTags`, which the policy of the Go CCM lacks, load balancers are recognised by their \
         names alone, as by the Go CCM.\n\n| feature | actions |\n|---|---|\n",
    );
    for Permission { feature, actions } in PERMISSIONS {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {feature} | `{}` |", actions.join("`, `"));
    }
    let policy = serde_json::to_string_pretty(&policy(&[])).unwrap_or_default();
    let _ = write!(
        text,
        "\nAll of them as a policy:\n\n```json\n{policy}\n```\n"
    );
    text
}

/// The IAM policy for these features; an empty list is for all of them.
pub fn policy(features: &[&str]) -> Value {
    let chosen = PERMISSIONS.iter();
    let chosen = chosen.filter(|p| features.is_empty() || features.contains(&p.feature));
    let mut actions: Vec<_> = chosen.flat_map(|permission| permission.actions).collect();
    actions.sort();
    actions.dedup();
    json!({
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}],
    })
}
