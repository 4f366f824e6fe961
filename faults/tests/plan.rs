//! Fault plans: their files, and what they do when they are in force.

use core::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, RngSeed};
use verbs_api::lab::{Fault, Limit, When};
use verbs_api::{
    CqInit, ErrorKind, MrInit, Qp, QpCap, QpInit, QpType, RcParams, RecvWr, SendWr, Verb, Verbs,
    Wc, WcStatus, connect,
};
use verbs_faults::{Part, Plan, strategy};
use verbs_sim::{Mode, Sim, SimConfig};

const DOCUMENT: &str = include_str!("../../docs/faults.md");

fn parse(text: &str) -> Result<Plan, String> {
    Plan::parse("plan.toml", text).map_err(|error| error.to_string())
}

/// The blocks of a language in the document of the format.
fn blocks(language: &str) -> Vec<&'static str> {
    let parts = DOCUMENT.split("```").skip(1).step_by(2);
    parts
        .filter_map(|part| part.strip_prefix(language))
        .collect()
}

/// Each example of the document is a plan, they have each kind, effect and field, and what the
/// document says of an error is true.
#[test]
fn examples_of_the_document_are_plans() {
    let examples = blocks("toml\n");
    assert!(examples.len() >= 6);
    for example in &examples {
        let plan = parse(example).unwrap();
        assert!(!plan.rules().is_empty());
        assert_eq!(parse(&plan.to_string()).unwrap(), plan, "{example}");
    }
    let all = examples.concat();
    for (field, values) in [
        ("kind", "packet link port call completion limit"),
        ("effect", "drop corrupt duplicate delay reorder shape hold"),
    ] {
        for value in values.split(' ') {
            assert!(
                all.contains(&format!("{field} = \"{value}\"")),
                "{field} {value}"
            );
        }
    }
    let fields = "by behind delay jitter distribution rate from to src_qpn dest_qpn opcode class psn cm nth first these per_million \
        node peer port down_at up_at verb error status qpn limit value";
    for field in fields.split_whitespace() {
        assert!(all.contains(&format!("\n{field} = ")), "{field}");
        assert!(
            DOCUMENT.contains(&format!("`{field}`")) || DOCUMENT.contains(&format!("`{field} =")),
            "{field}"
        );
    }
    let wrong = format!(
        "{}\n[[rule]]\nkind = \"packet\"\neffect = \"dorp\"",
        "[[rule]]\nkind = \"link\"\nnode = 0\n"
    );
    assert!(DOCUMENT.contains(&parse(&wrong).unwrap_err()));
}

