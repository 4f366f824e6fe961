//! Reasons why a packet is lost on its way, or refused where it arrives.

use core::fmt;

/// What is known of all packets that are dropped for a reason.
#[derive(Clone, Copy)]
pub(crate) enum Nature {
    /// The program may have caused it. Other packets are lost, or dropped as a consequence.
    OfProgram,
    /// Resending cannot mend the cause.
    Lasting,
}

macro_rules! drop_reasons {
    ($( $reason:ident = $text:literal $(, $is:ident)*; )*) => {
        /// The reason why a packet is lost on its way, or refused where it arrives. It displays as
        /// in a trace or a finding.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum DropReason {
            $(
                #[doc = concat!("\"", $text, "\".")]
                $reason,
            )*
        }

        impl DropReason {
            #[cfg(test)]
            const ALL: &[Self] = &[$( Self::$reason, )*];

            /// Whether the row of the reason names it.
            pub(crate) const fn is(self, what: Nature) -> bool {
                match (self, what) {
                    $( $( (Self::$reason, Nature::$is) => true, )* )*
                    _ => false,
                }
            }

            /// The text in a trace or a finding.
            pub const fn text(self) -> &'static str {
                match self { $( Self::$reason => $text, )* }
            }
        }
    };
}

// A diagnosis lists packets that differ only in the reason in this order, which is that of the
// texts.
drop_reasons! {
    Duplicate = "a duplicate";
    UnknownRead = "a duplicate of no read that is kept";
    DuplicateForSrq = "a duplicate, for an SRQ that was destroyed";
    FaultRule = "a fault rule";
    HeldBack = "a fault rule holds it back";
    NotTheGroups = "a group has another QP number";
    WrongIcrc = "a wrong ICRC";
    LateAnswer = "an answer to work that the program has given up";
    OtherFabric = "from another fabric";
    NotRoce = "it is not a RoCEv2 packet";
    NotForGsi = "it is not a message for QP 1";
    OtherPeer = "it is not from the peer", OfProgram, Lasting;
    OtherVersion = "it is of another version of RoCE: the GID indices of the two ends have other types", OfProgram, Lasting;
    TooLong = "it is too long for an IP packet";
    MemoryGone = "memory that it uses was deregistered on the way";
    NotForDevice = "no packet for this device";
    UnknownSource = "no port has its source address";
    UnownedGid = "no port has this GID";
    NoMember = "no qp is attached to the group";
    NoReceive = "no receive is posted", OfProgram;
    NoQp = "no such qp", OfProgram, Lasting;
    OtherProcess = "no such qp: it is of another process, which a private fabric does not reach", OfProgram, Lasting;
    NotRoceDatagram = "not a RoCEv2 packet";
    MixedAddresses = "one address is of IPv4, the other of IPv6";
    Pkey = "the P_Key does not match", OfProgram, Lasting;
    Qkey = "the Q_Key does not match", OfProgram;
    Checksum = "the checksum is wrong";
    DeadDevice = "the device is dead";
    LinkDown = "the link is down";
    BadMessage = "the message cannot be taken", OfProgram;
    PathMtu = "the message was cut for another path MTU", OfProgram;
    UnknownOperation = "the operation is not understood";
    Malformed = "the packet is malformed";
    PortDown = "the port is down";
    NotReady = "the qp is not ready to receive", OfProgram;
    Kept = "the qp is not ready to receive: it is kept", OfProgram;
    OtherTransport = "the qp is of another transport", OfProgram, Lasting;
    OtherPort = "the qp is on another port", OfProgram, Lasting;
    FirstPsn = "the qp waits for another PSN first (rq_psn)", OfProgram;
    DestroyedQp = "the qp was destroyed";
    NeverReady = "the qp was destroyed, and had not been ready to receive";
    ShortReceive = "the receive is too small", OfProgram;
    PsnAhead = "the sequence number is ahead";
    PsnNeverExpected = "the sequence number was never expected";
    FailedSrq = "the srq has failed";
    UnknownTransport = "the transport is not understood";
    TooManyWaiting = "too many requests wait behind a read";
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_texts() {
        let texts: Vec<_> = DropReason::ALL.iter().map(|reason| reason.text()).collect();
        assert!(texts.is_sorted(), "{texts:?}");
    }
}
