use std::collections::VecDeque;

use cloudkeel_api::TokioClock;
use tokio::task::JoinSet;
use tokio::time::{advance, sleep};

use super::*;

const START: i64 = 1_800_000_000;

fn clock() -> Arc<dyn Clock> {
    Arc::new(TokioClock::starting_at(
        Timestamp::from_second(START).unwrap(),
    ))
}

/// Answers logins from a list; each takes a second.
struct Logins {
    answers: Mutex<VecDeque<Result<Token, ErrorKind>>>,
    count: Mutex<u32>,
}

#[async_trait]
impl TokenSource for Logins {
    async fn fetch(&self) -> Result<Token, CloudError> {
        *self.count.lock().unwrap() += 1;
        sleep(Duration::from_secs(1)).await;
        let answer = self.answers.lock().unwrap().pop_front();
        answer
            .expect("a login that the test did not expect")
            .map_err(|kind| CloudError::new("POST /auth/tokens", kind, "no"))
    }
}

impl Logins {
    fn count(&self) -> u32 {
        *self.count.lock().unwrap()
    }
}

fn lasting(value: &str, seconds: i64) -> Result<Token, ErrorKind> {
    let expires_at = Timestamp::from_second(START + seconds).map_err(|_| ErrorKind::Other)?;
    Ok(Token {
        value: value.into(),
        expires_at: Some(expires_at),
    })
}

fn cache(
    answers: impl IntoIterator<Item = Result<Token, ErrorKind>>,
) -> (Arc<Logins>, Arc<TokenCache>) {
    let logins = Arc::new(Logins {
        answers: Mutex::new(answers.into_iter().collect()),
        count: Mutex::new(0),
    });
    let source: Arc<dyn TokenSource> = Arc::clone(&logins) as _;
    let cache = TokenCache::new(source, clock()).with_jitter(Jitter::seeded(1));
    (logins, Arc::new(cache))
}

async fn ask(cache: &TokenCache) -> String {
    cache.token().await.unwrap().value.expose().to_owned()
}

