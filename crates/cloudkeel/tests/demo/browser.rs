//! A headless Chromium, driven by chromedriver over plain `WebDriver`.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cloudkeel_testkit::cluster::eventually;
use serde_json::{Value, json};

use crate::http::ask;

const DEADLINE: Duration = Duration::from_mins(1);

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

    /// Opens a page that only a token opens, of a server whose certificate nobody knows.
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
            port.trim_end_matches('.').parse::<u16>().ok()
        });
        let host = format!("127.0.0.1:{}", port.expect("chromedriver tells its port"));
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
        let (status, answer) = ask(&host, "POST", "/session", Some(&wanted));
        assert_eq!(status, 200, "{answer}");
        let session = answer["value"]["sessionId"].as_str().expect("a session");
        Self {
            driver,
            session: session.to_owned(),
            host,
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

    /// Waits until no element is found any more.
    pub(crate) async fn loses(&self, selector: &str) {
        let found = json!(selector);
        let script = format!("return document.querySelector({found}) === null");
        eventually(&format!("the end of {selector}"), DEADLINE, || async {
            self.run(&script) == true
        })
        .await;
    }

    /// Clicks as a person does: on the middle of what is seen.
    pub(crate) async fn click(&self, selector: &str) {
        let by = json!({"using": "css selector", "value": selector});
        let find = format!("/session/{}/element", self.session);
        let element = eventually(&format!("an element {selector}"), DEADLINE, || async {
            let (status, answer) = ask(&self.host, "POST", &find, Some(&by));
            let first = answer["value"]
                .as_object()
                .and_then(|ids| ids.values().next());
            let id = first.and_then(Value::as_str).map(str::to_owned);
            id.filter(|_| status == 200)
        })
        .await;
        let path = format!("/element/{element}/click");
        self.command("POST", &path, Some(&json!({})));
    }

    /// The window as a PNG, in base64.
    pub(crate) fn screenshot(&self) -> String {
        let picture = self.command("GET", "/screenshot", None);
        picture.as_str().expect("a picture").to_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // Ending the session ends the browser.
            self.command("DELETE", "", None);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
