//! Everything without a mouse.

use crate::fake::Options;
use crate::{Daemon, browse};

#[test]
fn every_path_works_with_keys_alone() {
    let daemon = Daemon::start(Options::default());
    daemon.steps(3);
    browse(&daemon, |page| {
        page.wait("document.querySelectorAll('button.node').length === 11", "eleven nodes");
        page.wait("document.querySelectorAll('button.decision').length > 5", "decisions");
        // Tab leads past everything once, and a list is one stop.
        let mut stops: Vec<String> = Vec::new();
        for _ in 0..60 {
            page.key("Tab");
            let at = page.focused();
            if stops.first() == Some(&at) || at.starts_with("BODY") {
                break;
            }
            let ring = page.eval("getComputedStyle(document.activeElement).outlineStyle !== 'none'");
            assert_eq!(ring, true, "the focus is seen at {at}");
            stops.push(at);
        }
        let all = stops.join("\n");
        for stop in ["A  skip", "INPUT filter", "group-head", "BUTTON  node web-0", "BUTTON  decision"] {
            assert!(all.contains(stop), "{stop}:\n{all}");
        }
        assert_eq!(all.matches("BUTTON  node ").count(), 1, "one stop for the nodes:\n{all}");
        assert_eq!(all.matches("group-head").count(), 3, "each group:\n{all}");
        assert_eq!(all.matches("BUTTON  decision ").count(), 1, "one stop for the decisions:\n{all}");
        // The filter, from anywhere; from there to the nodes.
        page.key("/");
        assert!(page.focused().contains("filter"));
        page.type_text("worker");
        page.wait("document.querySelectorAll('section:not([hidden]) button.node').length === 6", "six fit");
        page.key("ArrowDown");
        assert!(page.focused().contains("worker-0"), "{}", page.focused());
        page.key("ArrowDown");
        page.key("ArrowDown");
        page.key("ArrowUp");
        assert!(page.focused().contains("worker-1"), "{}", page.focused());
        page.key("End");
        assert!(page.focused().contains("worker-5"), "{}", page.focused());
        page.key("Home");
        // Enter opens, Escape closes, and one is where one was.
        page.key("Enter");
        page.wait("document.querySelectorAll('#drawer [data-part]').length >= 5", "the node");
        assert!(page.focused().contains("drawer-close"), "{}", page.focused());
        page.key("Tab");
        assert!(page.focused().contains("drawer-body"), "it can be scrolled: {}", page.focused());
        page.key("Escape");
        page.wait("!document.querySelector('#drawer').open", "closed");
        assert!(page.focused().contains("worker-0"), "{}", page.focused());
        // Escape in the filter empties it.
        page.key("/");
        page.key("Escape");
        page.wait("document.querySelectorAll('section:not([hidden]) button.node').length === 11", "all again");
        // A group folds.
        page.eval("document.querySelector('.group-head').focus()");
        page.key("Enter");
        page.wait("document.querySelector('.group-head').getAttribute('aria-expanded') === 'false'", "folded");
        page.key("Enter");
        page.wait("document.querySelector('.group-head').getAttribute('aria-expanded') === 'true'", "open");
        // A decision.
        page.eval("document.querySelector('#timeline button[tabindex=\"0\"]').focus()");
        page.key("ArrowDown");
        let decision = page.focused();
        page.key("Enter");
        page.wait("document.querySelector('#drawer del, #drawer table')", "the decision");
        page.key("Escape");
        page.wait("!document.querySelector('#drawer').open", "closed");
        assert_eq!(page.focused(), decision);
    });
}

#[test]
fn what_has_the_focus_keeps_it_while_everything_moves() {
    let daemon = Daemon::start(Options::default());
    browse(&daemon, |page| {
        page.wait("document.querySelectorAll('button.node').length === 11", "eleven nodes");
        page.eval("document.querySelector('button[data-node=\"worker-3\"]').focus()");
        for _ in 0..12 {
            daemon.steps(1);
            std::thread::sleep(std::time::Duration::from_millis(60));
        }
        page.wait("document.querySelectorAll('#timeline li').length > 15", "decisions came");
        assert!(page.focused().contains("worker-3"), "{}", page.focused());
    });
}