#[tokio::test(start_paused = true)]
async fn all_callers_share_one_login() {
    let (logins, cache) = cache([lasting("a", 3600)]);
    let mut callers = JoinSet::new();
    for _ in 0..50 {
        let cache = Arc::clone(&cache);
        callers.spawn(async move { ask(&cache).await });
    }
    let tokens = callers.join_all().await;
    assert!(tokens.iter().all(|token| token == "a"));
    assert_eq!(logins.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_token_is_renewed_ahead_of_its_end_while_others_keep_using_it() {
    let (logins, cache) = cache([lasting("a", 3600), lasting("b", 7200)]);
    assert_eq!(ask(&cache).await, "a");
    advance(Duration::from_secs(3600 - 400)).await;
    assert_eq!(ask(&cache).await, "a", "not yet");
    assert_eq!(logins.count(), 1);
    advance(Duration::from_secs(150)).await;
    let renewing = tokio::spawn({
        let cache = Arc::clone(&cache);
        async move { ask(&cache).await }
    });
    tokio::task::yield_now().await;
    let before = Instant::now();
    assert_eq!(ask(&cache).await, "a", "the old one is still good");
    assert_eq!(Instant::now(), before, "no caller waited");
    assert_eq!(renewing.await.unwrap(), "b");
    assert_eq!(ask(&cache).await, "b");
    assert_eq!(logins.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_token_without_an_end_is_kept() {
    let forever = Ok(Token {
        value: "a".into(),
        expires_at: None,
    });
    let (logins, cache) = cache([forever]);
    assert_eq!(ask(&cache).await, "a");
    advance(Duration::from_hours(1000)).await;
    assert_eq!(ask(&cache).await, "a");
    assert_eq!(logins.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_renewal_leaves_the_old_token_in_use_until_it_ends() {
    let (logins, cache) = cache([
        lasting("a", 3600),
        Err(ErrorKind::Unavailable),
        Err(ErrorKind::Unavailable),
        lasting("b", 7200),
    ]);
    assert_eq!(ask(&cache).await, "a");
    advance(Duration::from_secs(3350)).await;
    assert_eq!(ask(&cache).await, "a", "renewal failed");
    assert_eq!(ask(&cache).await, "a", "no second try at once");
    assert_eq!(logins.count(), 2);
    advance(Duration::from_secs(3)).await;
    assert_eq!(ask(&cache).await, "a", "renewal failed again");
    assert_eq!(logins.count(), 3);
    advance(Duration::from_mins(5)).await;
    assert_eq!(ask(&cache).await, "b");
}

/// Gives one token, if at all, and then never answers.
struct Hanging {
    first: Mutex<Option<Token>>,
    count: Mutex<u32>,
}

#[async_trait]
impl TokenSource for Hanging {
    async fn fetch(&self) -> Result<Token, CloudError> {
        *self.count.lock().unwrap() += 1;
        let first = self.first.lock().unwrap().take();
        match first {
            Some(token) => Ok(token),
            None => std::future::pending().await,
        }
    }
}

fn hanging(first: Option<Token>) -> (Arc<Hanging>, TokenCache) {
    let source = Arc::new(Hanging {
        first: Mutex::new(first),
        count: Mutex::new(0),
    });
    let cache = TokenCache::new(Arc::clone(&source) as _, clock()).with_jitter(Jitter::seeded(1));
    (source, cache)
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_hangs_costs_a_moment_but_no_call_while_the_token_is_good() {
    let (source, cache) = hanging(lasting("a", 3600).ok());
    assert_eq!(ask(&cache).await, "a");
    advance(Duration::from_secs(3350)).await;
    let before = Instant::now();
    assert_eq!(ask(&cache).await, "a");
    assert_eq!(before.elapsed(), RENEWAL_TIMEOUT);
    assert_eq!(ask(&cache).await, "a");
    assert_eq!(before.elapsed(), RENEWAL_TIMEOUT, "no second try at once");
    assert_eq!(*source.count.lock().unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_login_that_hangs_is_given_up_and_left_alone_for_a_while() {
    let (source, cache) = hanging(None);
    let error = cache.token().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    let error = cache.token().await.unwrap_err();
    assert!(
        error.to_string().contains("not repeated for another"),
        "{error}"
    );
    assert_eq!(*source.count.lock().unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refused_login_is_not_repeated_by_every_caller() {
    let (logins, cache) = cache([
        Err(ErrorKind::Unauthenticated),
        Err(ErrorKind::Unauthenticated),
        lasting("a", 3600),
    ]);
    let mut callers = JoinSet::new();
    for _ in 0..50 {
        let cache = Arc::clone(&cache);
        callers.spawn(async move { cache.token().await.map_err(|error| error.kind()) });
    }
    for result in callers.join_all().await {
        assert_eq!(result, Err(ErrorKind::Unauthenticated));
    }
    assert_eq!(logins.count(), 1);
    let error = cache.token().await.unwrap_err();
    assert!(
        error.to_string().contains("not repeated for another"),
        "{error}"
    );
    assert!(error.to_string().contains("POST /auth/tokens"), "{error}");

    advance(Duration::from_secs(31)).await;
    assert!(cache.token().await.is_err());
    assert_eq!(logins.count(), 2);
    advance(Duration::from_secs(31)).await;
    assert!(cache.token().await.is_err(), "the pause has doubled");
    assert_eq!(logins.count(), 2);
    advance(Duration::from_secs(30)).await;
    assert_eq!(ask(&cache).await, "a");
}

#[tokio::test(start_paused = true)]
async fn a_login_server_that_asks_to_wait_is_obeyed() {
    let wait = Duration::from_secs(90);
    let throttled = ErrorKind::Throttled {
        retry_after: Some(wait),
    };
    let (logins, cache) = cache([Err(throttled), lasting("a", 3600)]);
    assert_eq!(cache.token().await.unwrap_err().kind(), throttled);
    advance(Duration::from_secs(89)).await;
    assert!(cache.token().await.is_err());
    assert_eq!(logins.count(), 1);
    advance(Duration::from_secs(1)).await;
    assert_eq!(ask(&cache).await, "a");
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_is_replaced_once_however_many_saw_the_refusal() {
    let (logins, cache) = cache([lasting("a", 3600), lasting("b", 3600)]);
    let old = cache.token().await.unwrap();
    assert!(cache.refused(old.login));
    assert!(
        cache.refused(old.login),
        "a second caller waits for the same login"
    );
    assert_eq!(ask(&cache).await, "b");
    assert!(
        cache.refused(old.login),
        "a newer token is there: worth a try"
    );
    assert_eq!(ask(&cache).await, "b");
    assert_eq!(logins.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn tokens_that_are_refused_again_and_again_do_not_make_a_login_storm() {
    let (logins, cache) = cache((0..20).map(|at| lasting(&format!("t{at}"), 100_000)));
    for _ in 0..600 {
        let token = cache.token().await.unwrap();
        cache.refused(token.login);
        sleep(Duration::from_secs(1)).await;
    }
    assert!(
        logins.count() <= 7,
        "{} logins in ten minutes",
        logins.count()
    );
}

#[tokio::test(start_paused = true)]
async fn a_token_that_seems_over_at_once_is_used_all_the_same() {
    let (logins, cache) = cache([lasting("a", -100), lasting("b", 3600)]);
    assert_eq!(ask(&cache).await, "a", "our clock is wrong, not the token");
    assert_eq!(ask(&cache).await, "a");
    assert_eq!(logins.count(), 1);
    advance(Duration::from_secs(31)).await;
    assert_eq!(ask(&cache).await, "b");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_login_leaves_the_way_free_for_the_next() {
    let (logins, cache) = cache([lasting("a", 3600)]);
    let doomed = tokio::spawn({
        let cache = Arc::clone(&cache);
        async move { cache.token().await }
    });
    tokio::task::yield_now().await;
    doomed.abort();
    assert_eq!(ask(&cache).await, "a");
    assert_eq!(logins.count(), 2, "the first was cut off");
}

#[tokio::test(start_paused = true)]
async fn a_check_may_log_in_right_after_a_refusal() {
    let answers = [Err(ErrorKind::Unauthenticated), lasting("good", 600)];
    let (logins, cache) = cache(answers);
    assert!(cache.token().await.is_err());
    assert!(cache.token().await.is_err());
    assert_eq!(logins.count(), 1, "it is not repeated by itself");
    cache.forget_failure();
    assert_eq!(ask(&cache).await, "good");
}
