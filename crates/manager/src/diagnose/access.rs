//! Whether the account of the manager may do what the controllers do.

use cloudkeel_diagnose::{
    Access, AccessCheck, ManagerPod, PERMISSIONS, Permission, Read, Snapshot,
};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReview,
    SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};

use super::read;
use crate::run::Configuration;

/// How many reviews are under way at once.
const AT_ONCE: usize = 8;

/// The ServiceAccount of our Pods; in a Pod without a kubeconfig, the own one.
enum Subject {
    Account { namespace: String, name: String },
    Own,
}

/// Asks for every permission.
pub(super) async fn read_access(
    client: &Client,
    snapshot: &Snapshot,
    configuration: &Configuration,
) -> Access {
    let Some(subject) = subject(snapshot, configuration) else {
        return Access::default();
    };
    let lease = configuration.options.election.name.as_str();
    let asking = PERMISSIONS.iter().map(|permission| {
        let (client, subject) = (client.clone(), &subject);
        async move {
            let is_allowed = ask(client, subject, permission, lease).await?;
            let permission = *permission;
            Ok(AccessCheck {
                permission,
                is_allowed,
            })
        }
    });
    let asked = futures::stream::iter(asking).buffered(AT_ONCE);
    let checks: Read<Vec<AccessCheck>> = asked.try_collect().await;
    let name = match &subject {
        Subject::Account { namespace, name } => format!("{namespace}/{name}"),
        Subject::Own => "of this Pod".to_owned(),
    };
    match checks {
        Ok(checks) => Access {
            subject: Some(name),
            checks,
            unread: None,
        },
        Err(unread) => Access {
            subject: Some(name),
            checks: Vec::new(),
            unread: Some(unread),
        },
    }
}

/// With an account for each controller, that of the Pod does not have their permissions.
fn subject(snapshot: &Snapshot, configuration: &Configuration) -> Option<Subject> {
    let options = &configuration.options;
    if options.generic.use_service_account_credentials {
        return None;
    }
    let is_ours = |pod: &&ManagerPod| pod.program == "cloudkeel" && !pod.service_account.is_empty();
    let pods = snapshot.pods.as_deref().unwrap_or_default();
    if let Some(pod) = pods.iter().find(is_ours) {
        return Some(Subject::Account {
            namespace: pod.namespace.clone(),
            name: pod.service_account.clone(),
        });
    }
    configuration.is_in_cluster.then_some(Subject::Own)
}

async fn ask(
    client: Client,
    subject: &Subject,
    permission: &Permission,
    lease: &str,
) -> Read<bool> {
    let attributes = Some(attributes(permission, lease));
    let params = PostParams::default();
    let status = match subject {
        Subject::Account { namespace, name } => {
            let api: Api<SubjectAccessReview> = Api::all(client);
            let accounts = "system:serviceaccounts";
            let review = SubjectAccessReview {
                spec: SubjectAccessReviewSpec {
                    user: Some(format!("system:serviceaccount:{namespace}:{name}")),
                    groups: Some(vec![accounts.to_owned(), format!("{accounts}:{namespace}")]),
                    resource_attributes: attributes,
                    ..SubjectAccessReviewSpec::default()
                },
                ..SubjectAccessReview::default()
            };
            read("SubjectAccessReviews", api.create(&params, &review))
                .await?
                .status
        }
        Subject::Own => {
            let api: Api<SelfSubjectAccessReview> = Api::all(client);
            let review = SelfSubjectAccessReview {
                spec: SelfSubjectAccessReviewSpec {
                    resource_attributes: attributes,
                    ..SelfSubjectAccessReviewSpec::default()
                },
                ..SelfSubjectAccessReview::default()
            };
            read("SelfSubjectAccessReviews", api.create(&params, &review))
                .await?
                .status
        }
    };
    Ok(status.is_some_and(|status| status.allowed))
}

fn attributes(permission: &Permission, lease: &str) -> ResourceAttributes {
    let (resource, subresource) = match permission.resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource)),
        None => (permission.resource, None),
    };
    ResourceAttributes {
        group: Some(permission.group.to_owned()),
        resource: Some(resource.to_owned()),
        subresource: subresource.map(str::to_owned),
        verb: Some(permission.verb.to_owned()),
        namespace: permission.namespace.map(str::to_owned),
        name: permission
            .of_lease
            .then_some(lease)
            .or(permission.named)
            .map(str::to_owned),
        ..ResourceAttributes::default()
    }
}
