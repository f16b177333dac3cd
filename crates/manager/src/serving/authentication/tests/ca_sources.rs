//! Which client certificates are accepted, and how long, when CAs change.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_certificate_is_only_good_in_its_time_and_for_clients() {
    use ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};

    let stop = CancellationToken::new();
    let _guard = stop.clone().drop_guard();
    let client_ca = Authority::new("clients");
    let clock = TokioClock::starting_at("2030-01-01T00:00:00Z".parse::<Timestamp>().unwrap());
    let identities = CredentialSources {
        clients: Some(Scripted::holding(clients(&client_ca))),
        ..CredentialSources::default()
    };
    let authenticator = Authenticator::new(identities, TTL, Arc::new(clock), &stop)
        .await
        .unwrap();
    let issued = |from: i32, until: i32, purpose: ExtendedKeyUsagePurpose| {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "jane");
        params.not_before = rcgen::date_time_ymd(from, 1, 1);
        params.not_after = rcgen::date_time_ymd(until, 1, 1);
        params.extended_key_usages = vec![purpose];
        client_ca.sign(params)
    };
    for (case, certificate, good) in [
        ("in its time", issued(2029, 2031, ClientAuth), true),
        ("expired", issued(2028, 2029, ClientAuth), false),
        ("not yet", issued(2031, 2032, ClientAuth), false),
        ("a server's", issued(2029, 2031, ServerAuth), false),
    ] {
        let outcome = authenticator
            .authenticate(&[certificate.der], &HeaderMap::new())
            .await;
        assert_eq!(outcome.is_ok(), good, "{case}: {outcome:?}");
    }
}

#[tokio::test]
async fn authorities_change_without_a_restart_and_the_last_good_ones_stay() {
    let stop = CancellationToken::new();
    let _guard = stop.clone().drop_guard();
    let [old, new] = ["old", "new"].map(Authority::new);
    let source = Scripted::holding(clients(&old));
    let identities = CredentialSources {
        clients: Some(Arc::clone(&source) as Arc<dyn CaSource>),
        ..CredentialSources::default()
    };
    let authenticator = Authenticator::new(identities, TTL, clock(), &stop)
        .await
        .unwrap();
    let broken = CaContent {
        bundle: "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n".to_owned(),
        ..CaContent::default()
    };
    let both = CaContent {
        bundle: format!("{}{}", old.pem(), new.pem()),
        ..CaContent::default()
    };
    let mut steps = VecDeque::from([
        ("at start", None, [true, false]),
        ("both for a while", Some(Some(Ok(both))), [true, true]),
        (
            "the new one alone",
            Some(Some(Ok(clients(&new)))),
            [false, true],
        ),
        ("broken content", Some(Some(Ok(broken))), [false, true]),
        (
            "unreadable",
            Some(Some(Err("forbidden".to_owned()))),
            [false, true],
        ),
        ("deleted", Some(None), [false, true]),
        ("back again", Some(Some(Ok(clients(&old)))), [true, false]),
    ]);
    let certificates = [&old, &new].map(|authority| authority.client("jane", None).der);
    while let Some((case, content, expected)) = steps.pop_front() {
        if let Some(content) = content {
            source.set(content).await;
        }
        let mut trusted = [false; 2];
        for (trusted, certificate) in trusted.iter_mut().zip(&certificates) {
            let chain = std::slice::from_ref(certificate);
            *trusted = authenticator
                .authenticate(chain, &HeaderMap::new())
                .await
                .is_ok();
        }
        assert_eq!(trusted, expected, "{case}");
    }
}

