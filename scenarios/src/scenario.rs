//! A scenario as data: a row beside its body, and a list of rows for each group.

use bitflags::bitflags;
use verbs_api::Capabilities;

use crate::bench::Bench;
use crate::failure::Result;

/// A small program against the trait that checks one or more rules.
///
/// ```
/// use verbs_api::Capabilities;
/// use verbs_scenarios::{Bench, Result, Scenario};
///
/// const ROW: Scenario = Scenario::new("cq_poll.empty_cq_gives_zero", &["CQ-POLL-03"], body)
///     .needs(Capabilities::LAB);
///
/// fn body(bench: &Bench<'_>) -> Result {
///     let pair = bench.rc_pair()?;
///     bench.no_completion(pair.a.send_cq, "CQ-POLL-03")
/// }
/// # assert_eq!(ROW.group(), "cq_poll");
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Scenario {
    /// Its group and, behind a dot, the behavior it checks:
    /// `cq_arm.next_fires_for_any_completion`.
    pub id: &'static str,
    /// The rules it checks, the main one first.
    pub rules: &'static [&'static str],
    /// What the device and the backend must be able to do.
    pub needs: Capabilities,
    /// What it can do to a device that breaks the rules.
    pub hazards: Hazards,
    /// The program.
    pub body: Body,
}

/// The program of a scenario.
pub type Body = fn(&Bench<'_>) -> Result;

bitflags! {
    /// What a scenario can do to a device that breaks the rules. One with hazards runs in a
    /// process of its own on real drivers.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Hazards: u8 {
        /// A call may never return.
        const MAY_HANG = 1 << 0;
        /// The process may crash.
        const MAY_CRASH = 1 << 1;
    }
}

impl Scenario {
    /// A scenario without hazards that needs RC queue pairs and nothing else.
    pub const fn new(id: &'static str, rules: &'static [&'static str], body: Body) -> Self {
        Self {
            id,
            rules,
            needs: Capabilities::RC,
            hazards: Hazards::empty(),
            body,
        }
    }

    /// One that also needs `more`.
    #[must_use]
    pub const fn needs(self, more: Capabilities) -> Self {
        Self {
            needs: self.needs.union(more),
            ..self
        }
    }

    /// One that also has these hazards.
    #[must_use]
    pub const fn hazards(self, more: Hazards) -> Self {
        Self {
            hazards: self.hazards.union(more),
            ..self
        }
    }

    /// The part of the id before the dot.
    pub fn group(&self) -> &'static str {
        self.id.split_once('.').map_or(self.id, |(group, _)| group)
    }

    /// The part of the id behind the dot in words, such as `next fires for any completion`.
    pub fn behavior(&self) -> String {
        let behavior = self.id.split_once('.').map_or("", |(_, behavior)| behavior);
        behavior.replace('_', " ")
    }
}

/// The row of the body that stands below and has the same name: its rules, what it needs but for RC,
/// its hazards. Its id is the group's module and that name.
///
/// The row is `ROW` of a type with the name of the body. One that is in no list of
/// [`scenarios!`](crate::scenario) is dead code, and so is a body without a row.
macro_rules! scenario {
    (
        $body:ident: $($rule:literal),+
        $(; needs $($need:ident),+)?
        $(; hazards $($hazard:ident),+)?
    ) => {
        #[allow(non_camel_case_types)]
        pub(crate) enum $body {}

        impl $body {
            pub(crate) const ROW: $crate::Scenario = {
                const PLACE: (&str, &str) = (module_path!(), stringify!($body));
                const ID: [u8; $crate::scenario::id_len(PLACE)] = $crate::scenario::id(PLACE);
                $crate::Scenario::new($crate::scenario::text(&ID), &[$($rule),+], $body)
                    $($(.needs(verbs_api::Capabilities::$need))+)?
                    $($(.hazards($crate::Hazards::$hazard))+)?
            };
        }
    };
}

/// The rows of these bodies, in the order of reports.
macro_rules! scenarios {
    ($($(#[$attribute:meta])* $body:path),+ $(,)?) => {
        &[$($(#[$attribute])* <$body>::ROW),+]
    };
}

/// How long the [`id`] of a body is.
pub(crate) const fn id_len((module, body): (&str, &str)) -> usize {
    group(module).len() + 1 + body.len()
}

/// The id of a body in `module`: the group, a dot, its name.
pub(crate) const fn id<const LEN: usize>((module, body): (&str, &str)) -> [u8; LEN] {
    let group = group(module);
    let mut id = [b'.'; LEN];
    id.split_at_mut(group.len()).0.copy_from_slice(group);
    id.split_at_mut(group.len() + 1)
        .1
        .copy_from_slice(body.as_bytes());
    id
}

/// The bytes of an [`id`] as what they are.
pub(crate) const fn text(id: &'static [u8]) -> &'static str {
    match str::from_utf8(id) {
        Ok(id) => id,
        Err(_) => panic!("the names of modules and functions are text"),
    }
}

/// The module right below the crate that `module` is or is in.
const fn group(module: &str) -> &[u8] {
    let (_, below) = module
        .as_bytes()
        .split_at(concat!(env!("CARGO_CRATE_NAME"), "::").len());
    let mut len = 0;
    while len < below.len() && below[len] != b':' {
        len += 1;
    }
    below.split_at(len).0
}
