//! Reading plans. A rule is a table of fields; errors name the line, the rule, the field and what
//! is allowed.

use core::fmt;
use core::ops::Range;
use core::time::Duration;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use verbs_api::lab::{
    CmMessage, Distribution, Effect, Fault, Limit, PacketClass, PacketFilter, PacketOpcode, Shape,
    When,
};
use verbs_api::{Cause, ErrorKind, Verb, WcStatus};

use crate::plan::Plan;

/// A mistake in a plan's file.
///
/// ```
/// use verbs_faults::Plan;
///
/// let text = "[[rule]]\nkind = \"packet\"\neffect = \"dorp\"";
/// let error = Plan::parse("plan.toml", text).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "plan.toml:3: rule 1: field \"effect\": \"dorp\" is not one of drop, corrupt, duplicate, \
///      delay, reorder, shape, hold",
/// );
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanError {
    /// The name of the file.
    pub file: String,
    /// The line, from 1. `None` if the file could not be read.
    pub line: Option<usize>,
    /// The rule, from 1, if it is in one.
    pub rule: Option<usize>,
    /// The field, if it is in one.
    pub field: Option<String>,
    /// The mistake, and what is allowed.
    pub problem: String,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(rule) = self.rule {
            write!(f, ": rule {rule}")?;
        }
        if let Some(field) = &self.field {
            write!(f, ": field \"{field}\"")?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl fmt::Debug for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for PlanError {}

impl Plan {
    /// Reads a plan from a file.
    ///
    /// # Errors
    /// If the file cannot be read, and those of [`parse`](Self::parse).
    pub fn read(path: &Path) -> Result<Self, PlanError> {
        let file = path.display().to_string();
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(&file, &text),
            Err(error) => Err(PlanError {
                file,
                line: None,
                rule: None,
                field: None,
                problem: error.to_string(),
            }),
        }
    }

    /// The plan that a setting or an option means: `standard`, `harsh`, `none`, or a file.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    pub fn named(name: &str) -> Result<Self, PlanError> {
        match name {
            "standard" => Ok(Self::standard()),
            "harsh" => Ok(Self::harsh()),
            "none" => Ok(Self::default()),
            file => Self::read(Path::new(file)),
        }
    }

    /// Reads a plan from the text of a file, whose name is for errors.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn parse(file: &str, text: &str) -> Result<Self, PlanError> {
        rules(text)
            .map(|rules| Self { rules })
            .map_err(|wrong| wrong.at(file, text))
    }
}

/// The fields of a rule of each kind, without `kind` itself.
const FIELDS: [(&str, &[&str]); 6] = [
    (
        "packet",
        &[
            "effect",
            "by",
            "behind",
            "delay",
            "jitter",
            "distribution",
            "rate",
            "from",
            "to",
            "src_qpn",
            "dest_qpn",
            "opcode",
            "class",
            "psn",
            "cm",
            "nth",
            "first",
            "these",
            "per_million",
        ],
    ),
    ("link", &["node", "peer", "down_at", "up_at"]),
    ("port", &["node", "port", "down_at", "up_at"]),
    (
        "call",
        &[
            "verb",
            "error",
            "node",
            "nth",
            "first",
            "these",
            "per_million",
        ],
    ),
    (
        "completion",
        &[
            "status",
            "node",
            "qpn",
            "nth",
            "first",
            "these",
            "per_million",
        ],
    ),
    ("limit", &["limit", "value", "node"]),
];

const TIMES: [&str; 4] = ["nth", "first", "these", "per_million"];

const EFFECTS: [&str; 7] = [
    "drop",
    "corrupt",
    "duplicate",
    "delay",
    "reorder",
    "shape",
    "hold",
];

const QP_NUMBERS: Range<u64> = 0..1 << 24;
const NODES: Range<u64> = 0..1 << 32;

/// Something that is wrong, and where.
struct Wrong {
    span: Range<usize>,
    rule: Option<usize>,
    field: Option<String>,
    problem: String,
}

impl Wrong {
    fn at(self, file: &str, text: &str) -> PlanError {
        let before = &text.as_bytes()[..self.span.start.min(text.len())];
        PlanError {
            file: file.to_owned(),
            line: Some(1 + before.iter().filter(|byte| **byte == b'\n').count()),
            rule: self.rule,
            field: self.field,
            problem: self.problem,
        }
    }
}