#[tokio::test]
async fn a_source_that_cannot_be_read_at_start_stops_the_start_with_a_hint_unless_it_may_fail() {
    let stop = CancellationToken::new();
    let _guard = stop.clone().drop_guard();
    let source = Arc::new(Scripted::default());
    *source.content.lock().unwrap() = Some(Err("forbidden".to_owned()));
    let required = AtStartup::Required(LOOKUP_HINT);
    let error = watch_ca(Arc::clone(&source) as _, required, stop.clone())
        .await
        .unwrap_err();
    let error = error.to_string();
    assert!(
        error.starts_with("the script cannot be read: forbidden; grant the role"),
        "{error}"
    );

    let followed = watch_ca(Arc::clone(&source) as _, AtStartup::Optional, stop.clone())
        .await
        .unwrap();
    assert!(followed.borrow().is_none());
    source.set(Some(Ok(clients(&Authority::new("late"))))).await;
    assert!(followed.borrow().is_some(), "it is followed all the same");
}

#[test]
fn as_upstream_only_the_front_proxies_of_the_configmap_must_be_readable() {
    let file = || Some("/etc/ca.crt".into());
    for (case, client_ca_file, proxy_ca_file, tolerate, expected) in [
        ("all looked up", None, None, false, [false, true]),
        ("failure tolerated", None, None, true, [false, false]),
        ("files", file(), file(), true, [true, true]),
    ] {
        let options = AuthenticationOptions {
            kubeconfig: None,
            skip_lookup: false,
            tolerate_lookup_failure: tolerate,
            token_cache_ttl: TTL,
            client_ca_file,
            proxy_ca_file,
            proxy_allowed_names: Vec::new(),
            username_headers: Vec::new(),
            uid_headers: Vec::new(),
            group_headers: Vec::new(),
            extra_header_prefixes: Vec::new(),
        };
        let rules = StartupRules::of(&options);
        let required = [rules.clients, rules.front_proxies].map(|rule| rule != AtStartup::Optional);
        assert_eq!(required, expected, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_of_authorities_is_followed() {
    let stop = CancellationToken::new();
    let _guard = stop.clone().drop_guard();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ca.crt");
    let [old, new] = ["old", "new"].map(Authority::new);
    std::fs::write(&path, old.pem()).unwrap();
    let source = Arc::new(CaFile::new(path.clone(), FrontProxy::default()));
    let required = AtStartup::Required("");
    let mut followed = watch_ca(source, required, stop.clone()).await.unwrap();
    let new_client = [new.client("jane", None).der];
    let trusts = |followed: &CaReceiver| {
        let trust = followed.borrow().clone().unwrap();
        trust.authorities.verify(&new_client, clock().now()).is_ok()
    };
    assert!(!trusts(&followed));
    followed.mark_unchanged();
    std::fs::write(&path, new.pem()).unwrap();
    let noticed = tokio::time::timeout(Duration::from_mins(1), followed.changed()).await;
    assert!(noticed.is_ok(), "the change was not noticed");
    assert!(trusts(&followed));
}

#[tokio::test]
async fn a_missing_file_of_authorities_is_named() {
    let source = Arc::new(CaFile::new("/nowhere/ca.crt".into(), FrontProxy::default()));
    let outcome = watch_ca(source, AtStartup::Required(""), CancellationToken::new()).await;
    let error = outcome.unwrap_err().to_string();
    assert!(
        error.contains("the file /nowhere/ca.crt cannot be read"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_source_that_panics_is_read_again() {
    let stop = CancellationToken::new();
    let _guard = stop.clone().drop_guard();
    let [old, new] = ["old", "new"].map(Authority::new);
    let source = Scripted::holding(clients(&old));
    let identities = CredentialSources {
        clients: Some(Arc::clone(&source) as Arc<dyn CaSource>),
        ..CredentialSources::default()
    };
    let authenticator = Authenticator::new(identities, TTL, clock(), &stop)
        .await
        .unwrap();
    source.set(Some(Err("panic".to_owned()))).await;
    // No change follows the panic.
    *source.content.lock().unwrap() = Some(Ok(clients(&new)));
    tokio::time::sleep(Duration::from_mins(1)).await;
    let certificate = new.client("jane", None).der;
    let outcome = authenticator
        .authenticate(&[certificate], &HeaderMap::new())
        .await;
    assert!(outcome.is_ok(), "{outcome:?}");
}
