//! ^C for the verbs that only compute: they leave at once, since there is nothing to put in order, and say how far they got.

use std::io::Write;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

use super::{ExitCode, Failure};

/// From now on ^C ends the program with this code, after `say`.
///
/// # Errors
///
/// The system gives no thread, or no signals.
pub(super) fn leave(code: ExitCode, say: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let mut interrupt = {
        let _inside = runtime.enter();
        signal(SignalKind::interrupt())?
    };
    std::thread::Builder::new()
        .name("interrupt".into())
        .spawn(move || {
            runtime.block_on(interrupt.recv());
            // Behind a prompt or a bar, and the ^C that the terminal shows.
            let _ = writeln!(std::io::stderr());
            say();
            std::process::exit(code as i32);
        })
        .context("starting the thread that waits for ^C")?;
    Ok(())
}
