//! Verbs that change something: each shows what it would do, asks where something is ended, and carries an id.

use std::time::Duration;

use api::wire::{Command, CommandRequest, CommandResult, Consequences, Only, Plan, PlanRequest, Problem, Status};
use step::text::{counted, escape, time_of_day};

use super::wait::{Goal, until_reached};
use super::{AdoptArgs, DestroyArgs, GroupOrder, KillArgs, OrderArgs, PauseArgs, ScaleArgs, apply, look};
use crate::confirm::{Sure, confirm};
use crate::error::{ClientError, Ending};
use crate::screen::Screen;
use crate::session::Session;
use crate::words;

/// An id as the daemon takes it.
const MAX_ID: usize = 64;

/// The id that was given, or a new one.
pub(super) fn command_id(given: Option<&str>) -> Result<String, ClientError> {
    let Some(id) = given else {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| ClientError::Failed(format!("drawing an id: {error}")))?;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        return Ok(ulid::Ulid::from_parts(now_ms, u128::from_le_bytes(random)).to_string());
    };
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    match id.len() {
        1..=MAX_ID if id.bytes().all(is_fine) => Ok(id.to_owned()),
        _ => Err(ClientError::Usage(format!("--id: {id:?} is not 1 to {MAX_ID} letters, digits, `-` and `_`"))),
    }
}

/// What a command would do.
pub(super) async fn ask_plan(command: &Command, session: &Session) -> Result<Plan, ClientError> {
    session.post("/v1/plan", &PlanRequest { command: command.clone() }).await
}

/// Nothing is asked about what a guard refuses.
pub(super) fn within_guards(plan: &Plan) -> Result<(), ClientError> {
    let Some(guard) = &plan.beyond else { return Ok(()) };
    let (kind, status, detail) = ("urn:homeostat:guard".into(), 403, guard.clone());
    Err(ClientError::Refused(Box::new(Problem { kind, status, detail, ..Problem::default() })))
}

/// Shows what would be done, to whoever is about to be asked.
pub(super) fn show_plan(plan: &Plan, screen: &mut Screen) {
    let pen = words::Pen::plain(0);
    let differences = words::differences(&plan.differences, &pen);
    screen.note(&format!("{}{differences}", words::plan(&plan.consequences, plan.base_generation, &pen)));
}

/// Has it carried out, says what came of it, and waits for that if asked to.
pub(super) async fn carry_out(
    command: Command,
    expect_generation: Option<u64>,
    order: &OrderArgs,
    goal: Goal,
    session: &Session,
    screen: &mut Screen,
) -> Result<Ending, ClientError> {
    let id = command_id(order.id.as_deref())?;
    if !screen.is_json {
        screen.note(&format!("command {id}"));
    }
    let done = done_words(&command);
    let result = session.command(&CommandRequest { id, expect_generation, command }).await?;
    tell(&result, done, screen)?;
    match order.wait {
        true => until_reached(&goal.of(&result), order.timeout, session, screen).await,
        false => Ok(Ending::Done),
    }
}

/// What was done, where that is not about the nodes that change at once.
fn done_words(command: &Command) -> Option<String> {
    let what = |only: &Only, group: &Option<String>| {
        let effects = match only {
            Only::All => "all effects",
            Only::Create => "creates",
            Only::Destroy => "destroys",
        };
        let scope = group.as_ref().map_or_else(|| "the whole run".into(), |group| format!("group {group}"));
        format!("{effects} in {scope}")
    };
    match command {
        Command::Pause { group, only } => Some(format!("paused: {}", what(only, group))),
        Command::Resume { group, only } => Some(format!("resumed: {}; what was held goes on", what(only, group))),
        Command::AdoptOrphan { provider, lease } => {
            Some(format!("adopted: {provider}/{lease} is the node that its label names from now on"))
        }
        _ => None,
    }
}