fn rules(text: &str) -> Result<Vec<Fault>, Wrong> {
    let outside = |span, field: Option<&str>, problem: String| Wrong {
        span,
        rule: None,
        field: field.map(str::to_owned),
        problem,
    };
    let table = DeTable::parse(text).map_err(|error| {
        let span = error.span().unwrap_or_default();
        outside(span, None, error.message().to_owned())
    })?;
    let unknown = |key: &&Spanned<_>| *key.get_ref() != "rule";
    let unknown = table.get_ref().keys().filter(unknown);
    if let Some(key) = unknown.min_by_key(|key| key.span().start) {
        let problem = "is not known, allowed is rule".to_owned();
        return Err(outside(key.span(), Some(key.get_ref()), problem));
    }
    let Some(list) = table.get_ref().get("rule") else {
        return Ok(Vec::new());
    };
    let DeValue::Array(list) = list.get_ref() else {
        let problem = "is not a list of tables: write each rule under [[rule]]".to_owned();
        return Err(outside(list.span(), Some("rule"), problem));
    };
    let rule = |(number, value): (usize, &Spanned<DeValue<'_>>)| match value.get_ref() {
        DeValue::Table(table) => Rule::new(number, value.span(), table)?.fault(),
        other => Err(Wrong {
            span: value.span(),
            rule: Some(number),
            field: None,
            problem: format!("is {}, not a table", kind_of(other)),
        }),
    };
    (1..).zip(list).map(rule).collect()
}

/// A rule in the file.
struct Rule<'t> {
    number: usize,
    span: Range<usize>,
    table: &'t DeTable<'t>,
    kind: &'static str,
}

impl<'t> Rule<'t> {
    fn new(number: usize, span: Range<usize>, table: &'t DeTable<'t>) -> Result<Self, Wrong> {
        let mut rule = Self {
            number,
            span,
            table,
            kind: "",
        };
        let kinds = FIELDS.map(|(kind, _)| kind);
        rule.kind = rule.required("kind", |value| one_of(value, kinds, |kind| kind))?;
        let fields = FIELDS.iter().find(|(kind, _)| *kind == rule.kind);
        let fields = fields.map_or(&[][..], |(_, fields)| fields);
        let unknown = table.keys().filter(|key| {
            let name: &str = key.get_ref();
            name != "kind" && !fields.contains(&name)
        });
        if let Some(key) = unknown.min_by_key(|key| key.span().start) {
            let known = FIELDS
                .iter()
                .any(|(_, all)| all.contains(&&**key.get_ref()));
            let problem = format!(
                "is {} of rules of kind {}, allowed are {}",
                if known {
                    "not a field"
                } else {
                    "not known as a field"
                },
                rule.kind,
                fields.join(", ")
            );
            return Err(rule.wrong(key.span(), Some(key.get_ref()), problem));
        }
        Ok(rule)
    }

    fn fault(&self) -> Result<Fault, Wrong> {
        let fault = match self.kind {
            "packet" => {
                let effect = self.effect()?;
                Fault::packet(self.packets()?, effect).at(self.when()?)
            }
            "link" => {
                let fault = Fault::link_down(self.required("node", node)?);
                let fault = given(fault, self.optional("peer", node)?, Fault::peer);
                self.times(fault)?
            }
            "port" => {
                let node = self.required("node", node)?;
                let port = self.optional("port", |value| number(value, 1..256))?;
                self.times(Fault::port_down(node, port.unwrap_or(1) as u8))?
            }
            "call" => {
                let node = self.optional("node", node)?;
                let verb = self.required("verb", |value| {
                    one_of(value, Verb::ALL.iter().copied(), Verb::name)
                })?;
                let fault = Fault::fail(verb, self.required("error", errno)?);
                given(fault, node, Fault::node).at(self.when()?)
            }
            "completion" => {
                let (node, qpn) = (
                    self.optional("node", node)?,
                    self.optional("qpn", qp_number)?,
                );
                let fault = Fault::complete(self.required("status", |value| {
                    number_or_name(value, 0..1 << 32, WcStatus::ALL, WcStatus::name)
                })?);
                let fault = given(fault, node, Fault::node);
                given(fault, qpn, Fault::qpn).at(self.when()?)
            }
            _ => {
                let node = self.optional("node", node)?;
                let limit = self.required("limit", |value| {
                    one_of(value, Limit::ALL.iter().copied(), Limit::name)
                })?;
                let value = self.required("value", |value| number(value, 0..u64::MAX))?;
                given(Fault::limit(limit, value), node, Fault::node)
            }
        };
        match fault.check() {
            Ok(()) => Ok(fault),
            Err(error) => Err(self.refused(error.cause())),
        }
    }

    fn packets(&self) -> Result<PacketFilter, Wrong> {
        let mut packets = PacketFilter::EVERY;
        packets.from = self.optional("from", node)?;
        packets.to = self.optional("to", node)?;
        packets.src_qpn = self.optional("src_qpn", qp_number)?;
        packets.dest_qpn = self.optional("dest_qpn", qp_number)?;
        packets.opcode = self.optional("opcode", |value| {
            number_or_name(value, 0..256, PacketOpcode::ALL, PacketOpcode::name)
        })?;
        packets.class = self.optional("class", |value| {
            one_of(value, PacketClass::ALL.iter().copied(), PacketClass::name)
        })?;
        packets.psn = self.optional("psn", qp_number)?;
        packets.cm = self.optional("cm", |value| {
            number_or_name(value, 0..1 << 16, CmMessage::ALL, CmMessage::name)
        })?;
        Ok(packets)
    }

