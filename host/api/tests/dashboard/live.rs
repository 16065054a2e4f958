//! What is shown, and that it moves by itself.

use api::wire::{Node, Orphan, Pause, RefusedFile, What};

use crate::fake::Options;
use crate::{Daemon, browse};

#[test]
fn groups_nodes_and_all_around_them() {
    let daemon = Daemon::start(Options::default());
    daemon.steps(4);
    browse(&daemon, |page| {
        page.wait("document.querySelectorAll('button.node').length === 11", "eleven nodes");
        assert_eq!(page.text("#run"), "demo");
        let groups = page.eval("[...document.querySelectorAll('.group-head .name')].map(e => e.textContent)");
        assert_eq!(groups, serde_json::json!(["web", "worker", "db"]));
        let header = page.text("#facts");
        assert!(header.contains("built-in 0.1.0") && header.contains("5f0c1b7e9a"), "{header}");
        let verdict = page.text("#verdict");
        assert!(verdict.contains("Not converged") && verdict.contains(" of 11 ready"), "{verdict}");
        let alerts = page.eval("document.querySelector('#alerts').textContent").as_str().unwrap().to_owned();
        for words in
            ["2 orphans", "proc-4711", "web-9", "Paused by operator", "homeostat resume db --only destroy", "proc-4600"]
        {
            assert!(alerts.contains(words), "{words}: {alerts}");
        }
        let row = page.text("button[data-node='web-0']");
        assert!(row.contains("attempt") && row.contains("in "), "a stage, an attempt and a countdown: {row}");
        assert_eq!(page.eval("document.querySelectorAll('button[data-node=\"web-0\"] .track i.here').length"), 1);
        page.picture("desktop-light");
    });
}

#[test]
fn it_moves_without_a_reload_and_only_where_something_changed() {
    let daemon = Daemon::start(Options::default());
    browse(&daemon, |page| {
        page.wait("document.querySelectorAll('button.node').length === 11", "eleven nodes");
        let began = std::time::Instant::now();
        page.eval(
            "window.before = document.querySelector('button[data-node=\"web-1\"]'); window.touched = 0; \
                   new MutationObserver(all => touched += all.length).observe(window.before, \
                   {subtree: true, childList: true, characterData: true, attributes: true})",
        );
        let node = |stage: &str, ready, until_ms| Node {
            node: "web-0".into(),
            group: "web".into(),
            desired: true,
            attempt: Some(42),
            stage: stage.into(),
            ready,
            until_ms,
            ..Node::default()
        };
        let soon = crate::fake::now_ms() + 90_000;
        daemon.fake.say(What::Node(Box::new(node("joined", false, Some(soon)))));
        page.wait("document.querySelector('button[data-node=\"web-0\"]').innerText.includes('joined')", "it joined");
        let first = page.text("button[data-node='web-0'] .until");
        page.wait(
            &format!("document.querySelector('button[data-node=\"web-0\"] .until').innerText !== '{first}'"),
            "the countdown runs",
        );
        daemon.fake.say(What::Node(Box::new(node("dormant", true, None))));
        page.wait("document.querySelector('button[data-node=\"web-0\"]').dataset.state === 'ready'", "it is ready");
        assert_eq!(page.eval("window.before.isConnected"), true, "other rows stay");
        // Those of the countdown alone: its text once a second, and perhaps its title.
        let texts = page.eval("window.touched").as_u64().unwrap();
        let most = 3 * (began.elapsed().as_secs() + 2);
        assert!(texts <= most, "{texts} changes to a row that did not change, at most {most}");
        daemon.fake.say(What::Gone { node: "web-2".into() });
        page.wait("!document.querySelector('button[data-node=\"web-2\"]')", "a node that is gone is gone");
        daemon.fake.say(What::Node(Box::new(Node {
            node: "new-0".into(),
            group: "new".into(),
            ..node("new", false, None)
        })));
        page.wait("document.querySelector('button[data-node=\"new-0\"]')", "a new group appears");
        daemon.fake.say(What::Paused(Pause {
            by: "destroys-per-minute".into(),
            only: "destroy".into(),
            ..Pause::default()
        }));
        page.wait("document.querySelector('#alerts').innerText.includes('destroys-per-minute')", "a guard holds");
        daemon.fake.say(What::Orphan(Orphan {
            provider: "process".into(),
            lease: "found-1".into(),
            ..Orphan::default()
        }));
        page.wait("document.querySelector('#alerts').innerText.includes('found-1')", "an orphan is found");
        let reason = "fleet.toml:3:1: unknown key `cuont`".to_owned();
        let file = "fleet.toml".to_owned();
        daemon.fake.say(What::FileRefused(RefusedFile { file: file.clone(), reason, since_ms: crate::fake::now_ms() }));
        page.wait("document.querySelector('#alerts').innerText.includes('cuont')", "what is wrong with the file");
        assert!(page.text("#alerts").contains("stays in force"), "{}", page.text("#alerts"));
        daemon.fake.say(What::FileTaken { file });
        page.wait("!document.querySelector('#alerts').innerText.includes('cuont')", "the file was taken over");
        daemon.fake.say(What::Notice { level: "warning".into(), text: "the disk is nearly full".into() });
        page.wait("document.querySelector('#timeline').innerText.includes('nearly full')", "a notice is shown");
        assert_eq!(page.eval("performance.getEntriesByType('navigation').length"), 1);
    });
}

