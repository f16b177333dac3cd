//! Certificates: created, saved, reloaded, chosen.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use cloudkeel_api::TokioClock;
use jiff::Timestamp;
use rustls::sign::CertifiedKey;

use super::reload::ReloadOutcome;
use super::*;
use crate::serving::testing::{Authority, Issued, clock};

fn write(directory: &Path, issued: &Issued) -> KeyPairFiles {
    let files = KeyPairFiles::new(&directory.join("tls.crt"), &directory.join("tls.key"));
    std::fs::write(&files.certificate, &issued.pem).unwrap();
    std::fs::write(&files.key, &issued.key).unwrap();
    files
}

fn leaf(key: &CertifiedKey) -> Vec<u8> {
    key.cert[0].to_vec()
}

fn serves(pair: &ReloadingKeyPair, issued: &Issued) -> bool {
    leaf(&pair.current().key) == issued.der.to_vec()
}

#[tokio::test]
async fn a_pair_that_changed_is_served_and_a_broken_one_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new("test");
    let [first, second] = ["a", "b"].map(|name| authority.server(&[name]));
    let files = write(directory.path(), &first);
    let pair = ReloadingKeyPair::from_files(files.clone()).await.unwrap();
    assert!(serves(&pair, &first));

    std::fs::write(&files.certificate, &second.pem).unwrap();
    pair.refresh(&*clock()).await;
    assert!(
        serves(&pair, &first),
        "a certificate without its key is not served"
    );

    std::fs::write(&files.key, &second.key).unwrap();
    pair.refresh(&*clock()).await;
    assert!(serves(&pair, &second));

    for broken in ["", "nonsense"] {
        std::fs::write(&files.certificate, broken).unwrap();
        pair.refresh(&*clock()).await;
        assert!(serves(&pair, &second), "{broken:?}");
    }
    std::fs::remove_file(&files.certificate).unwrap();
    pair.refresh(&*clock()).await;
    assert!(serves(&pair, &second), "a missing file");

    write(directory.path(), &first);
    pair.refresh(&*clock()).await;
    assert!(serves(&pair, &first), "it recovers");
}

#[tokio::test]
async fn a_projected_volume_that_swaps_its_link_is_noticed() {
    let volume = tempfile::tempdir().unwrap();
    let authority = Authority::new("test");
    let issued = ["a", "b"].map(|name| authority.server(&[name]));
    for (directory, issued) in ["..first", "..second"].iter().zip(&issued) {
        let directory = volume.path().join(directory);
        std::fs::create_dir(&directory).unwrap();
        write(&directory, issued);
    }
    let data = volume.path().join("..data");
    symlink("..first", &data).unwrap();
    for file in ["tls.crt", "tls.key"] {
        symlink(Path::new("..data").join(file), volume.path().join(file)).unwrap();
    }
    let files = KeyPairFiles::new(
        &volume.path().join("tls.crt"),
        &volume.path().join("tls.key"),
    );
    let pair = ReloadingKeyPair::from_files(files).await.unwrap();
    assert!(serves(&pair, &issued[0]));

    let swapped = volume.path().join("..data_tmp");
    symlink("..second", &swapped).unwrap();
    std::fs::rename(&swapped, &data).unwrap();
    pair.refresh(&*clock()).await;
    assert!(serves(&pair, &issued[1]));
}

#[tokio::test]
async fn the_same_broken_pair_is_reported_once() {
    let directory = tempfile::tempdir().unwrap();
    let good = Authority::new("test").server(&["a"]);
    let files = write(directory.path(), &good);
    let pair = ReloadingKeyPair::from_files(files.clone()).await.unwrap();
    let clock = clock();
    for (case, content, reported) in [
        ("unchanged", good.pem.as_str(), "nothing"),
        ("broken", "nonsense", "refused"),
        ("still broken", "nonsense", "nothing"),
        (
            "broken otherwise, for the same reason",
            "more nonsense",
            "nothing",
        ),
        ("good again", &good.pem, "taken"),
        ("broken again", "nonsense", "refused"),
    ] {
        std::fs::write(&files.certificate, content).unwrap();
        let outcome = match pair.refresh(&*clock).await {
            None => "nothing",
            Some(ReloadOutcome::Loaded { .. }) => "taken",
            Some(ReloadOutcome::Rejected { why }) => {
                assert!(why.contains("tls.crt"), "{why}");
                "refused"
            }
        };
        assert_eq!(outcome, reported, "{case}");
    }
}

#[tokio::test]
async fn a_pair_that_cannot_be_served_at_start_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new("test");
    let files = write(directory.path(), &authority.server(&["a"]));
    std::fs::write(&files.key, authority.server(&["b"]).key).unwrap();
    let missing = KeyPairFiles::new(Path::new("/nowhere/tls.crt"), &files.key);
    for (case, files, part) in [
        ("not a pair", files.clone(), "tls.key"),
        ("missing", missing, "/nowhere/tls.crt: No such file"),
    ] {
        let error = ReloadingKeyPair::from_files(files)
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains(part), "{case}: {error}");
    }
}