/// Each mistake in a file has its error.
#[test]
fn wrong_files_are_refused_with_line_field_and_what_is_allowed() {
    let packet = "[[rule]]\nkind = \"packet\"\n";
    for (text, said) in [
        ("[[rule]", "1: unclosed array table"),
        ("[[rule]]\nkind = packet", "2: string values must be quoted"),
        (
            "[[rules]]",
            "1: field \"rules\": is not known, allowed is rule",
        ),
        (
            "rule = 1",
            "1: field \"rule\": is not a list of tables: write each rule under [[rule]]",
        ),
        ("rule = [1]", "1: rule 1: is a whole number, not a table"),
        (
            "[[rule]]\n",
            "1: rule 1: field \"kind\": is missing, one of packet, link, port, call, completion, limit",
        ),
        (
            "[[rule]]\nkind = \"pocket\"",
            "2: rule 1: field \"kind\": \"pocket\" is not one of packet, link, port, call, completion, limit",
        ),
        (
            "[[rule]]\nkind = 1",
            "2: rule 1: field \"kind\": is a whole number, not a string",
        ),
        (
            "# first\n[[rule]]\nkind = \"link\"\nnode = 1\n\n[[rule]]\nkind = \"link\"\nnoed = 1",
            "8: rule 2: field \"noed\": is not known as a field of rules of kind link, allowed are node, peer, down_at, up_at",
        ),
        (
            "[[rule]]\nkind = \"link\"\nnode = 1\neffect = \"drop\"",
            "4: rule 1: field \"effect\": is not a field of rules of kind link, allowed are node, peer, down_at, up_at",
        ),
        (
            "[[rule]]\nkind = \"link\"\nnode = 1\nnode = 2",
            "4: duplicate key",
        ),
        (
            "[[rule]]\nkind = \"link\"",
            "1: rule 1: field \"node\": is missing",
        ),
        (
            "[[rule]]\nkind = \"link\"\nnode = -1",
            "3: rule 1: field \"node\": is -1, allowed are 0 to 4294967295",
        ),
        (
            "[[rule]]\nkind = \"link\"\nnode = 1\npeer = 1",
            "4: rule 1: field \"peer\": is the node itself",
        ),
        (
            "[[rule]]\nkind = \"link\"\nnode = 1\ndown_at = \"2ms\"\nup_at = \"2000us\"",
            "5: rule 1: field \"up_at\": is not after down_at",
        ),
        (
            "[[rule]]\nkind = \"link\"\nnode = 1\nup_at = 5",
            "4: rule 1: field \"up_at\": is a whole number, not a string",
        ),
        (
            "[[rule]]\nkind = \"link\"\nnode = 1\nup_at = \"5\"",
            "4: rule 1: field \"up_at\": \"5\" is not a time: a number and ns, us, ms or s, such as \"1.5ms\"",
        ),
        (
            "[[rule]]\nkind = \"link\"\nnode = 1\nup_at = \"5 min\"",
            "4: rule 1: field \"up_at\": \"5 min\" is not a time: a number and ns, us, ms or s, such as \"1.5ms\"",
        ),
        (
            "[[rule]]\nkind = \"link\"\nnode = 1\nup_at = \"0.5ns\"",
            "4: rule 1: field \"up_at\": \"0.5ns\" is not a time: a number and ns, us, ms or s, such as \"1.5ms\"",
        ),
        (
            "[[rule]]\nkind = \"port\"\nnode = 0\nport = 0",
            "4: rule 1: field \"port\": is 0, allowed are 1 to 255",
        ),
        (
            "[[rule]]\nkind = \"call\"\nverb = \"post_send\"\nerror = \"ENOMEM\"",
            "3: rule 1: field \"verb\": \"post_send\" is not one of ibv_get_device_list, ",
        ),
        (
            "[[rule]]\nkind = \"call\"\nverb = \"lab\"\nerror = \"EIO\"",
            "3: rule 1: field \"verb\": is of the test controls, which do not fail",
        ),
        (
            "[[rule]]\nkind = \"call\"\nverb = \"ibv_poll_cq\"",
            "1: rule 1: field \"error\": is missing",
        ),
        (
            "[[rule]]\nkind = \"call\"\nverb = \"ibv_poll_cq\"\nerror = \"ENOMEN\"",
            "4: rule 1: field \"error\": \"ENOMEN\" is not one of EPERM, ENOENT, ",
        ),
        (
            "[[rule]]\nkind = \"call\"\nverb = \"ibv_poll_cq\"\nerror = 0",
            "4: rule 1: field \"error\": is 0, allowed are 1 to 4095",
        ),
        (
            "[[rule]]\nkind = \"completion\"\nstatus = \"SUCCESS\"",
            "3: rule 1: field \"status\": must be an error",
        ),
        (
            "[[rule]]\nkind = \"completion\"\nstatus = \"OOPS\"",
            "3: rule 1: field \"status\": \"OOPS\" is not one of SUCCESS, LOC_LEN_ERR, ",
        ),
        (
            "[[rule]]\nkind = \"completion\"\nstatus = 5\nqpn = 16777216",
            "4: rule 1: field \"qpn\": is 16777216, allowed are 0 to 16777215",
        ),
        (
            "[[rule]]\nkind = \"limit\"\nlimit = \"bits\"\nvalue = 1",
            "3: rule 1: field \"limit\": \"bits\" is not one of files, objects, queue_pairs, cq_entries, bytes",
        ),
        (
            "[[rule]]\nkind = \"limit\"\nlimit = \"bytes\"\nvalue = 1.5",
            "4: rule 1: field \"value\": is a number with a fraction, not a whole number",
        ),
        (packet, "1: rule 1: field \"effect\": is missing"),
        (
            &format!("{packet}effect = \"delay\""),
            "1: rule 1: field \"by\": is missing",
        ),
        (
            &format!("{packet}effect = \"delay\"\nby = \"0s\""),
            "4: rule 1: field \"by\": is zero: nothing is late",
        ),
        (
            &format!("{packet}effect = \"drop\"\nby = \"1s\""),
            "4: rule 1: field \"by\": is for duplicate and delay, and this is drop",
        ),
        (
            &format!("{packet}effect = \"delay\"\nby = \"1s\"\nbehind = 1"),
            "5: rule 1: field \"behind\": is for reorder, and this is delay",
        ),
        (
            &format!("{packet}effect = \"reorder\"\nbehind = 0"),
            "4: rule 1: field \"behind\": is 0, allowed are 1 to 4294967295",
        ),
        (
            &format!("{packet}effect = \"drop\"\nclass = \"reads\""),
            "4: rule 1: field \"class\": \"reads\" is not one of request, response, send, write, atomic, acknowledge, read_response",
        ),
        (
            &format!("{packet}effect = \"drop\"\ncm = \"LAP\""),
            "4: rule 1: field \"cm\": \"LAP\" is not one of REQ, MRA, REJ, REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP",
        ),
        (
            &format!("{packet}effect = \"drop\"\nopcode = \"SEND\""),
            "4: rule 1: field \"opcode\": \"SEND\" is not one of RC_SEND_FIRST, ",
        ),
        (
            &format!("{packet}effect = \"drop\"\nopcode = 256"),
            "4: rule 1: field \"opcode\": is 256, allowed are 0 to 255",
        ),
        (
            &format!("{packet}effect = \"drop\"\npsn = 0x1000000"),
            "4: rule 1: field \"psn\": is 0x1000000, allowed are 0 to 16777215",
        ),
        (
            &format!("{packet}effect = \"drop\"\nnth = 0"),
            "4: rule 1: field \"nth\": is 0, allowed are 1 to ",
        ),
        (
            &format!("{packet}effect = \"drop\"\nnth = 1\nfirst = 2"),
            "5: rule 1: field \"first\": cannot be combined with nth",
        ),
        (
            &format!("{packet}effect = \"drop\"\nthese = 3"),
            "4: rule 1: field \"these\": is not a list of whole numbers",
        ),
        (
            &format!("{packet}effect = \"drop\"\nthese = [\n1,\n0]"),
            "6: rule 1: field \"these\": is 0, allowed are 1 to ",
        ),
        (
            &format!("{packet}effect = \"drop\"\nper_million = 1000001"),
            "4: rule 1: field \"per_million\": is 1000001, allowed are 0 to 1000000",
        ),
    ] {
        let error = parse(text).expect_err(text);
        let expected = format!("plan.toml:{said}");
        assert!(
            error.starts_with(&expected),
            "\n{text}\nsays     {error}\nexpected {expected}"
        );
    }
    let missing = Plan::read("no/such/file".as_ref()).unwrap_err();
    assert!(
        missing
            .to_string()
            .starts_with("no/such/file: No such file")
    );
}

