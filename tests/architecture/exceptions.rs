//! What is beyond a number today. Each name is to be removed by whoever brings it below.

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    Circle,
    Fields,
    Outside,
    Arguments,
    Tuples,
}

/// The number, the folder of the crate, and the types, functions or folders.
pub(crate) const EXCEPTIONS: &[(Number, &str, &[&str])] = &[
    // Circles, by the folder that has their files.
    (Number::Circle, "explore", &["checked"]),
    (Number::Circle, "verbs-api", &["owned"]),
    // Attributes of the specification, and settings, have as many fields as there are.
    (Number::Fields, "sim", &["Id", "SimConfig"]),
    (Number::Fields, "verbs-api", &["DeviceAttr", "QpAttr"]),
    // Each scenario is a function of a `Bench`, and each model of a `Harness`. The functions of
    // `Fabric` and of `Device` are to come home.
    (Number::Outside, "", &["Args"]),
    (Number::Outside, "models", &["Harness"]),
    (Number::Outside, "scenarios", &["Bench", "End"]),
    (
        Number::Outside,
        "sim",
        &["Common", "Device", "Fabric", "Node"],
    ),
    // To be types with fields, or arguments.
    (
        Number::Tuples,
        "explore",
        &[
            "Checked::destroy",
            "Delivery::made",
            "Delivery::used",
            "Runner::is_undefined",
            "Work::new",
        ],
    ),
    (Number::Tuples, "models", &["Model::fails", "Model::holds"]),
    (
        Number::Tuples,
        "mutants",
        &["Program::run", "Woven::end", "Woven::open", "add"],
    ),
    (
        Number::Tuples,
        "scenarios",
        &[
            "Bench::end_of",
            "Shared::pair_on",
            "cap",
            "end_by",
            "header",
            "id",
            "id_len",
            "is_dropped",
            "is_invalid",
            "send",
        ],
    ),
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
            "note_refused",
            "out_packet",
            "place",
            "problem",
            "request",
            "send",
            "why_not_in",
        ],
    ),
    (Number::Tuples, "udp", &["send"]),
];