async fn made(
    directory: Option<&Path>,
    clock: &dyn Clock,
) -> Result<ReloadingKeyPair, ServingError> {
    let names = [
        "node-1".to_owned(),
        "10.1.2.3".to_owned(),
        "localhost".to_owned(),
    ];
    ReloadingKeyPair::self_signed(SelfSigned::new(&names, directory, "ccm"), clock).await
}

#[tokio::test]
async fn a_self_made_certificate_names_this_server() {
    let pair = made(None, &*clock()).await.unwrap();
    let names = pair.current().info.names.clone();
    assert_eq!(names, ["localhost", "127.0.0.1", "node-1", "10.1.2.3"]);
}

#[tokio::test(start_paused = true)]
async fn a_kept_certificate_is_used_again_until_its_time_is_near() {
    let directory = tempfile::tempdir().unwrap();
    let kept_in = directory.path().join("deeper");
    let clock = TokioClock::starting_at("2030-06-15T12:00:00Z".parse::<Timestamp>().unwrap());
    let first = leaf(&made(Some(&kept_in), &clock).await.unwrap().current().key);
    let mode = std::fs::metadata(kept_in.join("ccm.key"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);

    let again = made(Some(&kept_in), &clock).await.unwrap();
    assert_eq!(leaf(&again.current().key), first);
    again.refresh(&clock).await;
    assert_eq!(leaf(&again.current().key), first);

    tokio::time::advance(Duration::from_hours(24 * 300)).await;
    again.refresh(&clock).await;
    let renewed = leaf(&again.current().key);
    assert_ne!(renewed, first, "renewed while it runs");
    let restarted = made(Some(&kept_in), &clock).await.unwrap();
    assert_eq!(leaf(&restarted.current().key), renewed, "and kept");

    tokio::time::advance(Duration::from_hours(24 * 400)).await;
    let restarted = made(Some(&kept_in), &clock).await.unwrap();
    assert_ne!(leaf(&restarted.current().key), renewed, "renewed at start");
}

#[tokio::test]
async fn a_certificate_that_cannot_be_saved_is_served_and_leaves_no_files() {
    let directory = tempfile::tempdir().unwrap();
    let clock = clock();
    for taken in ["ccm.crt", "ccm.key"] {
        let temp = format!("{taken}.{}.tmp", std::process::id());
        let in_the_way = directory.path().join(temp);
        std::fs::create_dir(&in_the_way).unwrap();
        let recipe = SelfSigned::new(&["node-1".to_owned()], Some(directory.path()), "ccm");
        let made = recipe.make(clock.now()).unwrap();
        let why = recipe.save(&made).unwrap_err();
        assert!(why.contains(taken), "{why}");
        std::fs::remove_dir(&in_the_way).unwrap();
        let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
        assert!(left.is_empty(), "{taken}: neither half nor draft: {left:?}");
    }
    let file = directory.path().join("file");
    std::fs::write(&file, "no directory").unwrap();
    let pair = made(Some(&file.join("certs")), &*clock).await.unwrap();
    let first = leaf(&pair.current().key);
    assert_eq!(pair.refresh(&*clock).await, None, "nothing to report");
    assert_eq!(leaf(&pair.current().key), first);
}

#[tokio::test(start_paused = true)]
async fn a_renewed_certificate_that_cannot_be_written_is_made_once() {
    let directory = tempfile::tempdir().unwrap();
    let clock = TokioClock::starting_at("2030-06-15T12:00:00Z".parse::<Timestamp>().unwrap());
    let pair = made(Some(directory.path()), &clock).await.unwrap();
    let [certificate, key] = ["ccm.crt", "ccm.key"].map(|name| directory.path().join(name));
    let first = leaf(&pair.current().key);
    let temp = format!("{}.{}.tmp", key.display(), std::process::id());
    std::fs::create_dir(temp).unwrap();
    tokio::time::advance(Duration::from_hours(24 * 300)).await;
    let outcome = pair.refresh(&clock).await;
    assert!(
        matches!(outcome, Some(ReloadOutcome::Loaded { .. })),
        "{outcome:?}"
    );
    let renewed = leaf(&pair.current().key);
    assert_ne!(renewed, first, "it is served although it cannot be written");
    for _ in 0..3 {
        assert_eq!(pair.refresh(&clock).await, None);
    }
    assert_eq!(leaf(&pair.current().key), renewed, "and not made anew");
    let from_files = Authority::new("test").server(&["a"]);
    std::fs::write(&certificate, &from_files.pem).unwrap();
    std::fs::write(&key, &from_files.key).unwrap();
    pair.refresh(&clock).await;
    assert!(serves(&pair, &from_files), "files that change still count");
}

#[tokio::test(start_paused = true)]
async fn a_certificate_in_memory_is_renewed_too() {
    let clock = TokioClock::starting_at("2030-06-15T12:00:00Z".parse::<Timestamp>().unwrap());
    let pair = made(None, &clock).await.unwrap();
    let first = leaf(&pair.current().key);
    pair.refresh(&clock).await;
    assert_eq!(leaf(&pair.current().key), first);
    tokio::time::advance(Duration::from_hours(24 * 300)).await;
    pair.refresh(&clock).await;
    assert_ne!(leaf(&pair.current().key), first);
}

#[tokio::test]
async fn a_foreign_certificate_in_our_place_is_served_even_if_old_and_half_a_pair_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut params = rcgen::CertificateParams::new(["old".to_owned()]).unwrap();
    params.not_after = rcgen::date_time_ymd(2001, 1, 1);
    let old = Authority::new("test").sign(params);
    std::fs::write(directory.path().join("ccm.crt"), &old.pem).unwrap();
    let error = made(Some(directory.path()), &*clock())
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("ccm.key: No such file"), "{error}");
    std::fs::write(directory.path().join("ccm.key"), &old.key).unwrap();
    let pair = made(Some(directory.path()), &*clock()).await.unwrap();
    assert!(serves(&pair, &old));
    pair.refresh(&*clock()).await;
    assert!(serves(&pair, &old));
}

