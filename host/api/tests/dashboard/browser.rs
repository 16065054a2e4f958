//! A real browser without a window, spoken to through a pair of pipes (the DevTools protocol).

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Set to go on without a browser where there is none. CI never sets it.
const MAY_BE_MISSING: &str = "HOMEOSTAT_WITHOUT_BROWSER";

/// The machine may be busy with other things.
const PATIENCE: Duration = Duration::from_secs(120);

/// Nothing is fetched but what the page asks for.
const ARGUMENTS: &str = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
    --disable-background-networking --disable-component-update --disable-sync --disable-extensions \
    --disable-default-apps --disable-client-side-phishing-detection --metrics-recording-only --no-default-browser-check \
    --force-color-profile=srgb --hide-scrollbars --remote-debugging-pipe";

/// The browser. It ends with its pipes, whatever becomes of the test.
pub struct Browser {
    child: Child,
    to: Option<ChildStdin>,
    from: Receiver<Value>,
    next: u64,
    events: Vec<Value>,
    _profile: TempDir,
}

impl Browser {
    /// Starts it. `None` where it is not installed and that was allowed, loudly.
    pub fn start() -> Option<Browser> {
        let Some(program) = installed() else {
            if std::env::var_os(MAY_BE_MISSING).is_some() {
                eprintln!("\nNOT TESTED: no chromium is installed, and {MAY_BE_MISSING} is set\n");
                return None;
            }
            panic!("chromium is not installed (Debian: apt install chromium); {MAY_BE_MISSING}=1 goes on without");
        };
        let profile = tempfile::tempdir().unwrap();
        // It speaks through descriptors 3 and 4; a shell puts the pipes there.
        let line = format!(
            "exec \"$0\" {ARGUMENTS} --user-data-dir=\"$1\" about:blank 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null"
        );
        let mut child = Command::new("sh")
            .args(["-c", &line, program])
            .arg(profile.path())
            .env("HOME", profile.path())
            .env("XDG_CONFIG_HOME", profile.path())
            .env("XDG_CACHE_HOME", profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = child.stdin.take();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (sender, from) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while output.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else { return };
                if sender.send(value).is_err() {
                    return;
                }
                message.clear();
            }
        });
        Some(Browser { child, to, from, next: 0, events: Vec::new(), _profile: profile })
    }

    /// A page of its own, in a profile of its own, that is watched from the start.
    pub fn page(&mut self) -> Page<'_> {
        let context = self.call(None, "Target.createBrowserContext", json!({}))["browserContextId"].clone();
        let target = json!({"url": "about:blank", "browserContextId": context});
        let target = self.call(None, "Target.createTarget", target)["targetId"].clone();
        let attached = self.call(None, "Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        let session = attached["sessionId"].as_str().unwrap().to_owned();
        let mut page = Page { browser: self, session };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        page.size(1360, 900);
        page
    }

    fn call(&mut self, session: Option<&str>, method: &str, parameters: Value) -> Value {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": parameters});
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        let to = self.to.as_mut().unwrap();
        to.write_all(message.to_string().as_bytes()).and_then(|()| to.write_all(&[0])).expect("the browser is there");
        let end = Instant::now() + PATIENCE;
        loop {
            match self.from.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(answer) if answer["id"] == self.next => {
                    assert!(answer["error"].is_null(), "{method} {parameters}: {}", answer["error"]);
                    return answer["result"].clone();
                }
                Ok(event) => self.events.push(event),
                Err(RecvTimeoutError::Timeout) => panic!("no answer to {method}"),
                Err(RecvTimeoutError::Disconnected) => panic!("the browser ended during {method}"),
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends by itself when nobody speaks to it any more.
        self.to.take();
        let end = Instant::now() + Duration::from_secs(10);
        while Instant::now() < end {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn installed() -> Option<&'static str> {
    let there = |name: &&str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
    };
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(there)
}

/// A page.
pub struct Page<'a> {
    browser: &'a mut Browser,
    session: String,
}