/// The same cases in each run, unless another seed is given.
fn property_config() -> Config {
    let given = Config::default();
    Config {
        rng_seed: match given.rng_seed {
            RngSeed::Random => RngSeed::Fixed(0),
            fixed => fixed,
        },
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..given
    }
}

proptest! {
    #![proptest_config(property_config())]

    /// What is written is read back, and no other plan has that text.
    #[test]
    fn plan_and_file_are_the_same(rules in prop::collection::vec(strategy::fault(u32::MAX), 0..6)) {
        let plan = Plan::new(rules).unwrap();
        let text = plan.to_string();
        prop_assert_eq!(parse(&text), Ok(plan.clone()), "{}", text);
        let all = plan.only(&plan.parts());
        let says_something = |fault: &&Fault| {
            !matches!(fault.when(), Some(When::These(ordinals)) if ordinals.is_empty())
        };
        let expected: Vec<_> = plan.rules().iter().filter(says_something).collect();
        prop_assert_eq!(all.rules().iter().collect::<Vec<_>>(), expected);
        for index in 0..plan.rules().len() {
            let mut fewer = plan.rules().to_vec();
            fewer.remove(index);
            let fewer = Plan::new(fewer).unwrap();
            prop_assert_ne!(fewer.digest(), plan.digest());
        }
    }

    /// No text makes reading panic, and what is wrong has a line of the file.
    #[test]
    fn reading_never_panics(
        rules in prop::collection::vec(strategy::fault(u32::MAX), 1..3),
        (at, count) in (any::<prop::sample::Index>(), 0..4_usize),
        with in "[a-z0-9\\[\\]={}\"'\n. -]{0,4}",
    ) {
        let mut text = Plan::new(rules).unwrap().to_string();
        let at = at.index(text.len());
        let end = (at + count).min(text.len());
        text.replace_range(at..end, &with);
        if let Err(error) = Plan::parse("plan.toml", &text) {
            let line = error.line.unwrap();
            prop_assert!((1..=text.lines().count() + 1).contains(&line), "{}", error);
        }
    }

    /// A run under a plan with rates and a run under its script have the same trace.
    #[test]
    fn scripted_plan_does_exactly_the_same(seed: u64, inline: bool) {
        let mode = if inline { Mode::Inline } else { Mode::Stepped };
        let plan = harsh();
        let (trace, script) = run(&plan, mode, seed);
        let (again, script_again) = run(&script, mode, seed ^ 1);
        prop_assert_eq!(trace, again);
        prop_assert_eq!(&script_again, &script);
        prop_assert_eq!(parse(&script.to_string()), Ok(script));
    }
}

