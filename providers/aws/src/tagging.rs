//! The tagging controller: instances of Nodes get the operator's tags.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    BackgroundContext, BackgroundController, CloudError, ErrorKind, MetadataChanges, NodeFacts,
    ProvidedController, Shared, names,
};
use cloudkeel_toolkit::hex;
use md5::{Digest as _, Md5};

use crate::account::Account;
use crate::client::Call;
use crate::id::AwsId;
use crate::wire::Tags;

/// Its name, as in `--controllers`.
pub(crate) const NAME: &str = "tagging";

/// What is known of it before the provider is built: it runs only if it is asked for.
pub(crate) const PROVIDED: ProvidedController = ProvidedController {
    name: NAME,
    on_by_default: false,
    watches_services: false,
};

/// The label of a Node whose instance has the tags: a digest of them.
const LABEL: &str = "k8s.io/cloud-provider-aws";

/// As many instances as one call tags.
const BATCH: usize = 200;

/// How old the list may be that shows which tags are there.
const INSTANCES_FRESH: Duration = Duration::from_secs(10);

/// When to try again what failed.
const RETRY: Duration = Duration::from_secs(30);

/// Sets tags on the instances of Nodes, and takes them off when a Node is deleted.
pub(crate) struct TaggingController {
    account: Arc<Account>,
    tags: Tags,
}

/// The digest of tags that the Go CCM labels Nodes with.
fn digest(tags: &Tags) -> String {
    let pairs: Vec<_> = tags
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    hex(&Md5::digest(pairs.join(",")))
}

impl TaggingController {
    pub(crate) fn new(account: &Arc<Account>, tags: &Tags) -> Option<Self> {
        let account = Arc::clone(account);
        let tags = tags.clone();
        (!tags.is_empty()).then_some(Self { account, tags })
    }

    /// Tags what lacks a tag, and labels Nodes whose instances have all of them.
    async fn tag(
        &self,
        nodes: &BTreeMap<String, Shared<NodeFacts>>,
        context: &BackgroundContext,
    ) -> Result<(), CloudError> {
        let label = digest(&self.tags);
        let is_open = |node: &NodeFacts| {
            node.labels.get(LABEL) != Some(&label) && !names::is_paused(&node.annotations)
        };
        let open: BTreeMap<_, _> = nodes.iter().filter(|(_, node)| is_open(node)).collect();
        if open.is_empty() {
            return Ok(());
        }
        let known = self.account.no_older_than(INSTANCES_FRESH).await?;
        let has_all = |id: &String| {
            let instance = known.iter().find(|instance| instance.id == *id);
            let lacks = |(key, value): (&String, &String)| {
                instance.is_none_or(|instance| instance.tags.get(key) != Some(value))
            };
            !self.tags.iter().any(lacks)
        };
        let (tagged, missing): (Vec<_>, Vec<_>) =
            open.keys().map(|id| (*id).clone()).partition(has_all);
        let (mut done, mut failure) = (tagged, None);
        for ids in missing.chunks(BATCH) {
            match self.change("CreateTags", ids).await {
                Ok(ids) => done.extend(ids),
                Err(error) => failure = Some(error),
            }
        }
        let labels = MetadataChanges::from([(LABEL.to_owned(), Some(label.clone()))]);
        for id in done {
            if let Some(node) = open.get(&id) {
                match context.writer.label_node(node, &labels).await {
                    Err(error) if error.is_not_found() => {}
                    written => written?,
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Changes the tags of instances at once; if one of them is not there, each by itself. Returns those that
    /// were changed.
    async fn change(
        &self,
        action: &'static str,
        ids: &[String],
    ) -> Result<Vec<String>, CloudError> {
        let call = |ids: &[String]| {
            Call::ec2(action)
                .list("ResourceId", ids)
                .tags("Tag", &self.tags)
        };
        match self.account.api.send(&call(ids)).await {
            Ok(_) => return Ok(ids.to_vec()),
            Err(error) if is_of_one(&error) && ids.len() > 1 => {}
            Err(error) if is_of_one(&error) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        }
        let mut done = Vec::new();
        for id in ids {
            match self.account.api.send(&call(std::slice::from_ref(id))).await {
                Ok(_) => done.push(id.clone()),
                Err(error) if is_of_one(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }
}

/// Whether one of the instances is to blame.
fn is_of_one(error: &CloudError) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid)
}

#[async_trait]
impl BackgroundController for TaggingController {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn run(&self, context: BackgroundContext) -> Result<(), CloudError> {
        let mut last = BTreeMap::new();
        loop {
            let snapshot = context.nodes.snapshot();
            let id = |node: &Shared<NodeFacts>| AwsId::read_instance(node.provider_id.as_ref()?);
            let nodes: BTreeMap<_, _> = snapshot
                .iter()
                .filter_map(|node| Some((id(node)?, node.clone())))
                .collect();
            let gone = last.keys().filter(|id| !nodes.contains_key(*id));
            let gone: Vec<String> = gone.cloned().collect();
            let work = async {
                for ids in gone.chunks(BATCH) {
                    self.change("DeleteTags", ids).await?;
                }
                self.tag(&nodes, &context).await
            };
            let done = tokio::select! {
                () = context.stop.cancelled() => return Ok(()),
                done = work => done,
            };
            let retry = match done {
                Ok(()) => {
                    last = nodes;
                    Duration::MAX
                }
                Err(error) => {
                    tracing::debug!(%error, "tagging failed, trying again");
                    RETRY
                }
            };
            tokio::select! {
                () = context.stop.cancelled() => return Ok(()),
                () = context.nodes.changed() => {}
                () = tokio::time::sleep(retry) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_labelled_with_the_digest_of_the_go_ccm() {
        let tags = [("b", "2"), ("a", "1")];
        let tags = tags.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(digest(&tags.into()), "9dc867b7f2bf1e40160f90e46628512e");
    }
}
