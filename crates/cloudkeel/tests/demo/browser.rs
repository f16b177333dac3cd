//! A headless Chromium, driven by chromedriver over plain `WebDriver`.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use cloudkeel_testkit::cluster::eventually;
use serde_json::{Value, json};

use crate::http::{ask, try_ask};
use crate::process::DEADLINE;

/// How often chromedriver may fail to get a port.
const DRIVER_STARTS: usize = 10;

/// How often a browser may fail to start: chromedriver gives up after a minute, which the first start on a busy
/// machine may take.
const BROWSER_STARTS: usize = 4;

/// What is wider than the screen, if the page is.
const WIDER: &str = "
    const page = document.documentElement;
    return page.scrollWidth <= window.innerWidth ? [] : [page, ...document.querySelectorAll('body *')]
      .filter((one) => one === page || one.getBoundingClientRect().right > window.innerWidth)
      .map((one) => `${one.tagName} ${one.id} ${one.className}: ${one.innerText.slice(0, 60)}`)";

/// A browser with one window. It is closed when dropped.
pub(crate) struct Browser {
    driver: Child,
    host: String,
    session: String,
}

impl Browser {
    pub(crate) fn open(url: &str, dark: bool, width: u32, height: u32) -> Self {
        let browser = Self::start(dark, width, height);
        browser.go_to(url);
        browser
    }

    /// Opens a page that needs a token, on a server with an untrusted certificate.
    pub(crate) fn open_with(token: &str, url: &str, dark: bool, size: (u32, u32)) -> Self {
        let (width, height) = size;
        let browser = Self::start(dark, width, height);
        let headers = json!({"headers": {"Authorization": format!("Bearer {token}")}});
        for (command, parameters) in [
            ("Network.enable", json!({})),
            ("Network.setExtraHTTPHeaders", headers),
        ] {
            let body = json!({"cmd": command, "params": parameters});
            browser.command("POST", "/goog/cdp/execute", Some(&body));
        }
        browser.go_to(url);
        browser
    }

    pub(crate) fn go_to(&self, url: &str) {
        self.command("POST", "/url", Some(&json!({"url": url})));
    }

    fn start(dark: bool, width: u32, height: u32) -> Self {
        let (driver, port) = (0..DRIVER_STARTS)
            .find_map(|_| start_driver())
            .expect("chromedriver prints its port");
        let host = format!("127.0.0.1:{port}");
        let mut arguments = vec![
            "--headless=new".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--hide-scrollbars".to_owned(),
            format!("--window-size={width},{height}"),
        ];
        if dark {
            arguments.push("--blink-settings=preferredColorScheme=0".to_owned());
        }
        let mut options = json!({"args": arguments});
        if width < 500 {
            // Windows are never that narrow; screens are.
            options["mobileEmulation"] = json!({"deviceMetrics":
                {"width": width, "height": height, "pixelRatio": 2.0, "touch": true}});
        }
        let wanted = json!({"acceptInsecureCerts": true, "goog:chromeOptions": options});
        let wanted = json!({"capabilities": {"alwaysMatch": wanted}});
        let session = session(&host, &wanted);
        Self {
            driver,
            host,
            session,
        }
    }

    fn command(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let path = format!("/session/{}{path}", self.session);
        let (status, answer) = ask(&self.host, method, &path, body);
        assert_eq!(status, 200, "{path}: {answer}");
        answer["value"].clone()
    }

    /// What a script in the page returns.
    pub(crate) fn run(&self, script: &str) -> Value {
        let body = json!({"script": script, "args": []});
        self.command("POST", "/execute/sync", Some(&body))
    }

    /// The text of the first element that a selector finds; empty if there is none.
    pub(crate) fn text(&self, selector: &str) -> String {
        let found = json!(selector);
        let script = format!("return document.querySelector({found})?.innerText ?? ''");
        let text = self.run(&script);
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the text of an element contains this, and returns it.
    pub(crate) async fn shows(&self, selector: &str, text: &str) -> String {
        let what = format!("{text:?} in {selector}");
        eventually(&what, DEADLINE, || async {
            let shown = self.text(selector);
            shown.contains(text).then_some(shown)
        })
        .await
    }

    /// Waits until the page shows the present state.
    pub(crate) async fn is_live(&self) {
        self.shows("#connection[data-level='good']", "live").await;
    }

    /// Elements that are wider than the screen.
    pub(crate) fn wider_than_screen(&self) -> Value {
        self.run(WIDER)
    }

    /// Waits until no element is found any more.
    pub(crate) async fn loses(&self, selector: &str) {
        let found = json!(selector);
        let script = format!("return document.querySelector({found}) === null");
        eventually(&format!("the end of {selector}"), DEADLINE, || async {
            self.run(&script) == true
        })
        .await;
    }

    /// Clicks as a user does: on the middle of the visible element, once nothing is drawn over it.
    pub(crate) async fn click(&self, selector: &str) {
        let by = json!({"using": "css selector", "value": selector});
        let post = |path: &str, body: &Value| {
            let path = format!("/session/{}/element{path}", self.session);
            let (status, answer) = ask(&self.host, "POST", &path, Some(body));
            (status == 200).then_some(answer)
        };
        eventually(&format!("a click on {selector}"), DEADLINE, || async {
            let element = post("", &by)?;
            let element = element["value"].as_object()?.values().next()?.as_str()?;
            post(&format!("/{element}/click"), &json!({}))
        })
        .await;
    }

    /// The window as a PNG, in base64.
    pub(crate) fn screenshot(&self) -> String {
        let picture = self.command("GET", "/screenshot", None);
        picture.as_str().expect("a picture").to_owned()
    }
}

/// Starts chromedriver; `None` if it has exited. It takes a port that is free on `::1`, and exits if another socket has
/// the same one on 127.0.0.1: one in a hundred does while demos run.
fn start_driver() -> Option<(Child, u16)> {
    let mut driver = Command::new("chromedriver")
        .arg("--port=0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("chromedriver starts");
    let out = BufReader::new(driver.stdout.take().expect("its output"));
    let port = out.lines().map_while(Result::ok).find_map(|line| {
        let (_, port) = line.split_once("started successfully on port ")?;
        port.trim_end_matches('.').parse().ok()
    });
    if port.is_none() {
        let _ = driver.wait();
    }
    Some((driver, port?))
}

/// A session with a browser of its own.
fn session(host: &str, wanted: &Value) -> String {
    let start = || ask(host, "POST", "/session", Some(wanted)).1["value"].take();
    let mut answer = start();
    for _ in 1..BROWSER_STARTS {
        if answer["error"] == "session not created" {
            answer = start();
        }
    }
    let session = answer["sessionId"].as_str();
    session.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Ending the session ends the browser. If that fails, the test does not: it is over.
        let _ = try_ask(
            &self.host,
            "DELETE",
            &format!("/session/{}", self.session),
            None,
        );
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
