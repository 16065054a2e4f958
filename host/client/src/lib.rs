//! Talks to a daemon: finds it, asks it, and says in words what it answers. The operator's verbs live here, so that they are
//! tried without a runtime of the fleet or a sandbox; the program only adds what reads fleet files.

mod confirm;
mod connect;
mod error;
mod fleet;
mod follow;
mod news;
mod offline;
mod place;
mod screen;
mod session;
mod sse;
mod tls;
pub mod verbs;
pub mod words;

pub use error::{Class, ClientError, Ending};
pub use fleet::fold;
pub use follow::{Follow, Update};
pub use place::{DaemonArgs, Place, TOKEN_LABEL, state_base, state_dir};
pub use screen::Screen;
pub use session::{Session, Waits};
