//! UD: dropped packets, and the header before the data.

use crate::common::{End, checked, settle};
use crate::link::{Link, statuses, wr_ids};
use verbs_api::{AhAttr, Qp, QpType, RcParams, SendWr, Verbs, WcFlags, WcStatus, connect};
use verbs_sim::SimConfig;

const QKEY: u32 = 0x1111;
const GRH: u32 = 40;

/// UD-05, UD-07 to -09, UD-15, UD-18: what does not fit is dropped. The sender has success, and the
/// receive that is there takes the next datagram that fits.
#[test]
fn ud_drops_what_does_not_fit() {
    struct Row {
        what: &'static str,
        arrives: bool,
        qkey: u32,
        /// The destination queue pair, instead of the right one.
        qpn: fn(&Datagrams<'_>) -> u32,
        /// Bytes of the receive; `None` for none at all.
        recv: Option<u32>,
    }
    let right = Row {
        what: "all is right",
        arrives: true,
        qkey: QKEY,
        qpn: |link| link.to,
        recv: Some(GRH + 100),
    };
    let rows = [
        Row {
            what: "another Q_Key",
            arrives: false,
            qkey: QKEY + 1,
            ..right
        },
        Row {
            what: "the sender's own Q_Key (UD-06)",
            qkey: 1 << 31,
            ..right
        },
        Row {
            what: "no such QP",
            arrives: false,
            qpn: |_| 0xff_fffe,
            ..right
        },
        Row {
            what: "an RC queue pair",
            arrives: false,
            qpn: |link| link.rc,
            ..right
        },
        Row {
            what: "no receive",
            arrives: false,
            recv: None,
            ..right
        },
        Row {
            what: "a receive one byte too small",
            arrives: false,
            recv: Some(GRH + 99),
            ..right
        },
        Row {
            what: "a receive without room for data",
            arrives: false,
            recv: Some(GRH),
            ..right
        },
        Row {
            what: "a receive of less than a GRH",
            arrives: false,
            recv: Some(GRH - 1),
            ..right
        },
        right,
    ];
    for row in rows {
        let sim = checked(SimConfig::new());
        let link = Datagrams::new(&sim);
        if let Some(length) = row.recv {
            link.far.recv(link.peer, 1, 0, length);
        }
        link.send(100, row.qkey, (row.qpn)(&link), 0);
        settle(&sim);
        assert_eq!(
            statuses(&link.near.drain()),
            [WcStatus::Success],
            "{}",
            row.what
        );
        let expected = if row.arrives { vec![1] } else { vec![] };
        assert_eq!(wr_ids(&link.far.drain()), expected, "{}", row.what);
        if row.arrives {
            continue;
        }
        link.far.recv(link.peer, 2, 0, GRH + 100);
        let fits = row.recv.unwrap_or(0).saturating_sub(GRH);
        if row.recv.is_none_or(|length| length >= GRH) {
            link.send(fits, QKEY, link.to, 0);
            settle(&sim);
            let taken_by = if row.recv.is_some() { 1 } else { 2 };
            assert_eq!(
                wr_ids(&link.far.drain()),
                [taken_by],
                "{}: the next",
                row.what
            );
        }
        let port = sim.query_port(link.far.context, 1).unwrap();
        assert_eq!(port.qkey_viol_cntr, u32::from(row.what == "another Q_Key"));
    }
}

/// UD-02 to -04, UD-13: the data stand behind 40 bytes with the addresses of the path: a GRH, or
/// for IPv4 its header in the last 20 of them.
#[test]
fn ud_puts_the_header_of_the_path_before_the_data() {
    for sgid_index in [0, 1] {
        let sim = checked(SimConfig::new());
        let link = Datagrams::new(&sim);
        link.near.write(0, &[9; 100]);
        link.far.recv(link.peer, 1, 0, GRH + 100);
        link.send(100, QKEY, link.to, sgid_index);
        settle(&sim);
        let wc = link.far.drain()[0];
        assert_eq!((wc.byte_len, wc.wc_flags), (GRH + 100, WcFlags::GRH));
        assert_eq!(wc.src_qp, sim.qp_num(link.qp).unwrap());
        let bytes = link.far.read(0, 140);
        assert_eq!(bytes[40..], [9; 100]);
        let gid = |end: &End<'_>| sim.query_gid(end.context, 1, sgid_index.into()).unwrap().0;
        let (from, to) = (gid(&link.near), gid(&link.far));
        if sgid_index == 0 {
            assert_eq!(bytes[0] >> 4, 6, "the version of a GRH");
            assert_eq!((&bytes[8..24], &bytes[24..40]), (&from[..], &to[..]));
        } else {
            assert_eq!(bytes[..20], [0; 20]);
            assert_eq!(bytes[20], 0x45, "version and length of an IPv4 header");
            assert_eq!((&bytes[32..36], &bytes[36..40]), (&from[12..], &to[12..]));
        }
    }
}

/// Two UD queue pairs.
struct Datagrams<'v> {
    near: End<'v>,
    far: End<'v>,
    qp: Qp,
    peer: Qp,
    /// The number of `peer`.
    to: u32,
    /// The number of an RC queue pair of the same node.
    rc: u32,
}

impl<'v> Datagrams<'v> {
    fn new(verbs: &'v dyn Verbs) -> Self {
        let rc = Link::new(verbs, QpType::Rc, &RcParams::default());
        let (near, far) = (rc.near, rc.far);
        let (qp, peer) = (near.qp(QpType::Ud, 16), far.qp(QpType::Ud, 16));
        for qp in [qp, peer] {
            connect::ud_to_rts(verbs, qp, 1, QKEY).unwrap();
        }
        Self {
            near,
            far,
            qp,
            peer,
            to: verbs.qp_num(peer).unwrap(),
            rc: verbs.qp_num(rc.peer).unwrap(),
        }
    }

    fn send(&self, length: u32, qkey: u32, qpn: u32, gid_index: u8) {
        let verbs = self.near.verbs;
        let gid = verbs.query_gid(self.far.context, 1, gid_index.into());
        let attr = AhAttr::global(1, gid_index, gid.unwrap());
        let ah = verbs.create_ah(self.near.pd, &attr).unwrap();
        let list = [self.near.mem.sge(0, length)];
        self.near
            .post(self.qp, SendWr::send(1, &list).to(ah, qpn, qkey));
    }
}
