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
    // The specification decides the number of attributes, and the program that of settings.
    (Number::Fields, "sim", &["Id", "SimConfig"]),
    (Number::Fields, "verbs-api", &["DeviceAttr", "QpAttr"]),
    // Each scenario is a function of a `Bench`, and each model of a `Harness`. Functions of
    // `Fabric` and `Device` belong among their methods.
    (Number::Outside, "", &["Args"]),
    (Number::Outside, "models", &["Harness"]),
    (Number::Outside, "scenarios", &["Bench", "End"]),
    (
        Number::Outside,
        "sim",
        &["Common", "Device", "Fabric", "Node"],
    ),
    // These arguments need a type with fields, or are several arguments.
    (
        Number::Tuples,
        "sim",
        &[
            "Cqs::add",
            "Cqs::add_success",
            "Device::new",
            "Domains::bind",
            "Domains::create_ah",
            "Domains::remote_span",
            "Domains::touch_remote",
            "Domains::touch_window",
            "Gsi::send",
            "Journal::gone",
            "Journal::lost",
            "Journal::why_not_taken",
            "Node::new",
            "Qp::new",
            "Qp::post_bind",
            "Regions::why_not_in",
            "Regions::why_not_remote",
            "Requester::record_sent",
            "Responder::acknowledge",
            "Responder::execute_atomic",
            "answer_atomic",
            "check",
            "completion",
            "move_bytes",
            "move_response",
            "note_failed_send",
            "out_packet",
            "place",
            "problem",
            "request",
            "send",
            "why_not_in",
        ],
    ),
];
