//! Items beyond a limit today. A change that brings one below removes its name here.

/// The numbers that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    Circle,
    Fields,
    Outside,
    Arguments,
    Tuples,
}

/// The number, the folder of the crate, and the names of types, functions or folders.
pub(crate) const EXCEPTIONS: &[(Number, &str, &[&str])] = &[
    // The specification decides the number of attributes.
    (Number::Fields, "sim", &["Id"]),
    (Number::Fields, "verbs-api", &["DeviceAttr", "QpAttr"]),
    // Each scenario is a function of a `Setup`, and each model of a `Harness`.
    (Number::Outside, "", &["Args"]),
    (Number::Outside, "models", &["Harness"]),
    (Number::Outside, "scenarios", &["Setup", "End"]),
    // Spans with what they gather: the fast path passes both in registers.
    (Number::Tuples, "sim", &["move_bytes", "move_response"]),
];
