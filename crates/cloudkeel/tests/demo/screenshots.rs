//! The screenshots in the documentation. They are replaced only if `CLOUDKEEL_PICTURES` names a folder for them;
//! otherwise they go to a temporary one, so that taking them is tested too.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use tempfile::TempDir;

use crate::browser::Browser;
use crate::process::Demo;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

fn take(browser: &Browser, path: &Path) {
    let picture = BASE64_STANDARD.decode(browser.screenshot());
    let picture = picture.expect("base64");
    assert!(picture.starts_with(PNG), "{} is a PNG", path.display());
    std::fs::write(path, picture).expect("the picture is written");
}

/// Where screenshots go.
pub(crate) struct Screenshots {
    thrown_away: TempDir,
    wanted: Option<PathBuf>,
}

impl Screenshots {
    pub(crate) fn open() -> Self {
        Self {
            thrown_away: TempDir::new().expect("a folder"),
            wanted: std::env::var_os("CLOUDKEEL_PICTURES").map(PathBuf::from),
        }
    }

    /// Takes a screenshot of the window.
    pub(crate) fn take(&self, browser: &Browser, name: &str) {
        let folder = self.wanted.as_deref();
        take(
            browser,
            &folder.unwrap_or(self.thrown_away.path()).join(name),
        );
    }
}

#[ignore = "needs Chromium: cargo xtask test --tier page"]
#[tokio::test]
async fn the_page_is_pictured_light_dark_and_on_a_phone() {
    let album = Screenshots::open();
    let mut demo = Demo::start(&["--scenario", "power-off"]);
    for _ in 0..3 {
        let step = demo.line().expect("a step");
        assert_eq!(step["step"]["passed"], true, "{step}");
    }
    let page = demo.text("page").to_owned();
    for (name, dark, width, height) in [
        ("demo-light.png", false, 1280, 1500),
        ("demo-dark.png", true, 1280, 1500),
        ("demo-phone.png", false, 390, 1200),
    ] {
        let browser = Browser::open(&page, dark, width, height);
        browser.is_live().await;
        browser.shows("#steps-list", "passed").await;
        album.take(&browser, name);
    }
}
