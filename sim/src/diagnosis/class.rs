//! The classes of mistakes: stable names, the rule that each breaks, and the remedy.

use core::fmt;
use core::str::FromStr;

/// How certain it is that a finding is a mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Certainty {
    /// It may be correct: a warning.
    Hint,
    /// It is wrong: an error.
    Certain,
}

macro_rules! classes {
    ($( $class:ident = $name:literal, $certainty:ident, $rule:literal, $remedy:literal; )*) => {
        /// A kind of mistake.
        ///
        /// ```
        /// use verbs_sim::Class;
        ///
        /// assert_eq!("VS-ARM-01".parse(), Ok(Class::LostWakeup));
        /// assert_eq!(Class::LostWakeup.rule(), "CQ-ARM-30");
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Class {
            $(
                #[doc = concat!("`", $name, "`. What to do: ", $remedy, ".")]
                $class,
            )*
        }

        impl Class {
            /// All classes.
            pub const ALL: &[Self] = &[$( Self::$class, )*];

            /// Its name, such as `VS-ARM-01`, which never changes.
            pub fn name(self) -> &'static str {
                match self { $( Self::$class => $name, )* }
            }

            /// How certain it is that a finding of this class is a mistake.
            pub fn certainty(self) -> Certainty {
                match self { $( Self::$class => Certainty::$certainty, )* }
            }

            /// The rule that it breaks, as `verbsim explain` knows it.
            pub fn rule(self) -> &'static str {
                match self { $( Self::$class => $rule, )* }
            }

            /// The remedy.
            pub fn remedy(self) -> &'static str {
                match self { $( Self::$class => $remedy, )* }
            }
        }
    };
}