/// The standard plan and more of each kind.
fn harsh() -> Plan {
    let mut rules = Plan::standard().rules().to_vec();
    rules.extend([
        Fault::link_down(0)
            .down_at(Duration::from_micros(10))
            .up_at(Duration::from_micros(30)),
        Fault::fail(Verb::PollCq, ErrorKind::Interrupted).per_million(100_000),
        Fault::complete(WcStatus::GeneralErr).per_million(30_000),
        Fault::limit(Limit::Bytes, 5000),
    ]);
    Plan::new(rules).unwrap()
}

/// Two connected QPs and their memory.
struct Pair<'v> {
    verbs: &'v dyn Verbs,
    qps: [Qp; 2],
    cqs: [verbs_api::Cq; 2],
    mrs: [verbs_api::Mr; 2],
}

impl<'v> Pair<'v> {
    fn new(verbs: &'v dyn Verbs) -> Self {
        let ends = ["sim0", "sim1"].map(|name| {
            let context = verbs.open_device(name).unwrap();
            let pd = verbs.alloc_pd(context).unwrap();
            let cq = verbs.create_cq(context, &CqInit::new(64)).unwrap();
            let access = verbs_api::Access::ALL_RDMA;
            let mr = verbs.alloc_mr(pd, 4096, access).unwrap();
            let cap = QpCap {
                max_send_wr: 32,
                max_recv_wr: 32,
                ..QpCap::default()
            };
            let init = QpInit::new(QpType::Rc, cq, cq).cap(cap);
            let qp = verbs.create_qp(pd, &init).unwrap();
            // One more than there is memory for, if that is limited.
            let _ = verbs.alloc_mr_as(pd, &MrInit::new(2000, access));
            (qp, cq, mr)
        });
        let qps = ends.map(|(qp, ..)| qp);
        connect::by_attributes(verbs, qps[0], qps[1], &RcParams::default()).unwrap();
        Self {
            verbs,
            qps,
            cqs: ends.map(|(_, cq, _)| cq),
            mrs: ends.map(|(.., mr)| mr),
        }
    }

