//! Small windows, dark rooms, sharp and tired eyes, and text of somebody who means harm.

use api::wire::{Node, Orphan, Pause, What};
use serde_json::Value;

use crate::browser::Page;
use crate::fake::Options;
use crate::{Daemon, browse};

/// The least contrast of all text that is shown with what is behind it, and where (WCAG's formula).
const CONTRAST: &str = r"(() => {
  const parts = c => (c.match(/[\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = e => {
    for (; e; e = e.parentElement) {
      const c = parts(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  let worst = [99, ''];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text; (text = walker.nextNode()); ) {
    const e = text.parentElement;
    if (!text.data.trim() || !e.checkVisibility({visibilityProperty: true}) || e.closest('noscript, .unseen, .skip')) continue;
    const [a, b] = [light(parts(getComputedStyle(e).color)), light(behind(e))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < worst[0]) worst = [contrast, `${e.tagName}.${e.className}: ${text.data.slice(0, 40)}`];
  }
  return worst;
})()";

pub fn check_contrast(page: &mut Page<'_>, what: &str) {
    let worst = page.eval(CONTRAST);
    assert!(worst[0].as_f64().unwrap() >= 4.5, "{what}: {worst}");
}

pub fn check_width(page: &mut Page<'_>, what: &str) {
    let wide = page.eval("[document.documentElement.scrollWidth, document.documentElement.clientWidth, \
                          document.querySelector('#drawer-body').scrollWidth - document.querySelector('#drawer-body').clientWidth]");
    assert!(wide[0].as_u64() <= wide[1].as_u64() && wide[2] == 0, "{what} scrolls sideways: {wide}");
}

/// Something of everything, said while somebody watches.
fn mixed(daemon: &Daemon) {
    let guard = Pause {
        group: Some("web".into()),
        only: "destroy".into(),
        by: "destroys-per-minute".into(),
        since_ms: crate::fake::now_ms() - 240_000,
        reason: "6 destroys in a minute; 5 is the limit".into(),
        resume: "homeostat resume web --only destroy".into(),
    };
    daemon.fake.say(What::Paused(guard));
    for (index, stage, held) in
        [(0, "endpoint-known", None), (1, "destroyed", Some("guard destroys-per-minute")), (2, "vacant", None)]
    {
        let node = Node {
            node: format!("edge-{index}"),
            group: "edge".into(),
            index,
            desired: true,
            attempt: (index < 2).then_some(90),
            stage: stage.into(),
            deleting: index == 1,
            held: held.map(str::to_owned),
            waits_for: if index == 0 { "the next look".into() } else { String::new() },
            until_ms: Some(crate::fake::now_ms() + 45_000),
            rule: Some("R10".into()),
            ..Node::default()
        };
        daemon.fake.say(What::Node(Box::new(node)));
    }
}

#[test]
fn light_and_dark_in_every_size() {
    let daemon = Daemon::start(Options::default());
    daemon.steps(19);
    browse(&daemon, |page| {
        mixed(&daemon);
        page.wait("document.querySelectorAll('button.node').length === 14", "the nodes");
        page.wait("document.querySelector('#timeline button')", "decisions");
        let mut pages = Vec::new();
        for scheme in ["light", "dark"] {
            for (width, height) in [(1360, 900), (768, 1024), (390, 844), (320, 568)] {
                let name = format!("{scheme}-{width}");
                page.prefer(&[("prefers-color-scheme", scheme), ("prefers-reduced-motion", "reduce")]);
                page.size(width, height);
                page.eval("scrollTo(0, 0)");
                check_width(page, &name);
                check_contrast(page, &name);
                page.picture(&name);
                page.eval("document.querySelector('button.node[data-state=failing], button.node').click()");
                page.wait("document.querySelectorAll('#drawer [data-part]').length >= 5", "the node");
                check_width(page, &format!("{name}, a node"));
                check_contrast(page, &format!("{name}, a node"));
                page.picture(&format!("{name}-node"));
                page.key("Escape");
                page.wait("!document.querySelector('#drawer').open", "closed");
            }
            pages.push(page.eval("getComputedStyle(document.body).backgroundColor"));
        }
        assert_ne!(pages[0], pages[1], "dark is not light");
        let moving = page.eval("document.getAnimations().length");
        assert_eq!(moving, 0, "nothing moves for those who asked for that");
    });
}

/// Says what tries to break the page that shows it.
fn harm(daemon: &Daemon) {
    let name = "<script>window.hit=1</script>\u{202e}evil\"'><img src=x onerror=window.hit=2>";
    let long = "a".repeat(5_000);
    for (index, node) in [(0, name), (1, long.as_str()), (2, "__proto__"), (3, "../../v1/status?x=1#y"), (4, "مرحبا-0")]
    {
        let node = Node {
            node: node.into(),
            group: "<b>bold</b>".into(),
            index,
            desired: true,
            attempt: Some(u64::MAX),
            stage: "</span><i>stage</i>".into(),
            error: Some(format!("<iframe src=//example.org></iframe>{long}\u{2066}\u{0}")),
            waits_for: "javascript:window.hit=3".into(),
            failures: u32::MAX,
            until_ms: Some(u64::MAX),
            endpoint: Some("javascript:window.hit=4".into()),
            rule: Some("<svg onload=window.hit=5>".into()),
            ..Node::default()
        };
        daemon.fake.say(What::Node(Box::new(node)));
    }
    daemon.fake.say(What::Orphan(Orphan {
        provider: "<img src=x>".into(),
        lease: long.clone(),
        node: name.into(),
        ..Orphan::default()
    }));
    daemon.fake.say(What::Paused(Pause {
        by: name.into(),
        reason: name.repeat(20),
        resume: "`rm -rf`".into(),
        only: name.into(),
        ..Pause::default()
    }));
    daemon.fake.say(What::Notice { level: "\"><script>window.hit=6</script>".into(), text: name.repeat(10) });
}

#[test]
fn hostile_text_is_text() {
    let daemon = Daemon::start(Options { hostile: true, ..Options::default() });
    daemon.steps(9);
    browse(&daemon, |page| {
        harm(&daemon);
        page.wait("document.querySelectorAll('button.node').length === 16", "all nodes");
        page.size(390, 844);
        check_width(page, "hostile text");
        let made = page.eval("document.querySelectorAll('script:not([src]), img, iframe, svg, main b b').length");
        assert_eq!(made, 0, "no element is made of text");
        assert_eq!(page.eval("window.hit ?? 'never'"), "never");
        let shown = page.eval("document.querySelector('#groups').textContent").as_str().unwrap().to_owned();
        assert!(
            shown.contains("<script>window.hit=1</script>␣202eevil"),
            "it is shown as it is, marks of direction named"
        );
        assert!(!shown.contains('\u{202e}'));
        page.picture("hostile");
        let nodes = page.eval("[...document.querySelectorAll('button.node')].map(e => e.dataset.node)");
        let Value::Array(nodes) = nodes else { panic!() };
        for node in nodes.iter().filter(|node| !node.as_str().unwrap().starts_with(['w', 'd'])) {
            page.eval(&format!(
                "[...document.querySelectorAll('button.node')].find(e => e.dataset.node === {node}).click()"
            ));
            page.wait("document.querySelector('#drawer').open && !document.querySelector('#drawer-body').innerText.startsWith('Reading')", "opened");
            check_width(page, "the drawer");
            page.key("Escape");
            page.wait("!document.querySelector('#drawer').open", "closed");
        }
        assert_eq!(page.eval("window.hit ?? 'never'"), "never");
        // The server knows none of these nodes, and the browser logs that.
        assert_eq!(page.troubles(true), Vec::<String>::new());
    });
}
