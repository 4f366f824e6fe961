//! Messages that can be written, for properties.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use verbs_roce::mad::{
    CmMad, CmMessage, Drep, Dreq, Ece, Mra, Path, PrivateData, Rej, Rejected, Rep, Req, Rtu,
    SidrRep, SidrReq,
};

/// How properties run. Failures go to a file next to the source.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    }
}

/// Any message.
pub(crate) fn mads() -> impl Strategy<Value = CmMad> {
    let message = prop_oneof![
        req().prop_map(|req| CmMessage::Req(Box::new(req))),
        mra().prop_map(CmMessage::Mra),
        rej().prop_map(CmMessage::Rej),
        rep().prop_map(CmMessage::Rep),
        rtu().prop_map(CmMessage::Rtu),
        dreq().prop_map(CmMessage::Dreq),
        drep().prop_map(CmMessage::Drep),
        sidr_req().prop_map(CmMessage::SidrReq),
        sidr_rep().prop_map(CmMessage::SidrRep),
    ];
    (any::<u64>(), message).prop_map(|(transaction, message)| CmMad {
        transaction,
        message,
    })
}

/// A struct of any fields, each from a strategy of its own. Tuples are too short for the longest.
macro_rules! any_of {
    ($(fn $function:ident() -> $name:ident { $($field:ident: $strategy:expr),* $(,)? })*) => {$(
        fn $function() -> BoxedStrategy<$name> {
            let strategy = Just($name::default()).boxed();
            $(
                let strategy = (strategy, $strategy)
                    .prop_map(|(value, $field)| $name { $field, ..value })
                    .boxed();
            )*
            strategy
        }
    )*};
}

any_of! {
    fn req() -> Req {
        local_comm_id: any::<u32>(),
        ece: ece(),
        service_id: any::<u64>(),
        ca_guid: any::<u64>(),
        qkey: any::<u32>(),
        qpn: bits(24),
        responder_resources: any::<u8>(),
        initiator_depth: any::<u8>(),
        remote_cm_response_timeout: few(5),
        transport: few(2),
        flow_control: any::<bool>(),
        starting_psn: bits(24),
        local_cm_response_timeout: few(5),
        retry_count: few(3),
        pkey: any::<u16>(),
        path_mtu: few(4),
        rnr_retry_count: few(3),
        max_cm_retries: few(4),
        srq: any::<bool>(),
        extended_transport: few(3),
        primary: path(),
        alternate: path(),
        private_data: data(),
    }

    fn path() -> Path {
        local_lid: any::<u16>(),
        remote_lid: any::<u16>(),
        local_gid: any::<[u8; 16]>(),
        remote_gid: any::<[u8; 16]>(),
        flow_label: bits(20),
        packet_rate: few(6),
        traffic_class: any::<u8>(),
        hop_limit: any::<u8>(),
        sl: few(4),
        subnet_local: any::<bool>(),
        local_ack_timeout: few(5),
    }

    fn mra() -> Mra {
        local_comm_id: any::<u32>(),
        remote_comm_id: any::<u32>(),
        mraed: rejected(),
        service_timeout: few(5),
        private_data: data(),
    }

    fn rej() -> Rej {
        local_comm_id: any::<u32>(),
        remote_comm_id: any::<u32>(),
        rejected: rejected(),
        additional_info_length: few(7),
        reason: any::<u16>(),
        additional_info: data(),
        private_data: data(),
    }

    fn rep() -> Rep {
        local_comm_id: any::<u32>(),
        remote_comm_id: any::<u32>(),
        qkey: any::<u32>(),
        qpn: bits(24),
        ece: ece(),
        eecn: bits(24),
        starting_psn: bits(24),
        responder_resources: any::<u8>(),
        initiator_depth: any::<u8>(),
        target_ack_delay: few(5),
        failover_accepted: few(2),
        flow_control: any::<bool>(),
        rnr_retry_count: few(3),
        srq: any::<bool>(),
        ca_guid: any::<u64>(),
        private_data: data(),
    }

    fn rtu() -> Rtu {
        local_comm_id: any::<u32>(),
        remote_comm_id: any::<u32>(),
        private_data: data(),
    }

    fn dreq() -> Dreq {
        local_comm_id: any::<u32>(),
        remote_comm_id: any::<u32>(),
        remote_qpn: bits(24),
        private_data: data(),
    }

    fn drep() -> Drep {
        local_comm_id: any::<u32>(),
        remote_comm_id: any::<u32>(),
        private_data: data(),
    }

    fn sidr_req() -> SidrReq {
        request_id: any::<u32>(),
        pkey: any::<u16>(),
        service_id: any::<u64>(),
        private_data: data(),
    }

    fn sidr_rep() -> SidrRep {
        request_id: any::<u32>(),
        status: any::<u8>(),
        additional_info_length: any::<u8>(),
        ece: ece(),
        qpn: bits(24),
        service_id: any::<u64>(),
        qkey: any::<u32>(),
        additional_info: data(),
        private_data: data(),
    }

    fn ece() -> Ece {
        vendor_id: bits(24),
        options: any::<u32>(),
    }
}

fn rejected() -> impl Strategy<Value = Rejected> {
    prop_oneof![
        Just(Rejected::Req),
        Just(Rejected::Rep),
        (2..4u8).prop_map(Rejected::Other)
    ]
}

/// Private data of any length.
fn data<const N: usize>() -> impl Strategy<Value = PrivateData<N>> {
    proptest::collection::vec(any::<u8>(), 0..=N).prop_map(|data| PrivateData::new(&data).unwrap())
}

/// A number of `bits` bits.
fn bits(bits: u32) -> impl Strategy<Value = u32> {
    0..1u32 << bits
}

/// A number of `bits` bits, fewer than eight.
fn few(bits: u32) -> impl Strategy<Value = u8> {
    0..1u8 << bits
}
