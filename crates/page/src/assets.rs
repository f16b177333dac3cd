//! The files of the page.

/// A file of the page.
pub(crate) struct Asset {
    pub(crate) path: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) body: &'static str,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// All of them. Nothing is loaded from elsewhere.
pub(crate) const ASSETS: [Asset; 6] = [
    Asset {
        path: "/",
        kind: "text/html; charset=utf-8",
        body: include_str!("../assets/page.html"),
    },
    Asset {
        path: "/page.css",
        kind: "text/css; charset=utf-8",
        body: include_str!("../assets/page.css"),
    },
    Asset {
        path: "/draw.js",
        kind: SCRIPT,
        body: include_str!("../assets/draw.js"),
    },
    Asset {
        path: "/sections.js",
        kind: SCRIPT,
        body: include_str!("../assets/sections.js"),
    },
    Asset {
        path: "/view.js",
        kind: SCRIPT,
        body: include_str!("../assets/view.js"),
    },
    Asset {
        path: "/page.js",
        kind: SCRIPT,
        body: include_str!("../assets/page.js"),
    },
];
