//! Functions for tests that run on the devices: faults on purpose, the findings so far, marks in
//! the trace.
//!
//! The header `verbsim.h` and Python's `import verbsim` find them by `dlsym`. Devices have names
//! here, and queue pairs have numbers, because Python does not have the pointers of C. Each
//! function returns a number, or an errno value below zero. An error also writes a line to the
//! standard error. It is not a finding, since the program under test has made no mistake.
//!
//! This folder names the engine and the diagnosis, and no kind of object.

mod faults;
mod findings;

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::null_mut;
use std::time::Duration;

use verbs_api::lab::{Fault, Lab, PacketFilter, When};
use verbs_api::{Error, ErrorKind, Verb, Verbs, Wait, WcStatus};
use verbs_faults::Plan;
use verbs_sim::Annotation;

use crate::base::output::say;
use crate::c::result::guarded;
use crate::c::{Refusal, Result};
use crate::engine::{engine, unobserved};

/// Puts the rules of a fault plan in force. Returns the number of the fault.
pub(crate) extern "C" fn inject(rules: *const c_char) -> i64 {
    answer("verbsim_inject", || {
        let rules = text("rules", rules)?;
        let plan = Plan::parse("rules", rules);
        faults::inject(&plan.map_err(|error| Refusal::invalid(error.to_string()))?)
    })
}

/// Drops the next `count` packets that leave a queue pair, or all of them if `count` is 0.
pub(crate) extern "C" fn drop_packets(device: *const c_char, qp_num: u32, count: u64) -> i64 {
    answer("verbsim_drop_packets", || {
        one(Fault::drop(packets(device, qp_num)?), count)
    })
}

/// Delays the next `count` packets that leave a queue pair, or all of them if `count` is 0.
pub(crate) extern "C" fn delay_packets(
    device: *const c_char,
    qp_num: u32,
    count: u64,
    microseconds: u64,
) -> i64 {
    answer("verbsim_delay_packets", || {
        let by = Duration::from_micros(microseconds);
        one(Fault::delay(packets(device, qp_num)?, by), count)
    })
}

/// Makes the next `count` calls of a verb on a device fail with this errno value.
pub(crate) extern "C" fn fail_calls(
    device: *const c_char,
    verb: *const c_char,
    error: c_int,
    count: u64,
) -> i64 {
    answer("verbsim_fail_calls", || {
        let node = some_node(device)?;
        let name = text("verb", verb)?;
        let verb = Verb::ALL.iter().find(|verb| verb.name() == name);
        let verb = verb.ok_or_else(|| Refusal::invalid(format!("no verb is called {name}")))?;
        let fault = Fault::fail(*verb, ErrorKind::from_errno(error));
        one(on_node(fault, node), count)
    })
}

/// Makes the next `count` successful completions of a queue pair errors with this status.
pub(crate) extern "C" fn fail_completions(
    device: *const c_char,
    qp_num: u32,
    status: u32,
    count: u64,
) -> i64 {
    answer("verbsim_fail_completions", || {
        let fault = on_node(Fault::complete(WcStatus::from(status)), some_node(device)?);
        let fault = match qp_num {
            0 => fault,
            qp_num => fault.qpn(qp_num),
        };
        one(fault, count)
    })
}

/// Takes a port down until the fault is removed.
pub(crate) extern "C" fn port_down(device: *const c_char, port: u32) -> i64 {
    answer("verbsim_port_down", || {
        let port = u8::try_from(port)
            .map_err(|_| Refusal::invalid(format!("port is {port}: a port is 1 to 255")))?;
        one(Fault::port_down(node(device)?, port), 0)
    })
}

/// Makes a device fail for the rest of the run.
pub(crate) extern "C" fn kill_device(device: *const c_char) -> i64 {
    answer("verbsim_kill_device", || {
        let node = node(device)?;
        let sim = unobserved();
        let text = "verbsim_kill_device".to_owned();
        Annotation { node, text }.note(sim);
        // The test controls find a device by a context, and the program may have none.
        let kill = || {
            let context = sim.open_device(&format!("sim{node}"))?;
            sim.kill_device(context)?;
            // This context gets the event too. Unread, it would be a finding.
            let event = sim.get_async_event(context, Wait::Poll)?;
            sim.ack_async_event(context, &event)?;
            sim.close_device(context)
        };
        kill().map_err(of_engine)?;
        Ok(0)
    })
}

