//! `--use-service-account-credentials`: a ServiceAccount per controller.

use std::time::Duration;

use cloudkeel_api::Secret;
use cloudkeel_controllers::runtime::ErrorText;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};

/// The namespace of the controllers' accounts.
const NAMESPACE: &str = "kube-system";
/// The requested lifetime of a token.
const LIFETIME: Duration = Duration::from_hours(1);
/// The shortest lifetime that the API server grants.
const SHORTEST_LIFETIME: Duration = Duration::from_mins(10);
/// As upstream: a few attempts with exponential backoff, then the start fails.
const TRIES: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Why a controller has no account.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// It could not be read or created.
    #[error(
        "cannot get or create ServiceAccount {NAMESPACE}/{account}: {}",
        ErrorText(source)
    )]
    Account {
        /// Which.
        account: String,
        /// Why.
        source: kube::Error,
    },
    /// The `TokenRequest` failed.
    #[error(
        "cannot get a token for ServiceAccount {NAMESPACE}/{account}: {}",
        ErrorText(source)
    )]
    Token {
        /// Which.
        account: String,
        /// Why.
        source: kube::Error,
    },
    /// The API server answered without a token.
    #[error("the API server gave an empty token for ServiceAccount {NAMESPACE}/{account}")]
    Empty {
        /// Which.
        account: String,
    },
}

/// A token and its lifetime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountToken {
    /// The token.
    pub token: Secret,
    /// Its remaining lifetime.
    pub lifetime: Duration,
}

impl AccountToken {
    /// When to request the next one: after 80 % of its lifetime.
    pub fn renew_after(&self) -> Duration {
        self.lifetime.max(SHORTEST_LIFETIME).mul_f64(0.8)
    }
}

/// Gets or creates the account and requests a token, with a few attempts.
pub async fn account_token(client: &Client, account: &str) -> Result<AccountToken, AccountError> {
    let mut pause = FIRST_PAUSE;
    for _ in 1..TRIES {
        if let Ok(token) = try_account_token(client, account).await {
            return Ok(token);
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    try_account_token(client, account).await
}

async fn try_account_token(client: &Client, account: &str) -> Result<AccountToken, AccountError> {
    ensure_account(client, account)
        .await
        .map_err(|source| AccountError::Account {
            account: account.to_owned(),
            source,
        })?;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    let request = TokenRequest {
        spec: TokenRequestSpec {
            audiences: Vec::new(),
            bound_object_ref: None,
            expiration_seconds: Some(i64::try_from(LIFETIME.as_secs()).unwrap_or(i64::MAX)),
        },
        ..TokenRequest::default()
    };
    let answer = accounts
        .create_token_request(account, &PostParams::default(), &request)
        .await
        .map_err(|source| AccountError::Token {
            account: account.to_owned(),
            source,
        })?;
    let granted = answer
        .spec
        .expiration_seconds
        .and_then(|seconds| u64::try_from(seconds).ok());
    match answer.status.filter(|status| !status.token.is_empty()) {
        Some(status) => Ok(AccountToken {
            token: Secret::new(status.token),
            lifetime: granted.map_or(LIFETIME, Duration::from_secs),
        }),
        None => Err(AccountError::Empty {
            account: account.to_owned(),
        }),
    }
}

async fn ensure_account(client: &Client, account: &str) -> kube::Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    if accounts.get_opt(account).await?.is_some() {
        return Ok(());
    }
    let wanted = ServiceAccount {
        metadata: ObjectMeta {
            name: Some(account.to_owned()),
            ..ObjectMeta::default()
        },
        ..ServiceAccount::default()
    };
    match accounts.create(&PostParams::default(), &wanted).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => {
            create_namespace(client).await?;
            accounts
                .create(&PostParams::default(), &wanted)
                .await
                .map(drop)
        }
        Err(error) => Err(error),
    }
}

async fn create_namespace(client: &Client) -> kube::Result<()> {
    let namespace = Namespace {
        metadata: ObjectMeta {
            name: Some(NAMESPACE.to_owned()),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    };
    let namespaces: Api<Namespace> = Api::all(client.clone());
    match namespaces.create(&PostParams::default(), &namespace).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error),
    }
}
