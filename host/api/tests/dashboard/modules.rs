//! The page's modules where a whole page is a poor way to ask: clocks, and the format of events.

use api::wire::{Node, What};
use serde_json::json;

use crate::browser::Browser;
use crate::fake::Options;
use crate::{Daemon, browse, log_in};

#[test]
fn another_clock_here_is_said_and_counted_in() {
    // A second more or less is a matter of rounding, and some of them of a busy machine.
    for (wrong_ms, words) in
        [(-3_600_000_i64, "/(1 h 00 min|59 min [45][0-9] s) behind/"), (7_200_000, "/(2 h 00|1 h 59) min ahead of/")]
    {
        let Some(mut browser) = Browser::start() else { return };
        let mut page = browser.page();
        let source = format!("(() => {{ const now = Date.now.bind(Date); Date.now = () => now() + {wrong_ms} }})()");
        page.call("Page.addScriptToEvaluateOnNewDocument", json!({"source": source}));
        let daemon = Daemon::start(Options::default());
        log_in(&mut page, &daemon);
        let node = Node {
            node: "web-0".into(),
            group: "web".into(),
            desired: true,
            attempt: Some(1),
            stage: "joined".into(),
            until_ms: Some(crate::fake::now_ms() + 90_000),
            ..Node::default()
        };
        daemon.fake.say(What::Node(Box::new(node)));
        let until = "document.querySelector('button[data-node=\"web-0\"] .until')?.innerText";
        page.wait(&format!("/^in [3-9]\\d s$/.test({until})"), "the daemon's clock counts");
        page.wait(&format!("{words}.test(document.querySelector('#foot').innerText)"), "it is said");
        assert_eq!(page.troubles(false), Vec::<String>::new());
    }
}

#[test]
fn events_are_read_however_they_are_cut() {
    let daemon = Daemon::start(Options::default());
    browse(&daemon, |page| {
        let text = "retry: 2000\n\n: beat\n\nevent: change\nid: a-1\ndata: {\"x\":\ndata: \"\u{1f600}\"}\n\n\
                    data:no space\r\n\r\nevent: end\ndata\n\nevent: half\ndata: never";
        let script = format!(
            "(async () => {{
               const {{EventParser}} = await import('/assets/feed.js');
               const text = {};
               const all = [];
               for (let size = 1; size <= text.length; size++) {{
                 const parser = new EventParser();
                 const found = [];
                 for (let at = 0; at < text.length; at += size) found.push(...parser.feed(text.slice(at, at + size)));
                 all.push(JSON.stringify(found));
               }}
               return [...new Set(all)];
             }})()",
            json!(text)
        );
        let found = page.eval(&script);
        assert_eq!(found.as_array().unwrap().len(), 1, "however it is cut: {found}");
        let events: serde_json::Value = serde_json::from_str(found[0].as_str().unwrap()).unwrap();
        assert_eq!(
            events,
            json!([
                {"type": "change", "data": "{\"x\":\n\"\u{1f600}\"}", "id": "a-1"},
                {"type": "message", "data": "no space", "id": ""},
                {"type": "end", "data": "", "id": ""},
            ])
        );
    });
}

#[test]
fn lengths_and_instants_in_words() {
    let daemon = Daemon::start(Options::default());
    browse(&daemon, |page| {
        let said = page.eval(
            "(async () => {
               const {length, instant, until, whole, since, now} = await import('/assets/clock.js');
               return [length(-5), length(1_400), length(99_400), length(100_000), length(3_599_400), length(3_600_000), length(172_800_000),
                 until(now() + 5_000, true), until(now() - 200, true), until(now() - 20_000, true), until(null, true), until(1e300, true),
                 until(undefined, false), instant(NaN), whole(1e300), since(1e300)];
             })()",
        );
        let words = [
            "0 s",
            "1 s",
            "99 s",
            "1 min 40 s",
            "59 min 59 s",
            "1 h 00 min",
            "2 d 0 h",
            "in 5 s",
            "now",
            "20 s overdue",
            "",
            "never",
            "",
            "",
            "",
            "",
        ];
        assert_eq!(said, json!(words));
    });
}
