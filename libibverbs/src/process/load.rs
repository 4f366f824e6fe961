//! Loading the library.

use verbs_settings::{Config, Variables};

use super::{exit, fork, report, signals};
use crate::base::output::say;
use crate::base::record;
use crate::c::caller;
use crate::engine::{self, Engine, Start, prepare};

/// Reads the configuration when the library is loaded, so that its mistakes are reported before the
/// program begins. A library that is only preloaded waits until the program needs it.
#[used]
// SAFETY: the section holds functions of this type, which the loader calls once.
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = {
    extern "C" fn at_load() {
        prepare(Start {
            load: configure,
            started,
        });
        #[cfg(not(test))]
        if super::preload::at_load() {
            return;
        }
        engine::config();
    }
    at_load
};

/// Reads the configuration, and gets ready for the end of the process. A process with a wrong
/// configuration ends with status 2.
fn configure() -> Config {
    match Config::read(&Variables::of_process()).and_then(written_here) {
        Ok(config) => {
            record::loaded();
            exit::register(&config);
            caller::register(&config);
            fork::register();
            config
        }
        Err(problem) => {
            say(problem);
            // SAFETY: ends the process, which has used no device.
            unsafe { libc::_exit(2) }
        }
    }
}

/// Refuses a configuration whose diagnosis one process cannot write.
fn written_here(config: Config) -> Result<Config, String> {
    if config.diagnose_format().is_document() {
        return Err(
            "VERBSIM_DIAGNOSE_FORMAT (--diagnose-format): junit, github and sarif are documents about all processes of a \
             run: start the program with `verbsim exec`, or choose text or json"
                .to_owned(),
        );
    }
    Ok(config)
}

fn started(engine: &'static Engine) {
    signals::watch(engine.config);
    report::watch(engine);
}
