//! The messages, field by field (IBA 12.6).

use super::field::{Field, PrivateData, bits, set_bits};

/// Declares messages. Behind each field are its byte, the bit there if it is not the first, and how many bits it has if
/// these are no whole bytes.
macro_rules! layout {
    ($(
        $(#[$meta:meta])*
        $name:ident {
            $( $(#[$field_meta:meta])* $field:ident: $type:ty = $byte:literal $(, $bit:literal $(, $width:literal)?)?; )*
        }
    )*) => { $(
        $(#[$meta])*
        ///
        /// The default is all zero.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $( $(#[$field_meta])* pub $field: $type, )*
        }

        impl Field for $name {
            fn get(bytes: &[u8], at: usize, _: usize) -> Self {
                Self {
                    $( $field: get!(bytes, at + $byte $(, $bit $(, $width)?)?), )*
                }
            }

            fn put(&self, bytes: &mut [u8], at: usize, _: usize) {
                $( put!(self.$field, bytes, at + $byte $(, $bit $(, $width)?)?); )*
            }
        }
    )* };
}

macro_rules! get {
    ($bytes:ident, $at:expr) => {
        Field::get($bytes, $at, 0)
    };
    ($bytes:ident, $at:expr, $bit:literal) => {
        Field::get($bytes, $at, $bit)
    };
    ($bytes:ident, $at:expr, $bit:literal, $width:literal) => {
        bits($bytes, $at, $bit, $width) as _
    };
}

macro_rules! put {
    ($field:expr, $bytes:ident, $at:expr) => {
        $field.put($bytes, $at, 0)
    };
    ($field:expr, $bytes:ident, $at:expr, $bit:literal) => {
        $field.put($bytes, $at, $bit)
    };
    ($field:expr, $bytes:ident, $at:expr, $bit:literal, $width:literal) => {
        set_bits($bytes, ($at, $bit), $width, $field.into())
    };
}

layout! {
    /// Asks for a connection.
    Req {
        /// What the sender calls the connection.
        local_comm_id: u32 = 0;
        /// The service that it wants ([`service_id`](super::service_id)).
        service_id: u64 = 8;
        /// GUID of the sender's device.
        ca_guid: u64 = 16;
        /// Q_Key of its queue pair.
        qkey: u32 = 28;
        /// Number of its queue pair, 24 bits.
        qpn: u32 = 32, 0, 24;
        /// Reads and atomics that it can serve at once.
        responder_resources: u8 = 35;
        /// Number of its EE context, 24 bits: 0.
        eecn: u32 = 36, 0, 24;
        /// Reads and atomics that it wants to have under way.
        initiator_depth: u8 = 39;
        /// Code of the time in which it expects an answer, 5 bits.
        remote_cm_response_timeout: u8 = 43, 0, 5;
        /// 0 RC, 1 UC, 3 one of `extended_transport`.
        transport: u8 = 43, 5, 2;
        /// Its device has flow control.
        flow_control: bool = 43, 7;
        /// The PSN that it expects first, 24 bits: that of the other side's first request.
        starting_psn: u32 = 44, 0, 24;
        /// Code of the time in which it answers, 5 bits.
        local_cm_response_timeout: u8 = 47, 0, 5;
        /// Retries of a request that is not acknowledged, 3 bits.
        retry_count: u8 = 47, 5, 3;
        /// P_Key of the connection.
        pkey: u16 = 48;
        /// Code of the path MTU, 4 bits.
        path_mtu: u8 = 50, 0, 4;
        /// Retries of a request that finds no receive, 3 bits.
        rnr_retry_count: u8 = 50, 5, 3;
        /// Retries of messages like this, 4 bits.
        max_cm_retries: u8 = 51, 0, 4;
        /// Its queue pair has an SRQ.
        srq: bool = 51, 4;
        /// If `transport` is 3: 1 XRC. 3 bits.
        extended_transport: u8 = 51, 5, 3;
        /// The path of its packets.
        primary: Path = 52;
        /// Another one: all zero if there is none.
        alternate: Path = 96;
        /// What programs add.
        private_data: PrivateData<92> = 140;
    }

    /// The path of a connection.
    Path {
        /// LID of the sender; 0xffff on RoCE.
        local_lid: u16 = 0;
        /// LID of the receiver; 0xffff on RoCE.
        remote_lid: u16 = 2;
        /// GID of the sender.
        local_gid: [u8; 16] = 4;
        /// GID of the receiver.
        remote_gid: [u8; 16] = 20;
        /// Flow label, 20 bits.
        flow_label: u32 = 36, 0, 20;
        /// Code of the rate, 6 bits.
        packet_rate: u8 = 39, 2, 6;
        /// Traffic class.
        traffic_class: u8 = 40;
        /// Hop limit.
        hop_limit: u8 = 41;
        /// Service level, 4 bits.
        sl: u8 = 42, 0, 4;
        /// Both ends are in one subnet.
        subnet_local: bool = 42, 4;
        /// Code of the time-out of the queue pairs, 5 bits.
        local_ack_timeout: u8 = 43, 0, 5;
    }

    /// Asks for more time to answer.
    Mra {
        /// What the sender calls the connection.
        local_comm_id: u32 = 0;
        /// What the receiver does.
        remote_comm_id: u32 = 4;
        /// What it has got: 0 REQ, 1 REP, 2 LAP. 2 bits.
        mraed: u8 = 8, 0, 2;
        /// Code of the time, 5 bits.
        service_timeout: u8 = 9, 0, 5;
        /// What programs add.
        private_data: PrivateData<222> = 10;
    }

    /// Refuses a connection, or gives it up.
    Rej {
        /// What the sender calls the connection; 0 if nothing.
        local_comm_id: u32 = 0;
        /// What the receiver does.
        remote_comm_id: u32 = 4;
        /// Which message it refuses.
        rejected: Rejected = 8;
        /// Bytes of `additional_info`, 7 bits.
        info_length: u8 = 9, 0, 7;
        /// Why (IBA 12.6.7.2).
        reason: u16 = 10;
        /// More about that.
        additional_info: PrivateData<72> = 12;
        /// What programs add.
        private_data: PrivateData<148> = 84;
    }

    /// Accepts a connection.
    Rep {
        /// What the sender calls the connection.
        local_comm_id: u32 = 0;
        /// What the receiver does.
        remote_comm_id: u32 = 4;
        /// Q_Key of the sender's queue pair.
        qkey: u32 = 8;
        /// Number of its queue pair, 24 bits.
        qpn: u32 = 12, 0, 24;
        /// Number of its EE context, 24 bits: 0.
        eecn: u32 = 16, 0, 24;
        /// The PSN that it expects first, 24 bits.
        starting_psn: u32 = 20, 0, 24;
        /// Reads and atomics that it can serve at once.
        responder_resources: u8 = 24;
        /// Reads and atomics that it wants to have under way.
        initiator_depth: u8 = 25;
        /// Code of the time until it acknowledges, 5 bits.
        target_ack_delay: u8 = 26, 0, 5;
        /// Of the alternate path: 0 accepted. 2 bits.
        failover_accepted: u8 = 26, 5, 2;
        /// Its device has flow control.
        flow_control: bool = 26, 7;
        /// Retries of a request that finds no receive, 3 bits.
        rnr_retry_count: u8 = 27, 0, 3;
        /// Its queue pair has an SRQ.
        srq: bool = 27, 3;
        /// GUID of its device.
        ca_guid: u64 = 28;
        /// What programs add.
        private_data: PrivateData<196> = 36;
    }

    /// Says that the sender is ready.
    Rtu {
        /// What the sender calls the connection.
        local_comm_id: u32 = 0;
        /// What the receiver does.
        remote_comm_id: u32 = 4;
        /// What programs add.
        private_data: PrivateData<224> = 8;
    }

    /// Ends a connection.
    Dreq {
        /// What the sender calls the connection.
        local_comm_id: u32 = 0;
        /// What the receiver does.
        remote_comm_id: u32 = 4;
        /// Number of the receiver's queue pair, 24 bits.
        remote_qpn: u32 = 8, 0, 24;
        /// What programs add.
        private_data: PrivateData<220> = 12;
    }

    /// Answers that.
    Drep {
        /// What the sender calls the connection.
        local_comm_id: u32 = 0;
        /// What the receiver does.
        remote_comm_id: u32 = 4;
        /// What programs add.
        private_data: PrivateData<224> = 8;
    }

    /// Asks for a queue pair of datagrams.
    SidrReq {
        /// What the sender calls the request.
        request_id: u32 = 0;
        /// P_Key.
        pkey: u16 = 4;
        /// The service that it wants.
        service_id: u64 = 8;
        /// What programs add.
        private_data: PrivateData<216> = 16;
    }

    /// Answers that.
    SidrRep {
        /// What the receiver calls the request.
        request_id: u32 = 0;
        /// 0 valid, 1 no such service, 2 refused by the service, 3 no queue pair, 4 elsewhere, 5 another version.
        status: u8 = 4;
        /// Bytes of `additional_info`.
        info_length: u8 = 5;
        /// Number of the queue pair, 24 bits.
        qpn: u32 = 8, 0, 24;
        /// The service.
        service_id: u64 = 12;
        /// Q_Key of the queue pair.
        qkey: u32 = 20;
        /// More about the status.
        additional_info: PrivateData<72> = 24;
        /// What programs add.
        private_data: PrivateData<136> = 96;
    }
}

/// Which message a [`Rej`] refuses, 2 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rejected {
    /// A REQ.
    #[default]
    Req,
    /// A REP.
    Rep,
    /// None: 2, or 3.
    Other(u8),
}

impl Field for Rejected {
    fn get(bytes: &[u8], byte: usize, bit: usize) -> Self {
        match bits(bytes, byte, bit, 2) as u8 {
            0 => Self::Req,
            1 => Self::Rep,
            other => Self::Other(other),
        }
    }

    fn put(&self, bytes: &mut [u8], byte: usize, bit: usize) {
        let number = match self {
            Self::Req => 0,
            Self::Rep => 1,
            Self::Other(other) => *other,
        };
        set_bits(bytes, (byte, bit), 2, number.into());
    }
}
