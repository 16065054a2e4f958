//! What a browser is shown at `/`: files that are part of the program. They ask `/v1` like everybody else, and they load
//! nothing from anywhere else.

use std::fmt::Write as _;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH};
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::get;
use sha2::{Digest, Sha256};

/// A file of the dashboard.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// Where it is served.
    pub path: &'static str,
    /// Its `Content-Type`.
    pub media: &'static str,
    /// What is in it.
    pub text: &'static str,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! asset {
    ($path:literal, $file:literal, $media:expr) => {
        Asset { path: $path, media: $media, text: include_str!(concat!("../assets/", $file)) }
    };
}

/// All of them.
pub const ASSETS: &[Asset] = &[
    asset!("/", "index.html", "text/html; charset=utf-8"),
    asset!("/assets/style.css", "style.css", "text/css; charset=utf-8"),
    asset!("/assets/icon.svg", "icon.svg", "image/svg+xml"),
    asset!("/assets/main.js", "main.js", SCRIPT),
    asset!("/assets/feed.js", "feed.js", SCRIPT),
    asset!("/assets/fleet.js", "fleet.js", SCRIPT),
    asset!("/assets/list.js", "list.js", SCRIPT),
    asset!("/assets/timeline.js", "timeline.js", SCRIPT),
    asset!("/assets/drawer.js", "drawer.js", SCRIPT),
    asset!("/assets/decider.js", "decider.js", SCRIPT),
    asset!("/assets/parts.js", "parts.js", SCRIPT),
    asset!("/assets/summary.js", "summary.js", SCRIPT),
    asset!("/assets/clock.js", "clock.js", SCRIPT),
    asset!("/assets/dom.js", "dom.js", SCRIPT),
];

/// The pages.
pub fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    ASSETS.iter().fold(Router::new(), |router, asset| {
        let tag = tag(asset.text);
        router.route(asset.path, get(move |headers: HeaderMap| std::future::ready(answer(*asset, &tag, &headers))))
    })
}

/// The file, or nothing when the browser has it. It asks each time: another version of the daemon has other files.
fn answer(asset: Asset, tag: &str, headers: &HeaderMap) -> Response<Body> {
    let known = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut known = known.flat_map(|value| value.split(',')).map(|one| one.trim().trim_start_matches("W/"));
    let has_it = known.any(|one| one == tag || one == "*");
    let mut response = Response::new(if has_it { Body::empty() } else { Body::from(asset.text) });
    if has_it {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.media));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(ETAG, tag);
    }
    response
}

/// Names the content.
fn tag(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let mut tag = String::from("\"");
    for byte in digest.iter().take(12) {
        let _ = write!(tag, "{byte:02x}");
    }
    tag.push('"');
    tag
}
