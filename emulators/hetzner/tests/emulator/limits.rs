//! The rate limit, latency.

use cloudkeel_emulator_hetzner::{HetznerCloud, Latency, Permission, RateLimit, Settings};
use tokio::time::Instant;

use crate::support::{Rest, SECOND, lab_with};

fn limited(burst: u32) -> Settings {
    Settings {
        rate_limit: Some(RateLimit {
            burst,
            refill: SECOND,
        }),
        ..Settings::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_budget_is_shown_used_up_and_refilled() {
    let (_, rest) = lab_with(0, limited(3));
    let start = 1_767_225_600;
    for (after, said, remaining, reset) in [
        (0, (200, ""), "2", start + 1),
        (0, (200, ""), "1", start + 2),
        (0, (200, ""), "0", start + 3),
        (0, (429, "rate_limit_exceeded"), "0", start + 3),
        (1, (200, ""), "0", start + 4),
        (60, (200, ""), "2", start + 62),
    ] {
        tokio::time::advance(SECOND * after).await;
        let answer = rest.get("/v1/locations").await;
        assert_eq!(answer.said(), said);
        assert_eq!(answer.header("ratelimit-limit"), "3");
        assert_eq!(answer.header("ratelimit-remaining"), remaining);
        assert_eq!(answer.header("ratelimit-reset"), reset.to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn the_tokens_of_a_project_share_a_budget_and_refused_ones_use_none() {
    let (cloud, rest) = lab_with(0, limited(2));
    cloud.grant("second", HetznerCloud::PROJECT, Permission::ReadOnly);
    cloud.add_project("other");
    cloud.grant("other", "other", Permission::ReadOnly);
    for _ in 0..5 {
        let stranger = Rest::with_token(&cloud, "stranger")
            .get("/v1/servers")
            .await;
        assert_eq!(stranger.said(), (401, "unauthorized"));
        assert!(!stranger.headers.contains_key("ratelimit-limit"));
    }
    let second = Rest::with_token(&cloud, "second");
    assert_eq!(rest.get("/v1/servers").await.status, 200);
    assert_eq!(second.get("/v1/servers").await.status, 200);
    assert_eq!(second.get("/v1/servers").await.status, 429);
    let other = Rest::with_token(&cloud, "other");
    assert_eq!(other.get("/v1/servers").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn the_real_limit_is_the_default() {
    let (_, rest) = lab_with(0, Settings::default());
    let answer = rest.get("/v1/servers").await;
    assert_eq!(answer.header("ratelimit-limit"), "3600");
    assert_eq!(answer.header("ratelimit-remaining"), "3599");
}

#[tokio::test(start_paused = true)]
async fn answers_take_as_long_as_the_settings_say() {
    let settings = Settings {
        latency: Latency {
            fixed: SECOND * 2,
            jitter: SECOND,
        },
        ..Settings::default()
    };
    let (_, rest) = lab_with(0, settings);
    let start = Instant::now();
    rest.get("/v1/servers").await;
    let took = start.elapsed();
    assert!(
        took >= SECOND * 2 && took <= SECOND * 3,
        "{took:?} on the paused clock"
    );
}
