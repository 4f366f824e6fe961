//! A worker.

use std::io::{self, Write};

use verbs_scenarios::{Backend, Runner};

/// The line that says that a worker waits for the first scenario.
pub(super) const READY: &str = "ready";

/// Runs the scenarios that the standard input names, in this process, until it ends.
///
/// # Errors
/// The devices cannot be used, a line names no scenario, or a stream cannot be used.
pub fn serve(backend: &dyn Backend) -> Result<(), String> {
    end_with_parent();
    let in_words = |error: verbs_api::Error| error.to_string();
    let runner = Runner::new(backend).map_err(in_words)?;
    say(READY)?;
    for line in io::stdin().lines() {
        let id = line.map_err(|error| format!("standard input: {error}"))?;
        let scenario = verbs_scenarios::all().find(|scenario| scenario.id == id);
        let scenario = scenario.ok_or_else(|| format!("no scenario is called {id}"))?;
        say(&runner.run(scenario).to_line())?;
    }
    Ok(())
}

/// Writes a line of its own, whatever a driver has written before.
fn say(line: &str) -> Result<(), String> {
    let mut stdout = io::stdout().lock();
    let written = write!(stdout, "\n{line}\n").and_then(|()| stdout.flush());
    written.map_err(|error| format!("standard output: {error}"))
}

/// Lets the kernel end this process with its parent, even while a call hangs. A parent that has
/// ended before is noticed by the end of the standard input.
fn end_with_parent() {
    #[cfg(target_os = "linux")]
    {
        use nix::sys::prctl::set_pdeathsig;
        use nix::sys::signal::Signal;
        // Without it only a worker whose call hangs stays behind.
        let _ = set_pdeathsig(Signal::SIGKILL);
    }
}