/// The number of times that a fault has fired.
pub(crate) extern "C" fn fired(fault: i64) -> i64 {
    answer("verbsim_fired", || faults::fired(fault))
}

/// Removes a fault. Returns how often it has fired.
pub(crate) extern "C" fn remove(fault: i64) -> i64 {
    answer("verbsim_remove", || faults::remove(fault))
}

/// Writes a line into the trace. Returns the number of the mark, for the next two.
pub(crate) extern "C" fn mark(what: *const c_char) -> i64 {
    answer("verbsim_mark", || Ok(findings::mark(text("text", what)?)))
}

/// The number of findings of a level or class since a mark.
pub(crate) extern "C" fn count_findings(what: *const c_char, since: i64) -> i64 {
    answer("verbsim_count_findings", || {
        let what = (!what.is_null()).then(|| text("what", what)).transpose()?;
        findings::count(what, since)
    })
}

/// The findings since a mark, as lines of JSON that the program frees. For an error, null and
/// `errno`.
pub(crate) extern "C" fn findings_since(since: i64) -> *mut c_char {
    let mut lines = null_mut();
    answer("verbsim_findings", || {
        let text = CString::new(findings::lines(since)?).unwrap_or_default();
        // SAFETY: the text ends with 0.
        lines = unsafe { libc::strdup(text.as_ptr()) };
        if lines.is_null() {
            return Err(Refusal::new(
                libc::ENOMEM,
                "there is no memory for the text",
            ));
        }
        Ok(0)
    });
    lines
}

fn text<'a>(name: &str, text: *const c_char) -> Result<&'a str> {
    if text.is_null() {
        return Err(Refusal::invalid(format!("{name} is NULL")));
    }
    // SAFETY: a text that ends with 0, which stays for the call (C's contract).
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map_err(|_| Refusal::invalid(format!("{name} is not UTF-8")))
}

/// The number of the device with this name.
fn node(device: *const c_char) -> Result<u32> {
    let name = text("device", device)?;
    let names = engine().config.names();
    let found = names.iter().position(|other| other == name);
    found.map(|node| node as u32).ok_or_else(|| {
        let all = names.join(", ");
        Refusal::new(
            libc::ENODEV,
            format!("no device is called {name}; there are {all}"),
        )
    })
}

/// The number of the device with this name. `None`, for every device, if the name is null.
fn some_node(device: *const c_char) -> Result<Option<u32>> {
    (!device.is_null()).then(|| node(device)).transpose()
}

fn on_node(fault: Fault, node: Option<u32>) -> Fault {
    match node {
        Some(node) => fault.node(node),
        None => fault,
    }
}

/// The packets that leave a device and a queue pair. Null and 0 mean every one.
fn packets(device: *const c_char, qp_num: u32) -> Result<PacketFilter> {
    let mut packets = PacketFilter::EVERY;
    packets.from = some_node(device)?;
    packets.src_qpn = (qp_num != 0).then_some(qp_num);
    Ok(packets)
}

/// Puts one rule in force for the first `count` matches, or for all if `count` is 0.
fn one(fault: Fault, count: u64) -> Result<i64> {
    let fault = match count {
        0 => fault,
        count => fault.at(When::First(count)),
    };
    let plan = Plan::new(vec![fault]);
    faults::inject(&plan.map_err(of_engine)?)
}

/// The engine's error with its text, which `?` leaves out.
fn of_engine(error: Error) -> Refusal {
    Refusal::new(error.errno(), error.cause().to_string())
}

/// Runs a call. Returns its result, or an errno value below zero and a line on the standard error.
fn answer(call: &'static str, work: impl FnOnce() -> Result<i64>) -> i64 {
    let answer = guarded(call, (), |()| {
        work().map_err(|mut refusal| {
            say(format_args!("{call}: {}", refusal.take_text()));
            refusal
        })
    });
    answer.unwrap_or_else(|errno| -i64::from(errno.abs()))
}
