//! The daemon goes away and comes back.

use api::wire::{Node, What};

use crate::browser::Browser;
use crate::fake::Options;
use crate::{Daemon, log_in};

fn converged() -> Options {
    Options { groups: vec![("web".into(), 2)], epoch: "first".into(), ..Options::default() }
}

#[test]
fn a_banner_says_that_what_is_shown_is_old_and_goes_by_itself() {
    let Some(mut browser) = Browser::start() else { return };
    let mut page = browser.page();
    let daemon = Daemon::start(converged());
    log_in(&mut page, &daemon);
    page.wait("document.querySelectorAll('button.node').length === 2", "two nodes");
    assert_eq!(page.eval("document.querySelector('#banner').hidden"), true);
    assert_eq!(page.troubles(false), Vec::<String>::new());
    let soon = crate::fake::now_ms() + 600_000;
    let waiting = |node: &str| Node {
        node: node.into(),
        group: "web".into(),
        desired: true,
        attempt: Some(1),
        stage: "joined".into(),
        until_ms: Some(soon),
        ..Node::default()
    };
    daemon.fake.say(What::Node(Box::new(waiting("web-0"))));
    page.wait("/^in \\d/.test(document.querySelector('button[data-node=\"web-0\"] .until').innerText)", "a countdown");

    // Runs before the next frame: what is seen together with the banner.
    page.eval(
        "new MutationObserver((_, it) => {
           window.beside = document.querySelector('#verdict-title').innerText;
           it.disconnect();
         }).observe(document.querySelector('#banner'), { attributes: true, attributeFilter: ['hidden'] })",
    );
    let address = daemon.kill();
    page.wait("window.beside", "the banner");
    assert_eq!(page.eval("document.querySelector('#banner').hidden"), false);
    let beside = page.eval("window.beside").as_str().unwrap().to_owned();
    assert!(beside.starts_with("Was "), "no frame has the banner beside a verdict that sounds current: {beside}");
    let banner = page.text("#banner-text");
    assert!(banner.contains("Not live") && banner.contains("What is shown is from"), "{banner}");
    assert!(page.text("#verdict-title").starts_with("Was "), "nobody knows whether it still is");
    let title = page.eval("document.title").as_str().unwrap().to_owned();
    assert!(title.starts_with('?'), "{title}");
    let until = "document.querySelector('button[data-node=\"web-0\"] .until').innerText";
    page.wait(&format!("{until}.startsWith('at ')"), "an instant, no countdown");
    assert!(page.text("#announce").contains("lost"));
    page.picture("stale");

    // Another start, with another fleet: the list is read anew.
    let daemon =
        Daemon::at(address, Options { groups: vec![("web".into(), 3)], epoch: "second".into(), ..Options::default() });
    page.wait("document.querySelector('#banner').hidden", "the banner goes by itself");
    page.wait("document.querySelectorAll('button.node').length === 3", "what is there now");
    assert!(!page.text("#verdict-title").starts_with("Was "));
    daemon.fake.say(What::Gone { node: "web-2".into() });
    page.wait("document.querySelectorAll('button.node').length === 2", "it is live");
    assert_eq!(page.troubles(true), Vec::<String>::new());

    // A proper end is said, until the next try finds nobody.
    page.eval(
        "window.said = '';
         new MutationObserver(() => { said += document.querySelector('#banner-text').textContent + '\\n' })
           .observe(document.querySelector('#banner-text'), { childList: true, characterData: true, subtree: true })",
    );
    daemon.stop();
    page.wait("window.said.includes('stop')", "the daemon said goodbye");
    page.eval("document.querySelector('#retry').click()");
    page.wait("!document.querySelector('#banner').hidden", "nobody is there");
}

#[test]
fn after_a_short_break_it_goes_on_where_it_was() {
    let Some(mut browser) = Browser::start() else { return };
    let mut page = browser.page();
    let mut daemon = Daemon::start(converged());
    log_in(&mut page, &daemon);
    page.wait("document.querySelectorAll('button.node').length === 2", "two nodes");
    daemon.cut();
    page.wait("!document.querySelector('#banner').hidden", "the banner");
    daemon.fake.say(What::Gone { node: "web-1".into() });
    page.eval("window.kept = document.querySelector('button[data-node=\"web-0\"]')");
    daemon.again();
    page.wait("document.querySelector('#banner').hidden", "live again");
    page.wait("document.querySelectorAll('button.node').length === 1", "what happened meanwhile");
    assert_eq!(page.eval("window.kept.isConnected"), true, "rows stay what they are");
    let asked = page.requests();
    assert!(asked.iter().any(|url| url.contains("/v1/watch?from=first-")), "it resumes: {asked:?}");
}

#[test]
fn a_session_that_ended_asks_to_log_in_again() {
    let Some(mut browser) = Browser::start() else { return };
    let mut page = browser.page();
    let daemon = Daemon::start(converged());
    log_in(&mut page, &daemon);
    page.call("Network.clearBrowserCookies", serde_json::json!({}));
    let address = daemon.kill();
    page.wait("!document.querySelector('#banner').hidden", "the banner");
    let daemon = Daemon::at(address, converged());
    // It tries by itself, and perhaps has already: the same button means something else then.
    page.eval("document.querySelector('#retry').innerText === 'Reload' || document.querySelector('#retry').click()");
    page.wait("document.querySelector('#banner-text').innerText.includes('logged out')", "it says so");
    page.eval("document.querySelector('#retry').click()");
    page.wait("document.querySelector('input[name=token]')", "the form");
    drop(daemon);
}
