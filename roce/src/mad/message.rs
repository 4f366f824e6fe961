//! The messages: their fields and where they are.

use super::field::{Field, Place, fields, place};
use super::{MAD, MODIFIER, PrivateData};

fields! {
    /// REQ: asks for a connection.
    pub struct Req {
        /// The connection, as the sender calls it.
        local_comm_id: u32 = 0;
        /// Enhanced connection establishment.
        ece: Ece = 5[0..24];
        /// Who is asked: with rdma_cm a port ([`service_id`](super::service_id)).
        service_id: u64 = 8;
        /// The node GUID of the sender.
        ca_guid: u64 = 16;
        /// The Q_Key of the sender's QP. Without meaning for connected QPs.
        qkey: u32 = 28;
        /// The number of the sender's QP, 24 bits.
        qpn: u32 = 32[0..24];
        /// Reads and atomics that the sender takes at a time.
        responder_resources: u8 = 35;
        /// Reads and atomics that the sender makes at a time.
        initiator_depth: u8 = 39;
        /// How long the sender waits for an answer: 4.096 µs times 2 to this, 5 bits.
        remote_cm_response_timeout: u8 = 43[0..5];
        /// Transport service type, 2 bits: 0 RC, 1 UC, 3 the one that `extended_transport` names.
        transport: u8 = 43[5..7];
        /// The sender has end-to-end flow control.
        flow_control: bool = 43[7..8];
        /// The PSN that the sender expects first, 24 bits: the receiver's requests begin with it.
        starting_psn: u32 = 44[0..24];
        /// How long the sender takes at most to answer, as the other time-out, 5 bits.
        local_cm_response_timeout: u8 = 47[0..5];
        /// Retries of a request on the QP that is not acknowledged, 3 bits.
        retry_count: u8 = 47[5..8];
        /// P_Key.
        pkey: u16 = 48;
        /// Code of the path MTU, 4 bits: 1 is 256 bytes, 5 is 4096.
        path_mtu: u8 = 50[0..4];
        /// Retries on the QP for a peer without a receive, 3 bits; 7 is forever.
        rnr_retry_count: u8 = 50[5..8];
        /// How often messages are sent again, 4 bits.
        max_cm_retries: u8 = 51[0..4];
        /// The sender's QP has an SRQ.
        srq: bool = 51[4..5];
        /// Extended transport type, 3 bits: 1 is XRC.
        extended_transport: u8 = 51[5..8];
        /// The path.
        primary: Path = 52;
        /// Another path, for path migration; all zeros if there is none.
        alternate: Path = 96;
        /// Private data. With rdma_cm they begin with an [`IpCm`](super::IpCm).
        private_data: PrivateData<92> = 140;
    }

    /// A path, as the sender of a [`Req`] sees it.
    pub struct Path {
        /// The sender's LID; 0xffff on Ethernet.
        local_lid: u16 = 0;
        /// The receiver's LID; 0xffff on Ethernet.
        remote_lid: u16 = 2;
        /// The sender's GID.
        local_gid: [u8; 16] = 4;
        /// The receiver's GID.
        remote_gid: [u8; 16] = 20;
        /// Flow label, 20 bits.
        flow_label: u32 = 36[0..20];
        /// Code of the rate of packets, 6 bits.
        packet_rate: u8 = 39[2..8];
        /// Traffic class.
        traffic_class: u8 = 40;
        /// Hop limit.
        hop_limit: u8 = 41;
        /// Service level, 4 bits.
        sl: u8 = 42[0..4];
        /// The path does not leave the subnet.
        subnet_local: bool = 42[4..5];
        /// Code of the time-out of the QP, 5 bits.
        local_ack_timeout: u8 = 43[0..5];
    }

    /// MRA: a message was received, and its answer takes longer.
    pub struct Mra {
        /// The connection, as the sender calls it.
        local_comm_id: u32 = 0;
        /// The connection, as the receiver calls it.
        remote_comm_id: u32 = 4;
        /// Which message; `Other(2)` is LAP.
        mraed: Rejected = 8[0..2];
        /// How much longer: 4.096 µs times 2 to this, 5 bits.
        service_timeout: u8 = 9[0..5];
        /// Private data.
        private_data: PrivateData<222> = 10;
    }

    /// REJ: refuses.
    pub struct Rej {
        /// The connection, as the sender calls it; 0 if it never had one.
        local_comm_id: u32 = 0;
        /// The connection, as the receiver calls it.
        remote_comm_id: u32 = 4;
        /// Which message; `Other(2)` is not a message.
        rejected: Rejected = 8[0..2];
        /// Bytes of `additional_info` that mean something, 7 bits. It may say more than there are.
        additional_info_length: u8 = 9[0..7];
        /// Why: 8 means that no id listens, 28 that the consumer refuses.
        reason: u16 = 10;
        /// More about some reasons: what would be accepted.
        additional_info: PrivateData<72> = 12;
        /// Private data.
        private_data: PrivateData<148> = 84;
    }

    /// REP: accepts a connection.
    pub struct Rep {
        /// The connection, as the sender calls it.
        local_comm_id: u32 = 0;
        /// The connection, as the receiver calls it.
        remote_comm_id: u32 = 4;
        /// The Q_Key of the sender's QP. Without meaning for connected QPs.
        qkey: u32 = 8;
        /// The number of the sender's QP, 24 bits.
        qpn: u32 = 12[0..24];
        /// Enhanced connection establishment.
        ece: Ece = 15[0..8] | 19[0..8] | 23[0..8];
        /// The EE context, 24 bits. For XRC it is the number of the target QP.
        eecn: u32 = 16[0..24];
        /// The PSN that the sender expects first, 24 bits: the receiver's requests begin with it.
        starting_psn: u32 = 20[0..24];
        /// Reads and atomics that the sender takes at a time.
        responder_resources: u8 = 24;
        /// Reads and atomics that the sender makes at a time.
        initiator_depth: u8 = 25;
        /// How long the sender's device takes at most to acknowledge: 4.096 µs times 2 to this, 5
        /// bits.
        target_ack_delay: u8 = 26[0..5];
        /// The state of the alternate path, 2 bits: 0 accepted, 1 not supported, 2 rejected.
        failover_accepted: u8 = 26[5..7];
        /// The sender has end-to-end flow control.
        flow_control: bool = 26[7..8];
        /// Retries on the QP for a peer without a receive, 3 bits; 7 is forever.
        rnr_retry_count: u8 = 27[0..3];
        /// The sender's QP has an SRQ.
        srq: bool = 27[3..4];
        /// The node GUID of the sender.
        ca_guid: u64 = 28;
        /// Private data.
        private_data: PrivateData<196> = 36;
    }

    /// RTU: the sender is ready to use a connection that was accepted.
    pub struct Rtu {
        /// The connection, as the sender calls it.
        local_comm_id: u32 = 0;
        /// The connection, as the receiver calls it.
        remote_comm_id: u32 = 4;
        /// Private data.
        private_data: PrivateData<224> = 8;
    }

    /// DREQ: ends a connection.
    pub struct Dreq {
        /// The connection, as the sender calls it.
        local_comm_id: u32 = 0;
        /// The connection, as the receiver calls it.
        remote_comm_id: u32 = 4;
        /// The number of the receiver's QP, 24 bits.
        remote_qpn: u32 = 8[0..24];
        /// Private data.
        private_data: PrivateData<220> = 12;
    }

    /// DREP: answers a [`Dreq`].
    pub struct Drep {
        /// The connection, as the sender calls it.
        local_comm_id: u32 = 0;
        /// The connection, as the receiver calls it.
        remote_comm_id: u32 = 4;
        /// Private data.
        private_data: PrivateData<224> = 8;
    }

    /// SIDR_REQ: asks for a QP of datagrams.
    pub struct SidrReq {
        /// The request, as the sender calls it; the answer repeats it.
        request_id: u32 = 0;
        /// P_Key.
        pkey: u16 = 4;
        /// Who is asked: with rdma_cm a port ([`service_id`](super::service_id)).
        service_id: u64 = 8;
        /// Private data. With rdma_cm they begin with an [`IpCm`](super::IpCm).
        private_data: PrivateData<216> = 16;
    }

    /// SIDR_REP: names a QP of datagrams, or gives the reason why there is none.
    pub struct SidrRep {
        /// The request, as the receiver calls it.
        request_id: u32 = 0;
        /// 0: here it is. 1: the service id is not supported. 2: the service refuses. 3: no QP. 4:
        /// ask elsewhere. 5: the version is not supported.
        status: u8 = 4;
        /// Bytes of `additional_info` that mean something. It may say more than there are.
        additional_info_length: u8 = 5;
        /// Enhanced connection establishment.
        ece: Ece = 6[0..16] | 11[0..8];
        /// The number of the QP, 24 bits.
        qpn: u32 = 8[0..24];
        /// The service id that was asked for.
        service_id: u64 = 12;
        /// The Q_Key of the QP.
        qkey: u32 = 20;
        /// More about some statuses.
        additional_info: PrivateData<72> = 24;
        /// Private data.
        private_data: PrivateData<136> = 96;
    }
}