    /// With the times of a link or a port.
    fn times(&self, fault: Fault) -> Result<Fault, Wrong> {
        let fault = given(fault, self.optional("down_at", time)?, Fault::down_at);
        Ok(given(fault, self.optional("up_at", time)?, Fault::up_at))
    }

    fn effect(&self) -> Result<Effect, Wrong> {
        let effect = self.required("effect", |value| one_of(value, EFFECTS, |effect| effect))?;
        let has = |field| self.table.get(field).is_some();
        for (field, effects) in [
            ("by", &["duplicate", "delay"][..]),
            ("behind", &["reorder"]),
            ("delay", &["shape"]),
            ("jitter", &["shape"]),
            ("distribution", &["shape"]),
            ("rate", &["shape"]),
        ] {
            if has(field) && !effects.contains(&effect) {
                let problem = format!("is for {}, and this is {effect}", effects.join(" and "));
                return Err(self.wrong(self.span_of(field), Some(field), problem));
            }
        }
        Ok(match effect {
            "drop" => Effect::Drop,
            "corrupt" => Effect::Corrupt,
            "duplicate" => Effect::Duplicate(self.optional("by", time)?.unwrap_or_default()),
            "delay" => Effect::Delay(self.required("by", time)?),
            "shape" => Effect::Shape(self.shape()?),
            "hold" => Effect::Hold,
            _ => {
                let behind = self.optional("behind", |value| number(value, 1..1 << 32))?;
                Effect::Reorder(behind.unwrap_or(1) as u32)
            }
        })
    }

    fn shape(&self) -> Result<Shape, Wrong> {
        let mut shape = Shape::new();
        shape.delay = self.optional("delay", time)?.unwrap_or_default();
        shape.jitter = self.optional("jitter", time)?.unwrap_or_default();
        let distribution = self.optional("distribution", |value| {
            one_of(value, Distribution::ALL.iter().copied(), Distribution::name)
        })?;
        shape.distribution = distribution.unwrap_or_default();
        shape.rate = self.optional("rate", |value| number(value, 0..u64::MAX))?;
        Ok(shape)
    }

    fn when(&self) -> Result<When, Wrong> {
        let given = TIMES
            .iter()
            .filter(|field| self.table.get(**field).is_some());
        let given: Vec<_> = given.copied().collect();
        let Some(field) = given.first().copied() else {
            return Ok(When::Always);
        };
        if let Some(second) = given.get(1) {
            let problem = format!("cannot be combined with {field}");
            return Err(self.wrong(self.span_of(second), Some(second), problem));
        }
        match field {
            "nth" => Ok(When::Nth(self.required(field, ordinal)?)),
            "first" => Ok(When::First(
                self.required(field, |value| number(value, 0..u64::MAX))?,
            )),
            "these" => {
                let DeValue::Array(list) = self.value(field)? else {
                    let problem = "is not a list of whole numbers".to_owned();
                    return Err(self.wrong(self.span_of(field), Some(field), problem));
                };
                let one = |value: &Spanned<_>| {
                    ordinal(value.get_ref())
                        .map_err(|problem| self.wrong(value.span(), Some(field), problem))
                };
                Ok(When::These(
                    list.iter().map(one).collect::<Result<BTreeSet<_>, _>>()?,
                ))
            }
            _ => {
                let rate = self.required(field, |value| number(value, 0..1_000_001))?;
                Ok(When::PerMillion(rate as u32))
            }
        }
    }

