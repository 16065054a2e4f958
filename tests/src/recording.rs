//! The journal of a session.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use engine::driver::{DriverConfig, DriverError};
use engine::io::{Input, Output};
use journal::{Draft, Recorder, WriteError, Writer};
use scenario::session::Record;

/// The journal of a session. Clones share it.
#[derive(Clone)]
pub struct Recording {
    recorder: Rc<RefCell<Recorder>>,
    writer: Rc<RefCell<Writer<Vec<u8>>>>,
    last_ms: Rc<Cell<u64>>,
}

impl Recording {
    /// The journal of a driver that was just made with this configuration.
    pub fn of(config: &DriverConfig) -> Result<Self, WriteError> {
        let (recorder, start) = Recorder::start(config, &decider::describe());
        let mut writer = Writer::new(Vec::new());
        writer.append(0, &start.entry())?;
        Ok(Recording {
            recorder: Rc::new(RefCell::new(recorder)),
            writer: Rc::new(RefCell::new(writer)),
            last_ms: Rc::default(),
        })
    }

    fn append(&self, at_ms: u64, draft: Option<Draft>) {
        self.last_ms.set(at_ms);
        if let Some(draft) = draft {
            // A record of a test is never too long, and memory does not fail.
            let _ = self.writer.borrow_mut().append(at_ms, &draft.entry());
        }
    }

    /// Its bytes so far, with an end mark.
    pub fn ended(&self) -> Vec<u8> {
        let end = self.recorder.borrow().end();
        self.append(self.last_ms.get(), Some(end));
        self.writer.borrow_mut().get_mut().clone()
    }
}

impl Record for Recording {
    fn folded(&mut self, at_ms: u64, input: &Input, refused: Option<&DriverError>) {
        let draft = self.recorder.borrow_mut().folded(input.clone(), refused);
        self.append(at_ms, draft);
    }

    fn output(&mut self, at_ms: u64, output: &Output) {
        let draft = self.recorder.borrow_mut().output(output);
        self.append(at_ms, draft);
    }
}