/// Which message a [`Rej`] refuses, or an [`Mra`] confirms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rejected {
    /// REQ.
    #[default]
    Req,
    /// REP.
    Rep,
    /// Another, 2 or 3; its bits are written as they are.
    Other(u8),
}

/// Enhanced connection establishment: what vendors agree on besides. All zeros if there is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ece {
    /// Whose options these are, 24 bits.
    pub vendor_id: u32,
    /// The options: the attribute modifier in the header of the MAD.
    pub options: u32,
}

impl Field for Rejected {
    fn get(bytes: &[u8; MAD], at: &[Place]) -> Self {
        match u8::get(bytes, at) {
            0 => Self::Req,
            1 => Self::Rep,
            other => Self::Other(other),
        }
    }

    fn put(&self, bytes: &mut [u8; MAD], at: &[Place]) {
        let number = match self {
            Self::Req => 0,
            Self::Rep => 1,
            Self::Other(other) => *other,
        };
        number.put(bytes, at);
    }
}

impl Field for Ece {
    fn get(bytes: &[u8; MAD], at: &[Place]) -> Self {
        Self {
            vendor_id: Field::get(bytes, at),
            options: Field::get(bytes, &[MODIFIER]),
        }
    }

    fn put(&self, bytes: &mut [u8; MAD], at: &[Place]) {
        self.vendor_id.put(bytes, at);
        self.options.put(bytes, &[MODIFIER]);
    }
}