#[tokio::test]
async fn a_client_is_shown_the_certificate_for_the_name_it_asks_for() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new("test");
    let mut pairs = Vec::new();
    for (index, names) in [
        &["fallback"][..],
        &[
            "inside.example.com",
            "both.example.com",
            "*.wild.com",
            "10.0.0.7",
        ],
        &["ignored.example.com"],
        &["inside.example.com"],
    ]
    .into_iter()
    .enumerate()
    {
        let place = directory.path().join(index.to_string());
        std::fs::create_dir(&place).unwrap();
        let files = write(&place, &authority.server(names));
        pairs.push(ReloadingKeyPair::from_files(files).await.unwrap());
    }
    let leaves: Vec<_> = pairs.iter().map(|pair| leaf(&pair.current().key)).collect();
    let explicit = ["both.example.com", "*.example.com", "one.wild.com"].map(str::to_owned);
    let mut pairs = pairs.into_iter();
    let fallback = pairs.next().unwrap();
    let names = [vec![], explicit.to_vec(), vec![]];
    let named = names
        .iter()
        .zip(pairs)
        .map(|(names, pair)| SniCertificate::new(names, pair))
        .collect();
    let certificates = Certificates::new(fallback, named);
    for (case, asked, expected) in [
        ("no name", None, 0),
        ("an unknown name", Some("example.org"), 0),
        (
            "a name inside, the first wins",
            Some("inside.example.com"),
            1,
        ),
        (
            "in capitals, with a final dot",
            Some("INSIDE.example.com."),
            1,
        ),
        (
            "a name given by hand wins over one inside",
            Some("both.example.com"),
            2,
        ),
        ("a pattern given by hand", Some("other.example.com"), 2),
        ("a pattern covers one label", Some("a.b.example.com"), 0),
        ("a pattern inside", Some("two.wild.com"), 1),
        ("a whole name wins over a pattern", Some("one.wild.com"), 2),
        (
            "a name inside is ignored if others were given",
            Some("ignored.example.org"),
            0,
        ),
        ("an address", Some("10.0.0.7"), 1),
    ] {
        let chosen = leaf(&certificates.choose(asked));
        let index = leaves.iter().position(|leaf| *leaf == chosen);
        assert_eq!(index, Some(expected), "{case}");
    }
    assert!(certificates.know_addresses());
}

#[tokio::test]
async fn an_existing_temporary_file_gets_no_key() {
    let (kept_in, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let theirs = elsewhere.path().join("theirs");
    std::fs::write(&theirs, "theirs").unwrap();
    let temp = |name: &str| {
        let temp = format!("ccm.{name}.{}.tmp", std::process::id());
        kept_in.path().join(temp)
    };
    symlink(&theirs, temp("key")).unwrap();
    std::fs::write(temp("crt"), "left over").unwrap();
    made(Some(kept_in.path()), &*clock()).await.unwrap();
    assert_eq!(std::fs::read_to_string(&theirs).unwrap(), "theirs");
    let key = std::fs::symlink_metadata(kept_in.path().join("ccm.key")).unwrap();
    assert!(key.is_file(), "not a link");
    assert_eq!(key.permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn printing_what_is_served_shows_no_key() {
    let directory = tempfile::tempdir().unwrap();
    let issued = Authority::new("test").server(&["a"]);
    let pair = ReloadingKeyPair::from_files(write(directory.path(), &issued)).await;
    let printed = format!("{:?}", pair.unwrap());
    let key = format!("{:?}", issued.key.as_bytes());
    assert!(printed.contains("PairBytes"), "{printed}");
    assert!(!printed.contains(key.trim_matches(['[', ']'])), "{printed}");
}
