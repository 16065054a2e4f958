//! The operator's verbs: `client` does them; here is what takes the fleet file's format, or the driver.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use ::journal::{Chain, Hash};
use api::wire::Export;
use client::verbs::{Declared, Known, Program, Verb};
use client::{Ending, Screen, Waits};
use engine::driver::Driver;
use store::{SqliteStore, StateDir, StoreError};

use super::{ExitCode, Failure, InputError, Terminal, carried, providers};
use crate::fleet::Fleet;
use crate::registry::DECIDERS;
use crate::runtime::DECLARED;

/// Does what an operator asks for.
pub(super) fn run(verb: &Verb, terminal: &Terminal) -> Result<ExitCode, Failure> {
    let mut screen = Screen::system(terminal.is_json(), terminal.out_color, terminal.err_color);
    Ok(ended(client::verbs::run(verb, Waits::default(), &mut screen, &Whole)?))
}

/// Does what an operator asks for about deciders.
pub(super) fn decider(verb: &client::verbs::DeciderVerb, terminal: &Terminal) -> Result<ExitCode, Failure> {
    let mut screen = Screen::system(terminal.is_json(), terminal.out_color, terminal.err_color);
    Ok(ended(client::verbs::decider::run(verb, Waits::default(), &mut screen)?))
}

fn ended(ending: Ending) -> ExitCode {
    match ending {
        Ending::Done => ExitCode::Ok,
        Ending::Unwell => ExitCode::Failed,
        Ending::Differs => ExitCode::Diverged,
        Ending::Refused => ExitCode::Guarded,
        Ending::Interrupted => ExitCode::Interrupted,
    }
}

/// This program, with all its parts.
struct Whole;

impl Program for Whole {
    type Error = Failure;

    fn load(&self, file: &Path) -> Result<Declared, Failure> {
        let Fleet { shape, policy, generation, .. } = Fleet::load(file, &providers())?;
        Ok(Declared { shape, policy, generation })
    }

    fn known(&self, folder: &Path) -> Result<Vec<Known>, Failure> {
        let held = StateDir::open(folder).map_err(failed)?;
        let mut store = SqliteStore::open(&held).map_err(failed)?;
        // An empty one knows nothing.
        let Some((driver, _)) = store::refold(&mut store).map_err(|error| Failure::Failed(error.into()))? else {
            return Ok(Vec::new());
        };
        let state = driver.state();
        let provider = |template: engine::state::TemplateId| {
            let template = state.templates.get(template.0 as usize);
            template.map(|template| template.provider.clone()).unwrap_or_default()
        };
        let held = state.slots.iter().filter_map(|slot| {
            let node = slot.node.as_ref()?;
            Some(Known {
                node: slot.name.clone(),
                attempt: node.attempt.0,
                provider: provider(node.template),
                lease: node.lease.clone()?,
            })
        });
        let orphans = state.orphans.iter().map(|((provider, lease), orphan)| Known {
            node: orphan.key.slot.clone(),
            attempt: orphan.key.attempt.0,
            provider: provider.clone(),
            lease: lease.clone(),
        });
        Ok(held.chain(orphans).collect())
    }

    fn reset(&self, folder: &Path) -> Result<PathBuf, Failure> {
        let held = StateDir::open(folder).map_err(failed)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        SqliteStore::put_aside(&held, &format!("reset-{}", now.as_millis())).map_err(failed)
    }

    fn import(&self, folder: &Path, export: &Export) -> Result<(), Failure> {
        let wrong = |message: String| InputError { message, ..InputError::default() };
        let checkpoint = serde_json::to_vec(&export.checkpoint).map_err(anyhow::Error::from)?;
        let found = Driver::restore(&checkpoint).map_err(|error| wrong(error.to_string()))?;
        let run = &found.state().run;
        if *run != export.run {
            return Err(wrong(format!("the snapshot is of the run {run:?}, and says {:?}", export.run)).into());
        }
        let last =
            Hash::from_hex(export.hash.as_bytes()).ok_or_else(|| wrong(format!("{:?} is no hash", export.hash)))?;
        let held = StateDir::open(folder).map_err(failed)?;
        let at = Chain { next_seq: export.next_seq, last };
        let mut values = Vec::new();
        if let Some(digits) = &export.declared {
            let hash = Hash::from_hex(digits.as_bytes()).ok_or_else(|| wrong(format!("{digits:?} is no hash")))?;
            values.push((DECLARED, hash.as_bytes().to_vec()));
        }
        SqliteStore::check_vacant(&held).map_err(failed)?;
        if let Some(carried) = &export.deciders {
            let document = carried::check(carried, &found.decider().digest).map_err(wrong)?;
            // Their bytes first: what the state names is there.
            carried::put(folder, carried, &document).map_err(anyhow::Error::from)?;
            let document = serde_json::to_vec(&document).map_err(anyhow::Error::from)?;
            values.push((DECIDERS, document));
        }
        SqliteStore::begin_at(&held, at, &checkpoint, &values).map_err(failed)?;
        Ok(())
    }
}

fn failed(error: StoreError) -> Failure {
    Failure::Failed(error.into())
}
