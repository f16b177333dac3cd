//! Clouds that run in another process: what they do, and how they end.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use cloudkeel_api::Secret;
use cloudkeel_http::{Client, HeaderAuth, Request};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::api::{STATS_PATH, STOP_PATH};
use super::args::{ElsewhereArgs, Output, state_folder};
use super::committer::CloudStats;
use super::lock::{Contact, Files, Running};

/// How often the lock is looked at while waiting for an end.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Ends the cloud that is meant, and waits for its end.
pub(super) async fn stop(args: &ElsewhereArgs) -> Result<(), String> {
    let mut running = Vec::new();
    for files in meant(args)? {
        if let Running::Yes(contact) = files.running().map_err(|e| e.to_string())? {
            running.push((files, contact));
        }
    }
    let (files, contact) = match &*running {
        [] => return say("There is no local cloud to stop."),
        [one] => one,
        several => {
            let choices = several.iter().map(|(files, contact)| {
                format!("  --state {}  ({})", files.state.display(), contact.url)
            });
            let choices = choices.collect::<Vec<_>>().join("\n");
            return Err(format!(
                "several local clouds are running; name one:\n{choices}"
            ));
        }
    };
    let client = client(contact)?;
    client
        .send(Request::post(STOP_PATH))
        .await
        .map_err(|error| error.to_string())?;
    let deadline = Instant::now() + args.timeout;
    while files.running().map_err(|e| e.to_string())? != Running::No {
        if Instant::now() >= deadline {
            return Err(format!(
                "process {} was asked to end and has not ended within {:?}: its connections may last \
                 as long as its --drain-time",
                contact.pid, args.timeout
            ));
        }
        sleep(POLL_INTERVAL).await;
    }
    say(&format!("Stopped the local cloud at {}.", contact.url))
}

/// Shows the clouds that are meant.
pub(super) async fn status(args: &ElsewhereArgs) -> Result<(), String> {
    let mut shown = Vec::new();
    let mut lines = Vec::new();
    for files in meant(args)? {
        let state = files.state.display().to_string();
        let (what, contact) = match files.running().map_err(|e| e.to_string())? {
            Running::No => ("stopped", None),
            Running::Starting => ("starting", None),
            Running::Yes(contact) => ("running", Some(contact)),
        };
        let stats = match &contact {
            Some(contact) => Some(stats(contact).await?),
            None => None,
        };
        let at = contact.as_ref().map_or("", |contact| &contact.url);
        lines.push(format!("{what:9} {state}  {at}").trim_end().to_owned());
        lines.extend(stats.iter().flat_map(balancer_lines));
        shown.push(json!({"state": state, "is": what, "contact": contact, "stats": stats}));
    }
    if args.output == Output::Json {
        return say(&Value::Array(shown).to_string());
    }
    if lines.is_empty() {
        lines.push("There is no local cloud.".to_owned());
    }
    say(&lines.join("\n"))
}

fn balancer_lines(stats: &CloudStats) -> Vec<String> {
    let mut lines = Vec::new();
    for balancer in &stats.balancers {
        for port in &balancer.ports {
            let frontends = port
                .frontends
                .iter()
                .map(|frontend| match &frontend.problem {
                    None => frontend.address.to_string(),
                    Some(problem) => format!("{}: {problem}", frontend.address),
                });
            let frontends = frontends.collect::<Vec<_>>().join(", ");
            let (name, protocol, number) = (&balancer.name, port.protocol, port.port);
            lines.push(format!("  {name}  {protocol} {number} on {frontends}"));
            lines.extend(port.targets.iter().map(|target| {
                format!(
                    "    {} {:?} {:?}, {} connections, {} of them open",
                    target.address, target.phase, target.health, target.connections, target.active
                )
                .to_lowercase()
            }));
        }
    }
    lines
}

/// The clouds of the state file that was given, or of the usual folder.
fn meant(args: &ElsewhereArgs) -> Result<Vec<Files>, String> {
    if let Some(state) = &args.state {
        return Ok(vec![Files::of(state.clone())]);
    }
    let folder = state_folder()?;
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("{}: {error}", folder.display())),
    };
    let mut states: Vec<PathBuf> = entries
        .filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            let state = name.strip_suffix(".lock")?;
            state.starts_with("local-cloud").then(|| folder.join(state))
        })
        .collect();
    states.sort();
    Ok(states.into_iter().map(Files::of).collect())
}

fn client(contact: &Contact) -> Result<Client, String> {
    let path = &contact.token_file;
    let token = std::fs::read_to_string(path)
        .map_err(|error| format!("{}: expected a readable token: {error}", path.display()))?;
    Client::builder(contact.url.clone())
        .authorizer(HeaderAuth::bearer(Secret::new(token.trim())))
        .build()
        .map_err(|error| error.to_string())
}

async fn stats(contact: &Contact) -> Result<CloudStats, String> {
    let stats = client(contact)?.fetch(Request::get(STATS_PATH)).await;
    stats.map_err(|error| error.to_string())
}

fn say(text: &str) -> Result<(), String> {
    writeln!(io::stdout(), "{text}").map_err(|error| format!("cannot write: {error}"))
}
