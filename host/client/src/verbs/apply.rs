//! `diff` and `apply`: what a file would change, and changing exactly that.

use api::wire::{Command, Difference, Plan, Status};
use serde::Serialize;

use super::order::{ask_plan, carry_out, show_plan, within_guards};
use super::wait::Goal;
use super::{ApplyArgs, Declared, look};
use crate::confirm::{Sure, confirm};
use crate::error::{ClientError, Ending};
use crate::screen::Screen;
use crate::session::Session;
use crate::words;

/// How often the plan is asked for again because the fleet was changed meanwhile.
const TRIES: u32 = 3;

#[derive(Serialize)]
struct Diff<'a> {
    schema: &'static str,
    differs: bool,
    base_generation: u64,
    creates: &'a [String],
    destroys: &'a [String],
    replaces: &'a [String],
    keeps: u32,
    differences: &'a [Difference],
    /// The guard that would refuse it.
    beyond: Option<&'a str>,
}

/// The command that gives the fleet the shape of the file, for the generation in force, and its plan.
async fn planned(declared: &Declared, session: &Session) -> Result<(Command, Plan), ClientError> {
    let mut tries = 0;
    loop {
        let status: Status = session.get("/v1/status").await?;
        if status.run != declared.shape.run {
            return Err(ClientError::Usage(format!(
                "the file is for the run {:?}, and this daemon keeps {:?}; nothing was changed",
                declared.shape.run, status.run
            )));
        }
        let base = status.generation;
        let mut shape = declared.shape.clone();
        shape.generation = declared.generation.unwrap_or_else(|| base.saturating_add(1));
        let command = Command::Apply { shape, policy: Some(declared.policy), base_generation: base };
        tries += 1;
        match ask_plan(&command, session).await {
            Ok(plan) if plan.base_generation == base => return Ok((command, plan)),
            // Somebody else was faster; look again.
            Ok(_) if tries < TRIES => {}
            Err(ClientError::Refused(problem)) if problem.status == 409 && tries < TRIES => {}
            Ok(plan) => {
                return Err(ClientError::Failed(format!(
                    "the fleet changes all the time: generation {base} was followed by {} while this asked",
                    plan.base_generation
                )));
            }
            Err(error) => return Err(error),
        }
    }
}

fn differs(plan: &Plan) -> bool {
    let of = &plan.consequences;
    of.changes || !plan.differences.is_empty()
}

pub(super) async fn diff(declared: &Declared, session: &Session, screen: &mut Screen) -> Result<Ending, ClientError> {
    let (_, plan) = planned(declared, session).await?;
    let differs = differs(&plan);
    if screen.is_json {
        let of = &plan.consequences;
        screen.json(&Diff {
            schema: "homeostat.diff/v1",
            differs,
            base_generation: plan.base_generation,
            creates: &of.creates,
            destroys: &of.destroys,
            replaces: &of.replaces,
            keeps: of.keeps,
            differences: &plan.differences,
            beyond: plan.beyond.as_deref(),
        })?;
    } else if differs {
        let pen = look::pen(screen, 0);
        let fields = words::differences(&plan.differences, &pen);
        screen.print(&format!("{}{fields}", words::plan(&plan.consequences, plan.base_generation, &pen)))?;
        if let Some(guard) = &plan.beyond {
            screen.note(&format!("`apply` would be refused: {guard}"));
        }
    } else {
        screen.print(&format!("no difference: generation {} is what the file says", plan.base_generation))?;
    }
    Ok(if differs { Ending::Differs } else { Ending::Done })
}

pub(super) async fn apply(
    args: &ApplyArgs,
    declared: &Declared,
    session: &Session,
    screen: &mut Screen,
) -> Result<Ending, ClientError> {
    let (command, plan) = planned(declared, session).await?;
    if !differs(&plan) && args.order.id.is_none() {
        return carry_out_nothing(&plan, screen);
    }
    let of = &plan.consequences;
    let base = plan.base_generation;
    show_plan(&plan, screen);
    // A command with an id may have been carried out before: then the daemon knows it, else it refuses it again.
    if args.order.id.is_none() {
        within_guards(&plan)?;
    }
    let lost = of.destroys.len() + of.replaces.len();
    let question = match lost {
        0 => format!("Apply this to generation {base}?"),
        1 => format!("Apply this to generation {base}? 1 node will be ended."),
        many => format!("Apply this to generation {base}? {many} nodes will be ended."),
    };
    confirm(screen, args.yes, &question, &Sure::Yes)?;
    carry_out(command, Some(base), &args.order, Goal::Converged, session, screen).await
}

#[derive(Serialize)]
struct Unchanged {
    schema: &'static str,
    changes: bool,
    generation: u64,
}

/// Nothing is sent where nothing would change.
fn carry_out_nothing(plan: &Plan, screen: &mut Screen) -> Result<Ending, ClientError> {
    let generation = plan.base_generation;
    if screen.is_json {
        return unchanged(generation, screen);
    }
    screen.print(&format!("no difference: generation {generation} is what the file says"))?;
    Ok(Ending::Done)
}

/// Says to a program that nothing was sent, or nothing was to do.
pub(super) fn unchanged(generation: u64, screen: &mut Screen) -> Result<Ending, ClientError> {
    screen.json(&Unchanged { schema: "homeostat.unchanged/v1", changes: false, generation })?;
    Ok(Ending::Done)
}
