use cloudkeel_api::{Capability, Problem};

use super::*;
use crate::IdError;

struct Plain;

struct LoggedIn;

#[async_trait]
impl Session for LoggedIn {
    async fn check(&self) -> Result<ScopeFingerprint, CloudError> {
        Ok(ScopeFingerprint::new("account 7"))
    }
}

#[async_trait]
impl Cloud for Plain {
    type Config = ();

    fn descriptor() -> Descriptor {
        Descriptor {
            name: "plain",
            summary: "A cloud without capabilities.",
            replaces: &[],
            capabilities: vec![],
            keys: vec![],
        }
    }

    fn files((): &()) -> Vec<PathBuf> {
        vec!["/etc/plain".into()]
    }

    fn read(input: &ProviderInput) -> Result<(), Problems> {
        match input.env.get("PLAIN") {
            Some(_) => Ok(()),
            None => Err(Problem::new("PLAIN", "is required").into()),
        }
    }

    async fn connect(
        (): &(),
        _: &ProviderContext,
        _: Wiring,
    ) -> Result<Provider<Self>, CloudError> {
        Ok(Provider::new("plain", LoggedIn))
    }
}

#[tokio::test]
async fn a_factory_checks_settings_and_builds_what_the_cloud_connects() {
    let factory = CloudFactory::<Plain>::default();
    let mut input = ProviderInput::default();
    assert!(factory.check(&input).is_err());
    input.env.insert("PLAIN".to_owned(), String::new());
    let context = ProviderContext::detached("x");
    assert_eq!(factory.files(&input), [PathBuf::from("/etc/plain")]);
    let provider = factory.build(input, context).await.unwrap();
    assert_eq!(provider.capabilities(), [] as [Capability; 0]);
    assert_eq!(provider.files(), [PathBuf::from("/etc/plain")]);
    assert_eq!(provider.check().await.unwrap().as_str(), "account 7");
    let ours = provider.recognize(&"plain://1".parse().unwrap());
    assert_eq!(ours, Recognition::Ours);
    let other = provider.recognize(&"other://1".parse().unwrap());
    assert_eq!(other, Recognition::Foreign);
    provider.close().await;
}

#[test]
fn an_id_is_recognized_by_how_it_could_be_read() {
    let why = || "x".to_owned();
    for (read, expected) in [
        (Ok(()), Recognition::Ours),
        (Err(IdError::Foreign(why())), Recognition::Foreign),
        (
            Err(IdError::Malformed(why())),
            Recognition::Malformed { why: why() },
        ),
        (
            Err(IdError::OtherAccount(why())),
            Recognition::OtherAccount { why: why() },
        ),
    ] {
        assert_eq!(IdError::recognition(read), expected);
    }
}

#[tokio::test]
async fn the_health_page_says_whether_the_credential_is_good() {
    struct LoggedOut;

    #[async_trait]
    impl Session for LoggedOut {
        async fn check(&self) -> Result<ScopeFingerprint, CloudError> {
            Err(CloudError::invalid("check", "the token was revoked"))
        }
    }

    let good = HealthPage(Arc::new(LoggedIn));
    assert_eq!(good.get("/other").await, None);
    assert_eq!(good.get("/healthz").await.unwrap().0, StatusCode::OK);
    let bad = HealthPage(Arc::new(LoggedOut));
    let (status, text) = bad.get("/healthz").await.unwrap();
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(text.contains("the token was revoked"), "{text}");
}

#[test]
fn two_credentials_have_two_digests_that_do_not_show_them() {
    assert_ne!(short_digest("hunter2"), short_digest("hunter3"));
    assert_eq!(short_digest("hunter2").len(), 8);
}
