//! How simulated devices are set up for a program: `verbsim exec` and the drop-in `libibverbs.so.1`
//! read the same settings, by the same code.
//!
//! [`SETTINGS`] says what can be set. `--link-layer` is an option of `verbsim exec`,
//! `VERBSIM_LINK_LAYER` a variable, and `link_layer` a key of the TOML file that `VERBSIM_CONFIG`
//! names: an option wins over a variable, and a variable over the file. [`Config::read`] refuses
//! what makes no sense; the error says where it was set, its value, and what is allowed.

mod config;
mod fabric;
mod format;
mod setting;
mod suppressions;
#[cfg(target_os = "linux")]
pub mod trees;

pub use config::{Config, check_calls, link_layer};
pub use fabric::Fabric;
#[cfg(target_os = "linux")]
pub use fabric::is_scheduled;
pub use format::DiagnoseFormat;
pub use setting::{Kind, SETTINGS, Setting, Variables};