classes! {
    LostWakeup = "VS-ARM-01", Certain, "CQ-ARM-30",
        "poll once more after ibv_req_notify_cq, and only then wait";
    DrainIncomplete = "VS-ARM-02", Certain, "CQ-ARM-03",
        "poll until ibv_poll_cq returns less than was asked for, arm, and poll once more";
    NotArmed = "VS-ARM-03", Certain, "CQ-ARM-17",
        "call ibv_req_notify_cq before each wait: a request makes one event";
    SolicitedOnly = "VS-ARM-04", Hint, "CQ-ARM-08",
        "arm for the next completion, or let the sender set IBV_SEND_SOLICITED";
    ArmedWithoutChannel = "VS-ARM-05", Certain, "CQ-ARM-48",
        "create the CQ with a completion channel, or do not arm it";
    SolicitedWait = "VS-ARM-06", Certain, "CQ-ARM-08",
        "arm for the next completion, or let the sender set IBV_SEND_SOLICITED";
    NotArmedAgain = "VS-ARM-07", Hint, "CQ-ARM-17",
        "call ibv_req_notify_cq after each event, and then poll: a request makes one event";
    Unacknowledged = "VS-EVT-01", Certain, "CHAN-34",
        "acknowledge each event that was read before its object is destroyed";
    OverAcknowledged = "VS-EVT-02", Certain, "CHAN-37",
        "acknowledge as many events as were read, no more";
    OtherPolled = "VS-EVT-03", Certain, "CQ-ARM-04",
        "poll the CQ that ibv_get_cq_event gives: a channel may serve several";
    UnreadEvents = "VS-EVT-04", Hint, "CHAN-32",
        "read events until there is none: an edge-triggered descriptor reports only the first";
    UnreadAsync = "VS-EVT-05", Hint, "ASYNC-03",
        "read asynchronous events with ibv_get_async_event, and acknowledge them";
    NotAcknowledged = "VS-EVT-06", Hint, "CHAN-34",
        "acknowledge each event that was read, at the latest before its object is destroyed";
    Overrun = "VS-CQ-01", Certain, "CQ-OVR-01",
        "make the CQ as large as all the work that may complete in it, or poll before posting more";
    SmallCq = "VS-CQ-02", Hint, "SQ-30",
        "make the CQ as large as all the work that may complete in it";
    NeverPolled = "VS-CQ-03", Certain, "CQ-POLL-10",
        "poll what was asked for: signaled sends and receives complete in the CQ, and keep their slots until then";
    Unpolled = "VS-CQ-04", Hint, "CQ-POLL-10",
        "poll the CQ until it is empty";
    Resized = "VS-CQ-05", Certain, "CQ-RESIZE-06",
        "poll first, or keep at least as many entries as there are completions";
    Iterated = "VS-CQ-06", Certain, "CQ-CREATE-15",
        "after ENOENT of ibv_start_poll no other call of the iteration follows; else ibv_end_poll ends it";
    Outlived = "VS-CQ-07", Hint, "CQ-DESTROY-08",
        "poll the CQ until it is empty before a queue pair is destroyed, or used again after its RESET: some devices leave its completions there";
    SendQueueFull = "VS-SQ-01", Certain, "SQ-03",
        "signal at least one send in each queue's length, and poll its completion before posting more";
    Inline = "VS-SQ-02", Certain, "SQ-09",
        "ask for the room when the QP is created (max_inline_data), and send what is longer without IBV_SEND_INLINE";
    LongList = "VS-SQ-03", Certain, "SQ-06",
        "give a work request no more scatter/gather entries than max_send_sge or max_recv_sge of its queue pair";
    QueueFull = "VS-SQ-04", Hint, "SQ-03",
        "poll completions before posting more";
    Batched = "VS-SQ-05", Certain, "SQ-26",
        "build each batch in one thread, from ibv_wr_start to ibv_wr_complete or ibv_wr_abort, and post nothing else there in between";
    Unfenced = "VS-SQ-06", Certain, "SQ-13",
        "set IBV_SEND_FENCE, or poll the completion of the read first, as inline data needs";
    CutOff = "VS-SQ-07", Hint, "QP-FLUSH-06",
        "poll the completion of the last send before disconnecting, destroying the QP or moving it to RESET";
    ReceiveQueueFull = "VS-RQ-01", Hint, "RQ-02",
        "poll the completions of receives before posting more";
    ShortReceive = "VS-RQ-02", Certain, "RQ-05",
        "post receives as large as the largest message, and of UD 40 bytes larger, for the GRH";
    NotReceived = "VS-RNR-01", Certain, "RNR-03",
        "post receives before the peer may send, and ask for more tries (rnr_retry 7 never gives up)";
    LateReceive = "VS-RNR-02", Hint, "RNR-01",
        "post receives before the peer may send: a device sends again, but slowly, and messages of UC and UD are lost";
    Rights = "VS-MR-01", Certain, "MR-01",
        "IBV_ACCESS_REMOTE_WRITE and IBV_ACCESS_REMOTE_ATOMIC need IBV_ACCESS_LOCAL_WRITE too";
    Deregistered = "VS-MR-02", Certain, "MR-05",
        "deregister a region when all work that uses it has completed, the peer's too";
    RemoteAccess = "VS-KEY-01", Certain, "RDMA-05",
        "give the peer the address and the rkey of a region that lasts, and the rights that its work needs";
    LocalAccess = "VS-KEY-02", Certain, "SQ-22",
        "name registered memory, with the lkey of its region, of the QP's protection domain";
    Atomic = "VS-ATOM-01", Certain, "ATOM-04",
        "give an atomic a remote address that is a multiple of 8, and 8 bytes of local memory";
    UndefinedField = "VS-WC-01", Certain, "WC-01",
        "look at the status first: if it is not success, only wr_id, status, qp_num and vendor_err are valid";
    FieldNotAsked = "VS-WC-02", Certain, "CQ-CREATE-16",
        "name each field that is read in wc_flags of ibv_create_cq_ex: a real driver has no function for another";
    Transition = "VS-QP-01", Certain, "QP-STATE-03",
        "give the attributes that the transition requires, in range, and no others; a connected QP goes to RESET before it is connected again";
    WrongState = "VS-QP-02", Certain, "SQ-01",
        "bring the QP to RTS before sends are posted, and to INIT before receives are";
    NoAnswer = "VS-QP-03", Certain, "WC-30",
        "bring the peer's QP to RTR before sending, keep it until the last message, and check QP number, PSN and address";
    EndsDiffer = "VS-QP-04", Certain, "CM-32",
        "give both ends the same path MTU, to each the other's PSN, and no more reads than the other takes";
    AfterError = "VS-QP-05", Hint, "QP-FLUSH-03",
        "after the first failure stop posting: what follows is flushed, and the first status tells why";
    NotTaken = "VS-QP-06", Hint, "UD-07",
        "check QP number, Q_Key, P_Key, path MTU and the state of the QP at both ends";
    FailedWork = "VS-QP-07", Certain, "WC-21",
        "see what the status means, and check each completion's status before anything else in it";
    UnownedGid = "VS-QP-08", Hint, "AH-07",
        "ask the peer for its GID while its device is open, and check the GID index at both ends";
    Busy = "VS-OBJ-01", Certain, "LIFE-01",
        "destroy users before what they use: QP, SRQ, AH, MR, CQ, channel, PD, device";
    Destroyed = "VS-OBJ-02", Certain, "LIFE-05",
        "do not use an object after it was destroyed";
    NotDestroyed = "VS-OBJ-03", Hint, "DEV-03",
        "destroy what was created, and close what was opened";
    OtherParent = "VS-OBJ-04", Certain, "DEV-13",
        "objects that work together are of one context, and where memory is used of one protection domain";
    EndlessWait = "VS-WAIT-01", Hint, "CHAN-30",
        "do first what the finding says is missing, or limit the time of the wait";
    BusyPoll = "VS-WAIT-02", Hint, "CQ-POLL-10",
        "see that work is outstanding that completes in the CQ: a signaled send, or a receive that the peer sends to";
    AfterFork = "VS-FORK-01", Certain, "DEV-12",
        "open devices in the process that uses them: objects of RDMA do not survive fork";
    Concurrent = "VS-THREAD-01", Certain, "CQ-POLL-05",
        "use a single-threaded CQ, or an object of a thread domain, in one thread at a time: drivers take no lock for it";
    CmUnacknowledged = "VS-CM-01", Certain, "CM-56",
        "acknowledge each event of rdma_cm (rdma_ack_cm_event) before its id is destroyed";
    UnreadCm = "VS-CM-02", Hint, "CM-40",
        "read the events of rdma_cm for as long as an id exists: its peer may disconnect at any time";
    Refused = "VS-CALL-01", Hint, "SQ-02",
        "look at what the call returns";
    Injected = "VS-LAB-01", Hint, "WC-21",
        "nothing: a fault rule or a test control did it";
    Garbage = "VS-NET-01", Hint, "DEV-01",
        "find out who sends to the RoCE port";
    Changed = "VS-MEM-01", Certain, "SQ-17",
        "leave the bytes of a send as they are until its completion, or a later one of its queue, is polled";
    Unmapped = "VS-MEM-02", Certain, "MR-23",
        "keep memory mapped until its region is deregistered, or, if it is on-demand, while work uses it";
    DeregisteredEarly = "VS-MEM-03", Hint, "MR-06",
        "deregister a region when the completion of all work that names it has been polled";
    Overlaid = "VS-MEM-04", Hint, "SQ-17",
        "post the memory of a receive again when its completion has been polled";
}

/// There is no class with this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownClass(String);

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for UnknownClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no class of mistakes is called {}", self.0)
    }
}

impl core::error::Error for UnknownClass {}

impl FromStr for Class {
    type Err = UnknownClass;

    fn from_str(name: &str) -> Result<Self, UnknownClass> {
        let found = Self::ALL
            .iter()
            .find(|class| class.name().eq_ignore_ascii_case(name));
        found.copied().ok_or_else(|| UnknownClass(name.to_owned()))
    }
}
