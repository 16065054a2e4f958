//! The decider in force, a swap on its way, and what it found.

use api::Control;
use api::wire::{DeciderCommand, DeciderRef, RolledBack, SwapTerms, What};

use crate::browser::Page;
use crate::fake::Options;
use crate::looks::{check_contrast, check_width};
use crate::{Daemon, browse};

fn swap(decider: String) -> DeciderCommand {
    DeciderCommand::Swap { decider, terms: SwapTerms::default() }
}

fn shadow(decider: String) -> DeciderCommand {
    DeciderCommand::Shadow { decider, replay_ms: 0 }
}

fn shows(page: &mut Page<'_>, place: &str, words: &str) {
    page.wait(&format!("document.querySelector({place:?})?.innerText.includes({words:?})"), words);
}

/// Each size and scheme: nothing scrolls sideways, all can be read.
fn looks(page: &mut Page<'_>, name: &str) {
    for scheme in ["light", "dark"] {
        for (width, height) in [(1360, 900), (390, 844), (320, 568)] {
            page.prefer(&[("prefers-color-scheme", scheme), ("prefers-reduced-motion", "reduce")]);
            page.size(width, height);
            let name = format!("{name}-{scheme}-{width}");
            check_width(page, &name);
            check_contrast(page, &name);
            page.picture(&name);
        }
    }
    page.prefer(&[("prefers-color-scheme", "light")]);
    page.size(1360, 900);
}

#[test]
fn a_swap_is_shown_from_its_first_stage_to_its_rollback() {
    let daemon = Daemon::start(Options::default());
    daemon.steps(12);
    browse(&daemon, |page| {
        shows(page, "#facts", "built-in 0.1.0");
        daemon.fake.decide("w-1", "trapper 2.0.0 traps", swap);
        shows(page, "#alerts", "Swap on its way");
        shows(page, "#alerts", "homeostat decider cancel w-1");
        let running = |stage: &str| {
            format!(
                "document.querySelector('[data-about=swap] [aria-current=step]')?.innerText.includes('{stage} running')"
            )
        };
        for stage in ["check", "replay", "shadow", "switch", "watch"] {
            daemon.steps(1);
            page.wait(&running(stage), stage);
            if stage == "shadow" {
                // It counts down.
                let ends = "document.querySelector('[data-about=swap] [data-until]').innerText";
                let first = page.eval(ends);
                page.wait(&format!("{ends} !== {first}"), "the countdown");
                shows(page, "[data-about=swap]", "40 passes, all equal");
                page.eval("scrollTo(0, 0)");
                looks(page, "swap");
            }
            if stage != "watch" {
                daemon.steps(1);
            }
        }
        shows(page, "#facts", "trapper 2.0.0");
        shows(page, "#alerts", "homeostat decider rollback");
        daemon.steps(1);
        shows(page, "#alerts", "A decider was rolled back by itself");
        shows(page, "#alerts", "units of fuel");
        shows(page, "#facts", "built-in 0.1.0");
        shows(page, "#timeline", "was rolled back by itself");
        looks(page, "rolled-back");
        page.eval("document.querySelector('#facts a').click()");
        shows(page, "#drawer [data-part=in-force]", "Contract");
        shows(page, "#drawer [data-part=swaps]", "rolled-back");
        shows(page, "#drawer [data-part=kept]", "quarantined: out-of-fuel");
        assert_eq!(page.eval("location.hash"), "#deciders");
        looks(page, "deciders");
        page.eval("document.querySelector('#drawer [data-part=swaps] a').click()");
        shows(page, "#drawer [data-part=stages]", "rolled-back");
        shows(page, "#drawer-title", "Swap w-1");
        page.key("Escape");
        page.wait("!document.querySelector('#drawer').open", "closed");
    });
}

#[test]
fn a_refused_swap_and_a_shadow_list_their_differences() {
    let daemon = Daemon::start(Options::default());
    daemon.steps(12);
    browse(&daemon, |page| {
        daemon.fake.decide("w-1", "ladder 1.2.0 diverges", swap);
        daemon.fake.decide("s-1", "ladder 1.3.0 waits", shadow);
        daemon.steps(6);
        shows(page, "#alerts", "Shadow on its way");
        shows(page, "#alerts", "homeostat decider shadow stop");
        shows(page, "#timeline", "Swap of ladder 1.2.0");
        page.eval("location.hash = '#swap/w-1'");
        shows(page, "#drawer [data-part=stages]", "--accept-divergence 'R11->B1'");
        shows(page, "#drawer [data-part=stages]", "watch not reached");
        shows(page, "#drawer [data-part=found]", "more-destroys");
        page.eval("document.querySelector('#drawer [data-part=found] summary').click()");
        shows(page, "#drawer [data-part=found]", "it is older than the policy allows");
        looks(page, "refused");
        page.eval("location.hash = '#swap/s-1'");
        shows(page, "#drawer [data-part=found]", "other-wait");
        let before = page.text("#drawer [data-part=found]");
        daemon.steps(2);
        page.wait(
            &format!("document.querySelector('#drawer [data-part=found]').innerText !== {}", serde_json::json!(before)),
            "the report goes on",
        );
        // One that is not there says so, and the browser logs that.
        page.eval("location.hash = '#swap/nosuch'");
        shows(page, "#drawer", "Cannot be read: there is no swap");
        page.troubles(true);
    });
}

#[test]
fn what_a_decider_calls_itself_is_text() {
    let daemon = Daemon::start(Options::default());
    browse(&daemon, |page| {
        let name = "<img src=x onerror=window.hit=1>\u{202e}evil".to_owned();
        daemon.fake.decide("w-1", &format!("{} 1.0.0 diverges", name.replace(' ', "\u{a0}")), swap);
        daemon.steps(4);
        let from = DeciderRef { name: name.repeat(20), digest: "x".repeat(500), ..DeciderRef::default() };
        let mut decider = daemon.fake.status().decider.clone();
        decider.rolled_back = Some(RolledBack { from, why: name.repeat(40), at_ms: u64::MAX, swap: "\"><b>".into() });
        decider.name = name.repeat(10);
        daemon.fake.say(What::Decider(Box::new(decider)));
        shows(page, "#alerts", "rolled back by itself");
        page.size(320, 568);
        check_width(page, "hostile names");
        page.eval("location.hash = '#deciders'");
        shows(page, "#drawer [data-part=kept]", "<img");
        check_width(page, "hostile names, the deciders");
        page.eval("location.hash = '#swap/w-1'");
        shows(page, "#drawer [data-part=found]", "more-destroys");
        check_width(page, "hostile names, a swap");
        assert_eq!(page.eval("document.querySelectorAll('script:not([src]), img, iframe, svg').length"), 0);
        assert_eq!(page.eval("window.hit ?? 'never'"), "never");
    });
}