fn tell(result: &CommandResult, done: Option<String>, screen: &mut Screen) -> Result<(), ClientError> {
    if screen.is_json {
        return screen.json(result);
    }
    if result.replayed {
        screen.note(&format!(
            "replayed: it was carried out at {}; nothing was done now, and this is what was answered then",
            time_of_day(result.at_ms)
        ));
    }
    let Consequences { text, generation, changes, .. } = &result.consequences;
    let revision = if *changes { format!(" (generation {generation})") } else { String::new() };
    screen.print(&format!("{}{revision}", escape(done.as_ref().unwrap_or(text))))
}

/// The plan of a command that a person has to agree to. None where the daemon refuses the plan of a command with an id that
/// was given: it may have been carried out, and then the daemon knows it by its id; else it will be refused again.
async fn plan_unless_done(
    command: &Command,
    order: &OrderArgs,
    session: &Session,
) -> Result<Option<Plan>, ClientError> {
    match ask_plan(command, session).await.and_then(|plan| within_guards(&plan).map(|()| plan)) {
        Ok(plan) => Ok(Some(plan)),
        Err(ClientError::Refused(_)) if order.id.is_some() => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) async fn scale(args: &ScaleArgs, session: &Session, screen: &mut Screen) -> Result<Ending, ClientError> {
    let command = Command::Scale { group: args.to.group.clone(), count: args.to.count };
    let mut expect = None;
    if !args.yes
        && let Some(plan) = plan_unless_done(&command, &args.order, session).await?
    {
        let victims = plan.consequences.destroys.len();
        if victims > 0 {
            show_plan(&plan, screen);
            let question = format!("{} of group {} will be ended.", counted(victims as u64, "node"), args.to.group);
            confirm(screen, false, &question, &Sure::about(victims, Some(&args.to.group)))?;
            expect = Some(plan.base_generation);
        }
    }
    carry_out(command, expect, &args.order, Goal::Converged, session, screen).await
}

pub(super) async fn add_node(args: &GroupOrder, session: &Session, screen: &mut Screen) -> Result<Ending, ClientError> {
    let command = Command::AddNode { group: args.group.clone() };
    carry_out(command, None, &args.order, Goal::Converged, session, screen).await
}

pub(super) async fn kill(args: &KillArgs, session: &Session, screen: &mut Screen) -> Result<Ending, ClientError> {
    let command = Command::Kill { nodes: args.nodes.clone() };
    let status: Status = session.get("/v1/status").await?;
    let attempts = args
        .nodes
        .iter()
        .map(|name| (name.clone(), status.nodes.iter().find(|node| node.node == *name).and_then(|node| node.attempt)))
        .collect();
    if !args.yes && plan_unless_done(&command, &args.order, session).await?.is_some() {
        list_victims(&args.nodes, &status, screen);
        let number = args.nodes.len();
        let question = format!("{} will be ended, and then replaced.", counted(number as u64, "node"));
        confirm(screen, false, &question, &Sure::about(number, None))?;
    }
    carry_out(command, None, &args.order, Goal::Replaced(attempts), session, screen).await
}

/// What is about to be ended, and how it is.
fn list_victims(names: &[String], status: &Status, screen: &mut Screen) {
    let mut table = words::Table::new(&["NODE", "ATTEMPT", "STAGE", "READY", "ENDPOINT"]);
    for name in names {
        let Some(node) = status.nodes.iter().find(|node| node.node == *name) else { continue };
        let attempt = node.attempt.map_or_else(|| "-".into(), |attempt| format!("a{attempt}"));
        let ready = if node.ready { "yes" } else { "no" };
        table.push([name.as_str(), &attempt, &node.stage, ready, node.endpoint.as_deref().unwrap_or_default()]);
    }
    screen.note(&table.render(&words::Pen::plain(status.now_ms)));
}

pub(super) async fn destroy(args: &DestroyArgs, session: &Session, screen: &mut Screen) -> Result<Ending, ClientError> {
    if let Some(orphan) = &args.orphan {
        let (provider, lease) = (orphan.provider.clone(), orphan.lease.clone());
        let question = format!("The orphan {provider}/{lease} will be ended.");
        confirm(screen, args.yes, &question, &Sure::Yes)?;
        let goal = Goal::OrphanGone { provider: provider.clone(), lease: lease.clone() };
        let command = Command::DestroyOrphan { provider, lease };
        return carry_out(command, None, &args.order, goal, session, screen).await;
    }
    let status: Status = session.get("/v1/status").await?;
    let is_node = |name: &&String| status.nodes.iter().any(|node| node.node == **name);
    let is_group = |name: &&String| status.groups.iter().any(|group| group.group == **name);
    // A name that is both a group's and a node's would end more than was meant.
    if let Some(name) = args.names.iter().find(|name| is_node(name) && is_group(name)) {
        return Err(ClientError::Failed(format!("{name:?} is a node and a group; nothing was changed")));
    }
    if args.order.id.is_none() {
        look::check_names(&status, &args.names)?;
    }
    // A repetition may find nothing of what it ended: then only the form of the name says what it was.
    let (nodes, groups): (Vec<String>, Vec<String>) =
        args.names.iter().cloned().partition(|name| is_node(&name) || (!is_group(&name) && is_node_name(name)));
    let command = Command::Destroy { nodes: nodes.clone(), groups: groups.clone() };
    let Some(plan) = plan_unless_done(&command, &args.order, session).await? else {
        return carry_out(command, None, &args.order, Goal::Gone(nodes), session, screen).await;
    };
    let victims = plan.consequences.destroys.clone();
    let mut expect = None;
    if !args.yes {
        list_victims(&victims, &status, screen);
        let number = counted(victims.len() as u64, "node");
        let (question, sure) = match (&groups[..], &nodes[..]) {
            // A whole group is never one node's `y`.
            ([group], []) => {
                (format!("Group {group} with {number} will be ended for good."), Sure::Typed(group.clone()))
            }
            _ => (format!("{number} will be ended for good."), Sure::about(victims.len(), None)),
        };
        confirm(screen, false, &question, &sure)?;
        expect = Some(plan.base_generation);
    }
    carry_out(command, expect, &args.order, Goal::Gone(victims), session, screen).await
}

/// `GROUP-INDEX`.
fn is_node_name(name: &str) -> bool {
    name.rsplit_once('-').is_some_and(|(group, index)| !group.is_empty() && index.parse::<u32>().is_ok())
}

pub(super) async fn pause(
    args: &PauseArgs,
    is_pause: bool,
    session: &Session,
    screen: &mut Screen,
) -> Result<Ending, ClientError> {
    let (group, only) = (args.group.clone(), args.only.into());
    let command = if is_pause { Command::Pause { group, only } } else { Command::Resume { group, only } };
    let order = OrderArgs { id: args.id.clone(), ..OrderArgs::default() };
    match carry_out(command, None, &order, Goal::Converged, session, screen).await {
        // What was asked for is so.
        Err(error) if error.is_nothing_paused() && !screen.is_json => {
            screen.print("nothing is paused")?;
            Ok(Ending::Done)
        }
        Err(error) if error.is_nothing_paused() => {
            let status: Status = session.get("/v1/status").await?;
            apply::unchanged(status.generation, screen)
        }
        ended => ended,
    }
}

pub(super) async fn adopt(args: &AdoptArgs, session: &Session, screen: &mut Screen) -> Result<Ending, ClientError> {
    let (provider, lease) = (args.orphan.provider.clone(), args.orphan.lease.clone());
    let question = format!("The orphan {provider}/{lease} will be taken over, ended and replaced.");
    let command = Command::AdoptOrphan { provider, lease };
    let mut expect = None;
    // What was made from something else, or from nobody knows what, does not stay.
    if !args.yes
        && let Some(plan) = plan_unless_done(&command, &args.order, session).await?
        && !plan.consequences.replaces.is_empty()
    {
        screen.note(&escape(&plan.consequences.text));
        confirm(screen, false, &question, &Sure::Yes)?;
        expect = Some(plan.base_generation);
    }
    carry_out(command, expect, &args.order, Goal::Converged, session, screen).await
}
