//! Contexts.

use std::collections::BTreeMap;
use std::mem::offset_of;

use verbs_abi::{ibv_context, verbs_context};
use verbs_api::Context;
use verbs_api::sync::Mutex;

use crate::base::per_process::PerProcess;
use crate::base::record::FileId;
use crate::c::blocking::Descriptor;
use crate::c::{CObject, Held, Result, kinds};

kinds! {
    /// Contexts. A program points to the last member of the structure.
    OpenDevice: verbs_context as ibv_context, Context, More, at offset_of!(verbs_context, context),
        // Findings name the device before the text.
        named |_context| String::new();
}

/// The open contexts, by the files of their command descriptors. Contexts of one file are one
/// context for the engine.
pub(crate) type Open = BTreeMap<FileId, Vec<Held<OpenDevice>>>;

static OPEN: PerProcess<Mutex<Open>> = PerProcess::new();

/// Values of a context that its structure lacks.
pub(crate) struct More {
    /// The descriptor of its asynchronous events, until it is closed.
    pub(super) async_fd: Descriptor,
    /// The command descriptor, until it is closed. Programs duplicate it, and import the duplicate.
    pub(super) cmd_fd: Descriptor,
    /// The file of that descriptor.
    pub(super) file: FileId,
}

/// The open contexts of the process.
pub(crate) fn open() -> &'static Mutex<Open> {
    OPEN.get_or_default()
}

/// The engine's handle of a context.
pub(crate) fn context_of(context: *mut ibv_context) -> Result<Context> {
    CObject::<OpenDevice>::find(context).map(|context| context.handle)
}

/// Whether a pointer names a context of the engine, which may be closed by now.
pub(crate) fn is_context(pointer: *mut ibv_context, of: Context) -> bool {
    CObject::<OpenDevice>::at(pointer).is_some_and(|found| found.handle == of)
}
