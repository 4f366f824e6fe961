//! Writing plans: what is read back is the same plan, and equal plans have one text.

use core::fmt;
use core::time::Duration;

use verbs_api::lab::{CmMessage, Distribution, Effect, Fault, PacketFilter, PacketOpcode, When};
use verbs_api::{ErrorKind, WcStatus};

use crate::plan::Plan;
use crate::read::UNITS;

/// The text of the plan's file.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, rule) in self.rules.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            f.write_str("[[rule]]\n")?;
            for (field, value) in fields(rule) {
                writeln!(f, "{field} = {value}")?;
            }
        }
        Ok(())
    }
}

impl Plan {
    /// Each rule in one line: its fields, as in the file.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.rules.iter().map(|rule| {
            let field = |(field, value)| format!("{field} = {value}");
            let all: Vec<String> = fields(rule).into_iter().map(field).collect();
            all.join(", ")
        })
    }
}

/// Fields with their values; those that say nothing are left out.
fn fields(rule: &Fault) -> Vec<(&'static str, String)> {
    let mut fields = Vec::new();
    let mut say = |field, value: Option<String>| fields.extend(value.map(|value| (field, value)));
    let number = |number: &Option<u32>| number.map(|number| number.to_string());
    match rule {
        Fault::Packet {
            packets, effect, ..
        } => {
            say("kind", quoted("packet"));
            say("effect", quoted(effect.name()));
            match effect {
                Effect::Duplicate(by) if by.is_zero() => {}
                Effect::Duplicate(by) | Effect::Delay(by) => say("by", time(*by)),
                Effect::Reorder(behind) => say("behind", Some(behind.to_string())),
                Effect::Shape(shape) => {
                    say(
                        "delay",
                        time(shape.delay).filter(|_| !shape.delay.is_zero()),
                    );
                    say(
                        "jitter",
                        time(shape.jitter).filter(|_| !shape.jitter.is_zero()),
                    );
                    let distribution = quoted(shape.distribution.name());
                    let is_given = shape.distribution != Distribution::default();
                    say("distribution", distribution.filter(|_| is_given));
                    say("rate", shape.rate.map(|rate| rate.to_string()));
                }
                _ => {}
            }
            let PacketFilter {
                from,
                to,
                src_qpn,
                dest_qpn,
                opcode,
                class,
                psn,
                cm,
                ..
            } = packets;
            say("from", number(from));
            say("to", number(to));
            say("src_qpn", number(src_qpn));
            say("dest_qpn", number(dest_qpn));
            say(
                "opcode",
                opcode.and_then(|opcode| match opcode {
                    PacketOpcode::Unknown(raw) => Some(raw.to_string()),
                    named => quoted(named.name()),
                }),
            );
            say("class", class.and_then(|class| quoted(class.name())));
            say("psn", number(psn));
            say(
                "cm",
                cm.and_then(|message| match message {
                    CmMessage::Unknown(raw) => Some(raw.to_string()),
                    named => quoted(named.name()),
                }),
            );
        }
        Fault::Link {
            node,
            peer,
            down_at,
            up_at,
            ..
        } => {
            say("kind", quoted("link"));
            say("node", Some(node.to_string()));
            say("peer", number(peer));
            say("down_at", time(*down_at).filter(|_| !down_at.is_zero()));
            say("up_at", up_at.and_then(time));
        }
        Fault::Port {
            node,
            port,
            down_at,
            up_at,
            ..
        } => {
            say("kind", quoted("port"));
            say("node", Some(node.to_string()));
            say("port", Some(port.to_string()).filter(|_| *port != 1));
            say("down_at", time(*down_at).filter(|_| !down_at.is_zero()));
            say("up_at", up_at.and_then(time));
        }
        Fault::Call {
            node, verb, error, ..
        } => {
            say("kind", quoted("call"));
            say("verb", quoted(verb.name()));
            say(
                "error",
                match error {
                    ErrorKind::Os(errno) => Some(errno.to_string()),
                    kind => quoted(kind.symbol()),
                },
            );
            say("node", number(node));
        }
        Fault::Completion {
            node, qpn, status, ..
        } => {
            say("kind", quoted("completion"));
            say(
                "status",
                match status {
                    WcStatus::Unknown(raw) => Some(raw.to_string()),
                    named => quoted(named.name()),
                },
            );
            say("node", number(node));
            say("qpn", number(qpn));
        }
        Fault::Limit {
            node, limit, value, ..
        } => {
            say("kind", quoted("limit"));
            say("limit", quoted(limit.name()));
            say("value", Some(value.to_string()));
            say("node", number(node));
        }
        // A kind that this version does not know cannot be in a file either.
        _ => say("kind", quoted("unknown")),
    }
    fields.extend(rule.when().and_then(when));
    fields
}

fn when(when: &When) -> Option<(&'static str, String)> {
    match when {
        When::Nth(n) => Some(("nth", n.to_string())),
        When::First(n) => Some(("first", n.to_string())),
        When::These(ordinals) => {
            let ordinals: Vec<_> = ordinals.iter().map(u64::to_string).collect();
            Some(("these", format!("[{}]", ordinals.join(", "))))
        }
        When::PerMillion(rate) => Some(("per_million", rate.to_string())),
        _ => None,
    }
}

fn quoted(text: &str) -> Option<String> {
    Some(format!("\"{text}\""))
}

/// In the longest unit that needs no fraction.
fn time(time: Duration) -> Option<String> {
    let nanos = time.as_nanos();
    let mut units = UNITS.iter();
    let (unit, length) = units.find(|(_, length)| nanos.is_multiple_of(*length))?;
    Some(format!("\"{}{unit}\"", nanos / length))
}
