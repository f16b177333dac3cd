//! Webhooks that stay in place when their provider is replaced.

use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{Admission, AdmissionRequest, CloudError, ErrorKind, Webhook};
use cloudkeel_controllers::clouds::{Cloud, ProviderCell};

/// The webhooks of a cloud. Each request goes to the provider in use.
pub(crate) fn webhooks_of(cloud: &Cloud) -> Vec<Arc<dyn Webhook>> {
    let current = |webhook: Arc<dyn Webhook>| -> Arc<dyn Webhook> {
        Arc::new(ProviderWebhook {
            name: webhook.name(),
            path: webhook.path(),
            cell: Arc::clone(&cloud.cell),
        })
    };
    let webhooks = cloud.provider().webhooks();
    webhooks.into_iter().map(current).collect()
}

/// The webhook of this name in the provider in use.
struct ProviderWebhook {
    name: &'static str,
    path: &'static str,
    cell: Arc<ProviderCell>,
}

#[async_trait]
impl Webhook for ProviderWebhook {
    fn name(&self) -> &'static str {
        self.name
    }

    fn path(&self) -> &'static str {
        self.path
    }

    async fn review(&self, request: &AdmissionRequest) -> Result<Admission, CloudError> {
        let webhooks = self.cell.current().webhooks();
        match webhooks.iter().find(|webhook| webhook.name() == self.name) {
            Some(webhook) => webhook.review(request).await,
            None => Err(CloudError::new(
                "review admission request",
                ErrorKind::Unsupported,
                format!(
                    "as it is configured now, this cloud has no webhook {:?}",
                    self.name
                ),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use cloudkeel_api::{CloudProvider, SystemClock};

    use super::*;

    struct Numbered(u32);

    impl CloudProvider for Numbered {
        fn name(&self) -> &'static str {
            "numbered"
        }
        fn webhooks(&self) -> Vec<Arc<dyn Webhook>> {
            if self.0 == 0 {
                return Vec::new();
            }
            vec![Arc::new(Says(self.0))]
        }
    }

    struct Says(u32);

    #[async_trait]
    impl Webhook for Says {
        fn name(&self) -> &'static str {
            "says"
        }
        fn path(&self) -> &'static str {
            "/says"
        }
        async fn review(&self, _: &AdmissionRequest) -> Result<Admission, CloudError> {
            Ok(Admission::Deny {
                why: self.0.to_string(),
            })
        }
    }

    #[tokio::test]
    async fn a_webhook_that_is_served_already_asks_the_provider_in_use() {
        let first = Arc::new(Numbered(1));
        let cloud = Cloud::new("c", first, None, Arc::new(SystemClock));
        let served = webhooks_of(&cloud).remove(0);
        assert_eq!((served.name(), served.path()), ("says", "/says"));
        let request = serde_json::json!({"uid": "u", "operation": "CREATE"});
        let request: AdmissionRequest = serde_json::from_value(request).unwrap();
        for number in [1, 2] {
            cloud.cell.replace(Arc::new(Numbered(number)));
            let expected = Admission::Deny {
                why: number.to_string(),
            };
            assert_eq!(served.review(&request).await.unwrap(), expected);
        }
        cloud.cell.replace(Arc::new(Numbered(0)));
        let error = served.review(&request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}
