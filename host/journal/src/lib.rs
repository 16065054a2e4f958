//! The journal (SPEC 12): every input as it was folded, every pass, every dispatch, chained by hashes, one JSON object a
//! line. `docs/journal.md` is the format. From it a run is replayed, bit for bit, or judged with another decider.
//!
//! ```
//! # use engine::{driver::{Driver, DriverConfig}, io::{DeciderIdentity, Input}, policy::Policy};
//! use journal::{Reader, Recorder, Writer};
//!
//! # let decider = DeciderIdentity::native();
//! # let config = DriverConfig { run: "demo".into(), policy: Policy::default(), providers: Default::default(), decider,
//! #     next_attempt: 1, epoch: 0 };
//! let mut writer = Writer::new(Vec::new());
//! let (mut recorder, start) = Recorder::start(&config, &decider::describe());
//! writer.append(0, &start.entry())?;
//! let mut driver = Driver::new(config)?;
//! let input = Input::Tick;
//! let folded = driver.handle(input.clone(), 0);
//! if let Some(draft) = recorder.folded(input, folded.as_ref().err()) {
//!     writer.append(0, &draft.entry())?;
//! }
//! while let Some(output) = driver.poll_output() {
//!     if let Some(draft) = recorder.output(&output) {
//!         writer.append(0, &draft.entry())?;
//!     }
//! }
//! writer.append(0, &recorder.end().entry())?;
//! let bytes = writer.into_inner();
//! assert_eq!(journal::verify(&mut Reader::new(bytes.as_slice()))?.records, 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod chain;
mod columns;
mod compare;
mod digest;
mod entry;
mod error;
mod input;
mod line;
mod listing;
mod reader;
mod recorder;
mod replay;
mod swap;
mod verify;
mod walk;
mod writer;

pub use chain::{Chain, Hash};
pub use compare::{Contrast, Difference, FieldDifference, Group, Leaning, Tendency};
pub use digest::snapshot_digest;
pub use entry::{Answer, DeciderRecord, Entry, SIMULATED, Start};
pub use error::{Damage, Mismatch, ReadError, ReplayError, WriteError};
pub use input::RecordedInput;
pub use line::{EncodedLine, FORMAT, Line, MAX_LINE_BYTES};
pub use reader::Reader;
pub use recorder::{Draft, Recorder};
pub use replay::{Against, Replay, replay};
pub use swap::{Cited, Direction, Divergence, Example, Reasoned, SwapRecord, SwapStep};
pub use verify::{Segment, Verdict, verify};
pub use walk::{PassAsked, Step, Walk};
pub use writer::Writer;