#[test]
fn a_decision_shows_facts_rule_and_difference() {
    let daemon = Daemon::start(Options::default());
    daemon.steps(3);
    browse(&daemon, |page| {
        page.wait("document.querySelectorAll('button.decision').length > 5", "decisions");
        let newest = page.eval("[...document.querySelectorAll('button.decision')].map(e => Number(e.dataset.number))");
        let newest: Vec<u64> = serde_json::from_value(newest).unwrap();
        assert!(newest.windows(2).all(|two| two[0] > two[1]), "newest first: {newest:?}");
        let row = page.text("button.decision");
        assert!(row.contains("hold") || row.contains("create-lease"), "{row}");
        page.eval("document.querySelector('button.decision').click()");
        page.wait("document.querySelector('#drawer').open", "the drawer opens");
        let drawer = page.text("#drawer");
        for words in ["Rule", "Because", "intent", "active", "stage", "Before", "After"] {
            assert!(drawer.to_lowercase().contains(&words.to_lowercase()), "{words}: {drawer}");
        }
        let difference = page
            .eval("[document.querySelector('#drawer del').innerText, document.querySelector('#drawer ins').innerText]");
        assert!(difference[0] != difference[1] && !difference[1].as_str().unwrap().is_empty(), "{difference}");
        page.picture("decision");
        // From there to the node, and back by the browser's own button.
        page.eval("document.querySelector('#drawer a').click()");
        page.wait("document.querySelector('#drawer [data-part=history] ol')", "the node with its history");
        page.eval("history.back()");
        page.wait("document.querySelector('#drawer-title').innerText.startsWith('Decision')", "back at the decision");
        page.eval("history.back()");
        page.wait("!document.querySelector('#drawer').open", "closed");
        // A new decision comes to the top.
        daemon.steps(1);
        let before = newest[0];
        page.wait(
            &format!("Number(document.querySelector('button.decision').dataset.number) > {before}"),
            "a newer one",
        );
    });
}

#[test]
fn a_node_shows_why_it_is_where_it_is() {
    let daemon = Daemon::start(Options::default());
    daemon.steps(9);
    browse(&daemon, |page| {
        page.wait("document.querySelector('button.node[data-state=failing]')", "a node fails");
        let worst = page.text("#worst");
        assert!(worst.contains("address already in use"), "{worst}");
        page.eval("document.querySelector('button.node[data-state=failing]').click()");
        page.wait("document.querySelectorAll('#drawer [data-part]').length >= 5", "the parts");
        let drawer = page.text("#drawer");
        for words in ["failing", "address already in use", "Ladder", "Rule", "History", "What you can do", "attempt"] {
            assert!(drawer.to_lowercase().contains(&words.to_lowercase()), "{words}: {drawer}");
        }
        page.picture("node");
        // What is open follows the node.
        let node = page.eval("document.querySelector('#drawer-title').innerText").as_str().unwrap().to_owned();
        let (group, index) = node.rsplit_once('-').unwrap();
        daemon.fake.say(What::Node(Box::new(Node {
            node: node.clone(),
            group: group.into(),
            index: index.parse().unwrap(),
            desired: true,
            ..Node::default()
        })));
        page.wait("document.querySelector('#drawer').open", "it stays open");
    });
}

#[test]
fn a_thousand_nodes_stay_fluid() {
    let daemon =
        Daemon::start(Options { groups: vec![("many".into(), 1_000), ("few".into(), 3)], ..Options::default() });
    daemon.steps(12);
    browse(&daemon, |page| {
        page.wait("document.querySelector('.group-head .ready')?.innerText.includes('/1000')", "the group");
        let shown = page.eval("document.querySelectorAll('button.node').length").as_u64().unwrap();
        assert!(shown < 60, "{shown} rows of a large group before anybody asked");
        page.eval("document.querySelector('.group-head').click()");
        page.wait("document.querySelectorAll('button.node').length >= 300", "a page of rows");
        // Everything changes, several times, and frames go on being drawn. No row is made anew for that.
        page.eval(
            "window.frames_seen = 0; window.made = 0; \
             (() => { const frame = () => { frames_seen += 1; requestAnimationFrame(frame) }; requestAnimationFrame(frame) })(); \
             new MutationObserver(all => { for (const one of all) for (const node of one.addedNodes) made += node.nodeType === 1 })\
               .observe(document.querySelector('#groups'), {subtree: true, childList: true})",
        );
        for _ in 0..10 {
            daemon.steps(1);
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        page.wait("window.frames_seen > 30", "frames");
        let made = page.eval("window.made").as_u64().unwrap();
        println!("{made} elements were made for ten changes of everything");
        assert!(made < 300, "{made} elements were made for ten changes of a thousand nodes");
        let elements = page.eval("document.querySelectorAll('*').length").as_u64().unwrap();
        assert!(elements < 15_000, "{elements} elements");
        // Rows further down are a click away, and the filter finds all of them.
        page.eval("document.querySelector('#filter').value = 'many-997'; document.querySelector('#filter').dispatchEvent(new Event('input'))");
        page.wait("document.querySelectorAll('section:not([hidden]) button.node').length === 1", "one fits");
        assert!(page.text("#matches").starts_with("1 of 1003"));
    });
}