    fn optional<T>(
        &self,
        field: &str,
        read: impl FnOnce(&DeValue<'_>) -> Result<T, String>,
    ) -> Result<Option<T>, Wrong> {
        let Some(value) = self.table.get(field) else {
            return Ok(None);
        };
        let wrong = |problem| self.wrong(value.span(), Some(field), problem);
        read(value.get_ref()).map(Some).map_err(wrong)
    }

    fn required<T>(
        &self,
        field: &str,
        read: impl FnOnce(&DeValue<'_>) -> Result<T, String>,
    ) -> Result<T, Wrong> {
        self.value(field)?;
        let value = self.optional(field, read)?;
        value.ok_or_else(|| self.wrong(self.span.clone(), Some(field), "is missing".to_owned()))
    }

    fn value(&self, field: &str) -> Result<&DeValue<'t>, Wrong> {
        match self.table.get(field) {
            Some(value) => Ok(value.get_ref()),
            None => {
                let problem = match field {
                    "kind" => format!(
                        "is missing, one of {}",
                        FIELDS.map(|(kind, _)| kind).join(", ")
                    ),
                    _ => "is missing".to_owned(),
                };
                Err(self.wrong(self.span.clone(), Some(field), problem))
            }
        }
    }

    fn span_of(&self, field: &str) -> Range<usize> {
        match self.table.get(field) {
            Some(value) => value.span(),
            None => self.span.clone(),
        }
    }

    /// What [`Fault::check`] says, at the field that it names.
    fn refused(&self, cause: &Cause) -> Wrong {
        match cause {
            Cause::Argument { what, problem } => {
                self.wrong(self.span_of(what), Some(what), (*problem).to_owned())
            }
            other => self.wrong(self.span.clone(), None, other.to_string()),
        }
    }

    fn wrong(&self, span: Range<usize>, field: Option<&str>, problem: String) -> Wrong {
        Wrong {
            span,
            rule: Some(self.number),
            field: field.map(str::to_owned),
            problem,
        }
    }
}

/// A rule that says something more, if that is given.
fn given<T>(fault: Fault, value: Option<T>, say: fn(Fault, T) -> Fault) -> Fault {
    match value {
        Some(value) => say(fault, value),
        None => fault,
    }
}

fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn number(value: &DeValue<'_>, allowed: Range<u64>) -> Result<u64, String> {
    let DeValue::Integer(digits) = value else {
        return Err(format!("is {}, not a whole number", kind_of(value)));
    };
    let number = i128::from_str_radix(digits.as_str(), digits.radix());
    let number = number.ok().and_then(|number| u64::try_from(number).ok());
    number
        .filter(|number| allowed.contains(number))
        .ok_or_else(|| {
            let (first, last) = (allowed.start, allowed.end - 1);
            format!("is {digits}, allowed are {first} to {last}")
        })
}

fn ordinal(value: &DeValue<'_>) -> Result<u64, String> {
    number(value, 1..u64::MAX)
}

fn node(value: &DeValue<'_>) -> Result<u32, String> {
    number(value, NODES).map(|number| number as u32)
}

/// A QP number or a PSN.
fn qp_number(value: &DeValue<'_>) -> Result<u32, String> {
    number(value, QP_NUMBERS).map(|number| number as u32)
}

fn string<'t>(value: &'t DeValue<'_>) -> Result<&'t str, String> {
    match value {
        DeValue::String(text) => Ok(text),
        other => Err(format!("is {}, not a string", kind_of(other))),
    }
}

fn one_of<T: Copy>(
    value: &DeValue<'_>,
    all: impl IntoIterator<Item = T>,
    name: impl Fn(T) -> &'static str,
) -> Result<T, String> {
    let text = string(value)?;
    let all: Vec<T> = all.into_iter().collect();
    let names = all.iter().map(|one| name(*one));
    match names.clone().position(|name| name == text) {
        Some(position) => Ok(all[position]),
        None => {
            let names: Vec<_> = names.collect();
            Err(format!("\"{text}\" is not one of {}", names.join(", ")))
        }
    }
}

/// A value of a C enum: its name, or its number.
fn number_or_name<T: Copy + From<u32>>(
    value: &DeValue<'_>,
    numbers: Range<u64>,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, String> {
    match value {
        DeValue::Integer(_) => number(value, numbers).map(|number| T::from(number as u32)),
        _ => one_of(value, all.iter().copied(), name),
    }
}

fn errno(value: &DeValue<'_>) -> Result<ErrorKind, String> {
    match value {
        DeValue::Integer(_) => {
            number(value, 1..4096).map(|number| ErrorKind::from_errno(number as i32))
        }
        _ => one_of(
            value,
            ErrorKind::FROM_ERRNO.iter().copied(),
            ErrorKind::symbol,
        ),
    }
}

/// The units of times, and their nanoseconds, longest first.
pub(crate) const UNITS: [(&str, u128); 4] = [
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// A time such as `1.5ms`.
fn time(value: &DeValue<'_>) -> Result<Duration, String> {
    let text = string(value)?;
    let read = || {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let (_, unit) = *UNITS
            .iter()
            .find(|(unit, _)| *unit == &text[digits.len()..])?;
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit());
        if !is_number(whole) || !is_number(fraction) || fraction.len() > 9 {
            return None;
        }
        let scale = 10_u128.pow(fraction.len() as u32);
        let fraction = fraction.parse::<u128>().ok()? * unit;
        let whole = whole.parse::<u128>().ok()?.checked_mul(unit)?;
        let nanos = whole.checked_add(fraction / scale)?;
        let exact = fraction.is_multiple_of(scale);
        u64::try_from(nanos)
            .ok()
            .filter(|_| exact)
            .map(Duration::from_nanos)
    };
    read().ok_or_else(|| {
        format!("\"{text}\" is not a time: a number and ns, us, ms or s, such as \"1.5ms\"")
    })
}