impl Page<'_> {
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        let session = self.session.clone();
        self.browser.call(Some(&session), method, parameters)
    }

    pub fn goto(&mut self, url: &str) {
        self.call("Page.navigate", json!({"url": url}));
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'", "the page is loaded");
    }

    /// The value of an expression.
    pub fn eval(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    pub fn text(&mut self, selector: &str) -> String {
        let text = self.eval(&format!("document.querySelector({})?.innerText ?? '(nothing)'", json!(selector)));
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an expression is true.
    pub fn wait(&mut self, expression: &str, what: &str) {
        let end = Instant::now() + PATIENCE;
        let asked = json!({"expression": format!("Boolean({expression})"), "returnByValue": true});
        // A page that is being left has no answer.
        while self.call("Runtime.evaluate", asked.clone())["result"]["value"] != json!(true) {
            if Instant::now() > end {
                let text = self.eval("document.body.innerText");
                panic!("never: {what} ({expression})\n{}", text.as_str().unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(40));
        }
    }

    /// Presses and lets go of a key.
    pub fn key(&mut self, key: &str) {
        let (code, number, text) = match key {
            "Tab" => ("Tab", 9, None),
            "Enter" => ("Enter", 13, Some("\r")),
            "Escape" => ("Escape", 27, None),
            "Home" => ("Home", 36, None),
            "End" => ("End", 35, None),
            "ArrowUp" => ("ArrowUp", 38, None),
            "ArrowDown" => ("ArrowDown", 40, None),
            "/" => ("Slash", 191, Some("/")),
            other => panic!("{other} is not known here"),
        };
        let mut event = json!({"type": "keyDown", "key": key, "code": code, "windowsVirtualKeyCode": number});
        if let Some(text) = text {
            event["text"] = json!(text);
        }
        self.call("Input.dispatchKeyEvent", event.clone());
        event["type"] = json!("keyUp");
        self.call("Input.dispatchKeyEvent", event);
    }

    pub fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", json!({"text": text}));
    }

    /// What has the focus, in words.
    pub fn focused(&mut self) -> String {
        let focused = "(e => `${e.tagName} ${e.id} ${e.className} ${e.dataset.node ?? e.dataset.number ?? ''}`)(document.activeElement)";
        self.eval(focused).as_str().unwrap_or_default().to_owned()
    }

    /// The size of the window, as the page has taken it over. A narrow one is a phone.
    pub fn size(&mut self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500});
        self.call("Emulation.setDeviceMetricsOverride", size);
        self.wait(&format!("innerWidth === {width}"), "the size");
        // What listens to the size is called with the next frame.
        self.eval("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))");
    }

    /// What the person prefers, such as `("prefers-color-scheme", "dark")`.
    pub fn prefer(&mut self, features: &[(&str, &str)]) {
        let features: Vec<Value> = features.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        self.call("Emulation.setEmulatedMedia", json!({"features": features}));
    }

    /// Writes a picture, if somebody wants to look: `HOMEOSTAT_SCREENSHOTS` names a folder.
    pub fn picture(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("HOMEOSTAT_SCREENSHOTS") else { return };
        let answer = self.call("Page.captureScreenshot", json!({"format": "png"}));
        let bytes = decode(answer["data"].as_str().unwrap());
        std::fs::write(Path::new(&folder).join(format!("{name}.png")), bytes).unwrap();
    }

    /// What went wrong in the page since the last time: exceptions, errors on the console, refusals of the security policy.
    /// Requests that failed are not counted when `offline`.
    pub fn troubles(&mut self, offline: bool) -> Vec<String> {
        self.eval("0");
        let mut found = Vec::new();
        for event in self.events() {
            let parameters = &event["params"];
            match event["method"].as_str().unwrap_or_default() {
                "Runtime.exceptionThrown" => found.push(parameters["exceptionDetails"].to_string()),
                "Runtime.consoleAPICalled" if parameters["type"] == "error" || parameters["type"] == "warning" => {
                    found.push(parameters["args"].to_string());
                }
                "Log.entryAdded" => {
                    let entry = &parameters["entry"];
                    // Asked for by the browser itself, while the form is shown that comes before.
                    let icon = entry["url"].as_str().is_some_and(|url| url.ends_with("/favicon.ico"));
                    let failed = offline && entry["source"] == "network";
                    if !icon && !failed {
                        found.push(entry.to_string());
                    }
                }
                "Page.javascriptDialogOpening" => found.push(format!("a dialog: {}", parameters["message"])),
                _ => {}
            }
        }
        self.browser.events.retain(|event| event["method"] == "Network.requestWillBeSent");
        found
    }

    /// The addresses that were asked for.
    pub fn requests(&mut self) -> Vec<String> {
        let events = self.events();
        let sent = events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        sent.map(|event| event["params"]["request"]["url"].as_str().unwrap().to_owned()).collect()
    }

    fn events(&self) -> Vec<Value> {
        self.browser.events.iter().filter(|event| event["sessionId"] == self.session.as_str()).cloned().collect()
    }
}

/// Base 64.
fn decode(text: &str) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().filter(|c| *c != b'=').map(value).collect();
    let mut bytes = Vec::new();
    for four in digits.chunks(4) {
        let bits = four.iter().fold(0_u32, |bits, digit| bits << 6 | u32::from(*digit)) << (6 * (4 - four.len()));
        bytes.extend(&bits.to_be_bytes()[1..four.len()]);
    }
    bytes
}
