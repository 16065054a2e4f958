//! What calls do to the world: the provider, keyed or windowed.

use engine::invariants::Violation;

use crate::machine::{Form, Machine};
use crate::scope::Kind;
use crate::world::{Ask, Reply, Resource, Waits, World};

/// The smallest number that no bit stands for.
fn smallest(mask: u16) -> u8 {
    (!mask).trailing_zeros() as u8
}

impl Machine<'_> {
    /// A call takes effect. With `hidden`, what is still young is not shown to it.
    pub(crate) fn effect(&self, form: &Form, world: &mut World, at: usize, hidden: bool) -> Option<Violation> {
        let mut call = world.calls.as_slice().get(at).copied()?;
        let awaited = call.waits == Waits::Driver;
        let mut violation = None;
        match call.ask {
            Ask::Create => {
                // A keyed provider holds one resource a key. A windowed one looks for the label while somebody waits for
                // the call; what comes late it simply makes.
                let looks = self.scope.kind == Kind::Keyed || awaited;
                match world.find(call.attempt).filter(|_| looks) {
                    Some(held) => {
                        call.number = world.resources.as_slice()[held].number;
                        call.reply = Reply::LeasedAgain;
                    }
                    None => {
                        let known = form.known.get(usize::from(call.attempt)).copied().unwrap_or_default();
                        call.number = smallest(known.numbers | world.numbers(call.attempt));
                        call.reply = Reply::Leased;
                        let (attempt, number) = (call.attempt, call.number);
                        let late = !awaited;
                        let young_ms = call.left_ms;
                        world.resources.push(Resource { attempt, number, late, young_ms, ..Resource::default() });
                    }
                }
                call.left_ms = 0;
                let same = world.resources.as_slice().iter().filter(|held| held.attempt == call.attempt).count();
                if same > 1 {
                    let what = format!("{same} live resources bear the key of one attempt");
                    violation = Some(Violation { id: "S8", what });
                }
            }
            Ask::Settle => {
                let held = world.find(call.attempt).map(|held| world.resources.as_slice()[held]);
                match held.filter(|held| !(hidden && held.young_ms > 0)) {
                    Some(held) => (call.number, call.reply) = (held.number, Reply::LeasedAgain),
                    None => call.reply = Reply::Absent,
                }
            }
            // Nothing changes: only its answer is a move.
            Ask::Lookup => {
                call.reply = match world.leased(call.attempt, call.number) {
                    Some(_) => Reply::Found,
                    None => Reply::Gone,
                };
            }
            Ask::Start => match world.leased(call.attempt, call.number) {
                Some(held) => {
                    let known = form.known.get(usize::from(call.attempt)).map_or(0, |known| known.sessions);
                    let resource = &world.resources.as_slice()[held];
                    let fresh = resource.session == 0;
                    let session = match fresh {
                        false => resource.session - 1,
                        true => smallest(known | world.sessions(call.attempt, call.number)),
                    };
                    call.session = session;
                    call.reply = if fresh { Reply::Started } else { Reply::StartedAgain };
                    let resource = &mut world.resources.as_mut()[held];
                    resource.session = session + 1;
                    if awaited {
                        resource.heard = true;
                    }
                }
                None => call.reply = Reply::Gone,
            },
            Ask::Cancel => {
                if let Some(held) = world.leased(call.attempt, call.number) {
                    let resource = &mut world.resources.as_mut()[held];
                    if resource.session == call.session + 1 {
                        (resource.session, resource.heard) = (0, false);
                    }
                }
                call.reply = Reply::Cancelled;
            }
            Ask::Destroy => {
                if let Some(held) = world.leased(call.attempt, call.number) {
                    world.resources.remove(held);
                }
                call.reply = Reply::Destroyed;
            }
        }
        match call.waits {
            Waits::Nobody => world.calls.remove(at),
            _ => {
                if let Some(place) = world.calls.as_mut().get_mut(at) {
                    *place = call;
                }
            }
        }
        violation
    }
}