    /// Sends messages, reads and writes; the completions of both ends, as far as polling does not
    /// fail.
    fn run(&self) -> Vec<Wc> {
        let [near, far] = self.mrs.map(|mr| self.verbs.query_mr(mr).unwrap());
        for number in 0..8 {
            let into = [far.sge(2048 + 64 * number, 64)];
            let _ = self
                .verbs
                .post_recv(self.qps[1], &[RecvWr::new(number, &into)]);
        }
        for number in 0..8 {
            let list = [near.sge(64 * number, 64)];
            for wr in [
                SendWr::send(number, &list),
                SendWr::rdma_write(number, &list, far.remote(64 * number)),
                SendWr::rdma_read(number, &list, far.remote(64 * number)),
            ] {
                let _ = self.verbs.post_send(self.qps[0], &[wr]);
            }
        }
        self.verbs.lab().unwrap().settle().unwrap();
        let mut all = Vec::new();
        for cq in self.cqs {
            for _ in 0..40 {
                let mut some = [Wc::default(); 4];
                let count = self.verbs.poll_cq(cq, &mut some).unwrap_or(0);
                all.extend_from_slice(&some[..count]);
            }
        }
        all
    }
}

/// Runs a program under a plan; the trace, and the plan that would do exactly the same.
fn run(plan: &Plan, mode: Mode, seed: u64) -> (String, Plan) {
    let sim = Sim::new(SimConfig::new().mode(mode).seed(seed).trace(true));
    let in_force = plan.inject(sim.lab().unwrap()).unwrap();
    Pair::new(&sim).run();
    let lines = sim.lab().unwrap().trace();
    let trace = lines.into_iter().map(|record| format!("{record}\n"));
    (trace.collect(), in_force.scripted())
}

/// What the standard plan promises: it fires, and each message gets through.
#[test]
fn connections_survive_the_standard_plan() {
    let mut fired = vec![0; Plan::standard().rules().len()];
    for seed in 0..500 {
        let sim = Sim::new(SimConfig::new().seed(seed));
        let in_force = Plan::standard().inject(sim.lab().unwrap()).unwrap();
        let done = Pair::new(&sim).run();
        assert_eq!(done.len(), 32, "seed {seed}");
        let failed = done.iter().find(|wc| wc.status != WcStatus::Success);
        assert_eq!(failed, None, "seed {seed}");
        for part in in_force.fired() {
            fired[part.rule] += 1;
        }
    }
    assert!(fired.iter().all(|count| *count > 20), "{fired:?}");
}

/// A failure under the standard plan, made small: of all firings that were, those it needs.
#[test]
fn scripted_plan_can_be_made_smaller() {
    let naks = |plan: &Plan| {
        let (trace, _) = run(plan, Mode::Stepped, 0);
        trace.contains("NAK_PSN_SEQUENCE")
    };
    let (_, script) = (0..)
        .map(|seed| run(&Plan::standard(), Mode::Stepped, seed))
        .find(|(trace, script)| trace.contains("NAK_PSN_SEQUENCE") && script.parts().len() > 3)
        .unwrap();
    let mut parts = script.parts();
    while let Some(index) = (0..parts.len()).find(|index| {
        let mut fewer: Vec<Part> = parts.clone();
        fewer.remove(*index);
        naks(&script.only(&fewer))
    }) {
        parts.remove(index);
    }
    assert_eq!(parts.len(), 1, "one gap is enough");
    let small = script.only(&parts);
    assert!(naks(&small));
    assert_eq!(small.rules().len(), 1);
}

/// A digest is part of a replay: it must stay the same in all versions.
#[test]
fn digest_never_changes() {
    assert_eq!(Plan::default().digest(), 0x4fd0_bfc1);
    assert_eq!(Plan::standard().digest(), 0xb5cc_ab1b);
}

