//! Requests to the secure port.

use std::process::Command;

use cloudkeel_testkit::cluster::eventually;

use crate::harness::DEADLINE;

/// A port that is free right now.
pub(crate) fn free_port() -> u16 {
    cloudkeel_testkit::control_plane::free_port().expect("a port on loopback")
}

/// The flags for this port.
pub(crate) fn listen_on(port: u16) -> [String; 2] {
    [
        format!("--secure-port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
    ]
}

/// Waits for an answer and returns its status, and its body.
pub(crate) async fn get(port: u16, path: &str, token: Option<&str>) -> (u16, String) {
    let url = format!("https://127.0.0.1:{port}{path}");
    let token = token.map(str::to_owned);
    let what = format!("an answer from {url}");
    eventually(&what, DEADLINE, || async {
        let (url, token) = (url.clone(), token.clone());
        // The cloud is served by this very thread.
        let asked = tokio::task::spawn_blocking(move || try_get(&url, token.as_deref()));
        asked.await.expect("curl runs")
    })
    .await
}

fn try_get(url: &str, token: Option<&str>) -> Option<(u16, String)> {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--insecure", "--max-time", "20"]);
    curl.args(["--write-out", "\n%{http_code}"]);
    if let Some(token) = token {
        curl.args(["--header", &format!("Authorization: Bearer {token}")]);
    }
    let output = curl.arg(url).output().expect("curl runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (body, code) = text.rsplit_once('\n')?;
    let code = code.parse().ok().filter(|code| *code != 0)?;
    Some((code, body.to_owned()))
}
