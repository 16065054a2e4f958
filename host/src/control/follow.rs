//! Tells watchers what the host publishes. It runs beside the loop: however many watch, and however slowly, the loop does not
//! notice.

use api::wire::What;
use step::text::counted;
use tokio::sync::broadcast::error::RecvError;

use super::Desk;
use crate::runtime::HostEvent;

/// Until the host ends.
pub(super) async fn follow(desk: Desk) {
    let mut views = desk.host.watch();
    let mut events = desk.host.events();
    for said in desk.host.opening() {
        let (level, text) = crate::view::notice(said);
        desk.feed.say(desk.host.now_ms(), What::Notice { level: level.into(), text });
    }
    loop {
        tokio::select! {
            changed = views.changed() => {
                if changed.is_err() {
                    return;
                }
                let view = views.borrow_and_update().clone();
                desk.feed.publish(inspect::status(&view, &desk.about, String::new()));
            }
            event = events.recv() => match event {
                Ok(event) => if let Some((level, text)) = words(&event) {
                    desk.feed.say(desk.host.now_ms(), What::Notice { level: level.into(), text });
                },
                Err(RecvError::Lagged(missed)) => {
                    let text = format!("{} not told: too many came at once", counted(missed, "notice"));
                    desk.feed.say(desk.host.now_ms(), What::Notice { level: "warning".into(), text });
                }
                Err(RecvError::Closed) => return,
            }
        }
    }
}

/// What the views do not show, and how bad it is.
fn words(event: &HostEvent) -> Option<(&'static str, String)> {
    match event {
        // These are differences between views.
        HostEvent::Node(_) | HostEvent::Gone { .. } | HostEvent::Converged { .. } => None,
        HostEvent::Notice(notice) => Some(crate::view::notice(notice)),
        HostEvent::Swap(swap) => Some((crate::view::weight(swap.step), step::swapped(swap))),
        HostEvent::ListingFailed { provider, reason } => {
            Some(("warning", format!("{provider} could not be listed: {reason}; nothing follows from that")))
        }
        HostEvent::Restless { reason } => Some(("error", reason.clone())),
    }
}