/// A plan that cannot be in force as a whole is not in force at all, and goes when it is dropped.
#[test]
fn plan_is_in_force_as_a_whole_or_not_at_all() {
    let sim = Sim::new(SimConfig::new());
    let lab = sim.lab().unwrap();
    let fail = |node| Fault::fail(Verb::OpenDevice, ErrorKind::Io).node(node);
    let error = Plan::new(vec![fail(0), fail(7)])
        .unwrap()
        .inject(lab)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "lab: EINVAL: node is 7, allowed are 0 to 1"
    );
    sim.open_device("sim0").unwrap();
    let in_force = Plan::new(vec![fail(0)]).unwrap().inject(lab).unwrap();
    assert_eq!(sim.open_device("sim0").unwrap_err().kind(), ErrorKind::Io);
    sim.open_device("sim1").unwrap();
    let first = Part {
        rule: 0,
        ordinal: Some(1),
    };
    assert_eq!(in_force.fired(), [first]);
    drop(in_force);
    sim.open_device("sim0").unwrap();
}

/// Rules never fire on operations that are not verbs, nor on unobserved calls.
#[test]
fn rules_for_calls_fire_on_verbs_that_are_observed() {
    let sim = Sim::new(SimConfig::new().trace(true));
    let lab = sim.lab().unwrap();
    let unobserved = lab.unobserved();
    let fail = |verb| Fault::fail(verb, ErrorKind::Io);
    let verbs = [Verb::QueryDevice, Verb::AllocPd];
    let plan = Plan::new(verbs.map(fail).to_vec()).unwrap();
    let in_force = plan.inject(lab).unwrap();
    let context = unobserved.open_device("sim0").unwrap();
    sim.capabilities(context).unwrap();
    sim.behavior(context).unwrap();
    unobserved.query_device(context).unwrap();
    unobserved.alloc_pd(context).unwrap();
    assert_eq!(in_force.fired(), []);
    assert_eq!(lab.trace(), []);
    assert_eq!(sim.alloc_pd(context).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(sim.query_device(context).unwrap_err().kind(), ErrorKind::Io);
    let rules: Vec<_> = in_force.fired().iter().map(|part| part.rule).collect();
    assert_eq!(rules, [1, 0]);
    assert_eq!(lab.live(context).unwrap().pds, 1);
    // An unobserved view of an unobserved view is the same.
    let same = unobserved.lab().unwrap().unobserved();
    same.query_device(context).unwrap();
}

/// CHAN-09, CHAN-10: a rule makes resources scarce until it is removed.
#[test]
fn limits_make_resources_scarce() {
    let sim = Sim::new(SimConfig::new());
    let lab = sim.lab().unwrap();
    let context = sim.open_device("sim0").unwrap();
    let pd = sim.alloc_pd(context).unwrap();
    let access = verbs_api::Access::LOCAL_WRITE;
    let text = "
        [[rule]]
        kind = \"limit\"
        limit = \"bytes\"
        value = 100
        [[rule]]
        kind = \"limit\"
        limit = \"files\"
        value = 1
        node = 0
    ";
    let in_force = parse(text).unwrap().inject(lab).unwrap();
    let mr = sim.alloc_mr(pd, 60, access).unwrap();
    sim.alloc_null_mr(pd).unwrap();
    let error = sim.alloc_mr(pd, 41, access).unwrap_err();
    assert_eq!(
        error.to_string(),
        "alloc_mr: ENOMEM: the limit of 100 registered bytes is reached"
    );
    let all = sim.alloc_mr(pd, 40, access).unwrap();
    sim.dereg_mr(mr).unwrap();
    sim.alloc_mr(pd, 60, access).unwrap();
    let error = sim.create_comp_channel(context).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooManyFiles);
    let rules: Vec<_> = in_force.fired().iter().map(|part| part.rule).collect();
    assert_eq!(rules, [0, 1]);
    drop(in_force);
    sim.create_comp_channel(context).unwrap();
    lab.set_limit(context, Limit::Bytes, Some(100)).unwrap();
    let longer = verbs_api::MrChange {
        length: Some(41),
        ..verbs_api::MrChange::default()
    };
    let error = sim.rereg_mr(all, &longer).unwrap_err();
    assert_eq!(error.error.kind(), ErrorKind::NoMemory);
    sim.dereg_mr(all).unwrap();
    sim.alloc_mr(pd, 40, access).unwrap();
}
