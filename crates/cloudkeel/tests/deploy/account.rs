//! A ServiceAccount of one test, with exactly the permissions it is given.

use std::path::PathBuf;

use cloudkeel_testkit::cluster::{eventually, unique_name};
use cloudkeel_testkit::control_plane::ControlPlane;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};

use crate::harness::DEADLINE;
use crate::permissions::Grant;

const NAMESPACE: &str = "kube-system";
const RBAC: &str = "rbac.authorization.k8s.io";

/// A ServiceAccount in kube-system.
pub(crate) struct Account {
    name: String,
    client: Client,
}

impl Account {
    /// A new one, which may do nothing.
    pub(crate) async fn create(client: &Client) -> Self {
        let name = unique_name("account");
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
        let account = ServiceAccount {
            metadata: named(&name),
            ..ServiceAccount::default()
        };
        let made = accounts.create(&PostParams::default(), &account).await;
        made.expect("the account is made");
        Self::existing(client, &name)
    }

    /// One that is there already.
    pub(crate) fn existing(client: &Client, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            client: client.clone(),
        }
    }

    /// Grants all of this and waits until the API server knows.
    pub(crate) async fn grant(&self, grants: &[Grant]) {
        for grant in grants {
            match grant {
                Grant::Own {
                    namespace: None,
                    rules,
                    ..
                } => self.grant_everywhere(rules).await,
                Grant::Own {
                    namespace: Some(namespace),
                    rules,
                    ..
                } => self.grant_in(namespace, rules).await,
                Grant::BuiltIn { role, namespace } => self.bind(namespace, role).await,
            }
        }
        self.knows_all(grants).await;
    }

    /// Waits until the API server knows all of this.
    pub(crate) async fn knows_all(&self, grants: &[Grant]) {
        for grant in grants {
            self.knows(grant).await;
        }
    }

    async fn grant_everywhere(&self, rules: &[PolicyRule]) {
        let name = unique_name(&self.name);
        let role = ClusterRole {
            metadata: named(&name),
            rules: Some(rules.to_vec()),
            ..ClusterRole::default()
        };
        let binding = ClusterRoleBinding {
            metadata: named(&name),
            role_ref: reference("ClusterRole", &name),
            subjects: Some(vec![self.subject()]),
        };
        let roles: Api<ClusterRole> = Api::all(self.client.clone());
        let made = roles.create(&PostParams::default(), &role).await;
        made.expect("the role is made");
        let bindings: Api<ClusterRoleBinding> = Api::all(self.client.clone());
        let made = bindings.create(&PostParams::default(), &binding).await;
        made.expect("the binding is made");
    }

    async fn grant_in(&self, namespace: &str, rules: &[PolicyRule]) {
        let name = unique_name(&self.name);
        let role = Role {
            metadata: named(&name),
            rules: Some(rules.to_vec()),
        };
        let roles: Api<Role> = Api::namespaced(self.client.clone(), namespace);
        let made = roles.create(&PostParams::default(), &role).await;
        made.expect("the role is made");
        self.bind(namespace, &name).await;
    }

    async fn bind(&self, namespace: &str, role: &str) {
        let binding = RoleBinding {
            metadata: named(&unique_name(&self.name)),
            role_ref: reference("Role", role),
            subjects: Some(vec![self.subject()]),
        };
        let bindings: Api<RoleBinding> = Api::namespaced(self.client.clone(), namespace);
        let made = bindings.create(&PostParams::default(), &binding).await;
        made.expect("the binding is made");
    }

    /// A role becomes known as a whole, so one of its rules stands for all.
    async fn knows(&self, grant: &Grant) {
        let question = match grant {
            Grant::Own {
                rules, namespace, ..
            } => match rules.first() {
                Some(rule) => question(rule, namespace.as_deref()),
                None => return,
            },
            Grant::BuiltIn { namespace, .. } => SubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    namespace: Some(namespace.clone()),
                    resource: Some("configmaps".to_owned()),
                    name: Some("extension-apiserver-authentication".to_owned()),
                    verb: Some("get".to_owned()),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
        };
        eventually(&format!("{grant:?}"), DEADLINE, || async {
            self.may(question.clone()).await
        })
        .await;
    }

    /// Whether it may do this to this resource of this group, anywhere.
    pub(crate) async fn may_anywhere(&self, verb: &str, group: &str, resource: &str) -> bool {
        let rule = PolicyRule {
            api_groups: Some(vec![group.to_owned()]),
            resources: Some(vec![resource.to_owned()]),
            verbs: vec![verb.to_owned()],
            ..PolicyRule::default()
        };
        self.may(question(&rule, None)).await
    }

    async fn may(&self, question: SubjectAccessReviewSpec) -> bool {
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(self.user()),
                ..question
            },
            ..SubjectAccessReview::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = reviews.create(&PostParams::default(), &review).await;
        let answer = answer.expect("an administrator may ask");
        answer.status.is_some_and(|status| status.allowed)
    }

    /// What the API server calls it.
    pub(crate) fn user(&self) -> String {
        format!("system:serviceaccount:{NAMESPACE}:{}", self.name)
    }

    /// A token for the API server, as a Pod would be given one.
    pub(crate) async fn token(&self) -> String {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), NAMESPACE);
        let request = TokenRequest::default();
        let by = PostParams::default();
        let answer = accounts.create_subresource("token", &self.name, &by, &request);
        let answer: TokenRequest = answer.await.expect("the account is there");
        answer.status.expect("a token").token
    }

    /// A kubeconfig with its token.
    pub(crate) async fn kubeconfig(&self) -> PathBuf {
        let plane = ControlPlane::shared().await;
        let written = plane.service_account_kubeconfig(NAMESPACE, &self.name);
        written.await.expect("the account is there")
    }

    fn subject(&self) -> Subject {
        Subject {
            kind: "ServiceAccount".to_owned(),
            name: self.name.clone(),
            namespace: Some(NAMESPACE.to_owned()),
            ..Subject::default()
        }
    }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    }
}

fn reference(kind: &str, name: &str) -> RoleRef {
    RoleRef {
        api_group: RBAC.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
    }
}

/// The access review of the first thing that this rule allows.
fn question(rule: &PolicyRule, namespace: Option<&str>) -> SubjectAccessReviewSpec {
    let first = |list: &Option<Vec<String>>| list.as_ref()?.first().cloned();
    let verb = rule.verbs.first().cloned();
    if let Some(path) = first(&rule.non_resource_urls) {
        return SubjectAccessReviewSpec {
            non_resource_attributes: Some(NonResourceAttributes {
                path: Some(path),
                verb,
            }),
            ..SubjectAccessReviewSpec::default()
        };
    }
    let resource = first(&rule.resources).expect("a rule about something");
    let (resource, part) = match resource.split_once('/') {
        Some((resource, part)) => (resource.to_owned(), Some(part.to_owned())),
        None => (resource, None),
    };
    SubjectAccessReviewSpec {
        resource_attributes: Some(ResourceAttributes {
            group: first(&rule.api_groups),
            resource: Some(resource),
            subresource: part,
            name: first(&rule.resource_names),
            namespace: namespace.map(str::to_owned),
            verb,
            ..ResourceAttributes::default()
        }),
        ..SubjectAccessReviewSpec::default()
    }
}
