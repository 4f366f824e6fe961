//! The text of verbs in the trace: their arguments and results.

use std::fmt::Display;

use verbs_api::cm::CmEvent;
use verbs_api::{
    Ah, AsyncEvent, CmChannel, CmId, CompChannel, Context, Cq, CqEvent, Dm, Mr, Mw, Pd, Qp, RecvWr,
    SendWr, Sge, Srq, Td, Xrcd,
};

/// A result of a verb that the trace can show.
pub(crate) trait TraceArgs {
    fn args(&self) -> String;
}

impl TraceArgs for () {
    fn args(&self) -> String {
        String::new()
    }
}

impl TraceArgs for CqEvent {
    fn args(&self) -> String {
        self.cq.to_string()
    }
}

macro_rules! args {
    ($($name:ident)*) => { $(
        impl TraceArgs for $name {
            fn args(&self) -> String {
                self.to_string()
            }
        }
    )* };
}

args!(usize u64 Context Pd Td Mr Mw Dm CompChannel Cq Qp Ah Srq Xrcd AsyncEvent CmChannel CmId CmEvent);

/// The text of posted sends.
pub(crate) fn sends(list: &[SendWr<'_>]) -> String {
    listed(list, |wr| {
        let flags: Vec<&str> = wr.flags.iter_names().map(|(name, _)| name).collect();
        let (name, bytes, flags) = (wr.op.name(), wr.length(), flags.join("|"));
        format!("{name} {:#x} {bytes} B {flags}", wr.label())
    })
}

/// The text of posted receives.
pub(crate) fn receives(list: &[RecvWr<'_>]) -> String {
    listed(list, |wr| {
        format!("{:#x} {} B", wr.label(), bytes(wr.sg_list))
    })
}

/// The length of a scatter/gather list.
pub(crate) fn bytes(list: &[Sge]) -> u64 {
    list.iter().map(|sge| u64::from(sge.length)).sum()
}

/// The text of an optional last argument.
pub(crate) fn also(argument: Option<impl Display>) -> String {
    argument
        .map(|argument| format!(", {argument}"))
        .unwrap_or_default()
}

fn listed<T>(list: &[T], one: impl Fn(&T) -> String) -> String {
    let all: Vec<String> = list.iter().map(one).collect();
    format!("[{}]", all.join(", "))
}
