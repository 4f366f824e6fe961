//! A NIC: a simulator that looks to programs like a device of another driver through libibverbs.

use verbs_api::behavior::Declared;
use verbs_api::cm::Cm;
use verbs_api::lab::Lab;
use verbs_api::*;
use verbs_sim::{Mode, Sim, SimConfig};

use crate::interpose::{Interpose, Through};
use crate::table::{Refusal, Table};

pub(crate) struct Nic {
    sim: Sim,
    table: &'static Table,
}

/// What flags and attributes report, for any driver. The rest is only known by asking.
const REPORTED: Capabilities = Capabilities::SRQ
    .union(Capabilities::SRQ_RESIZE)
    .union(Capabilities::XRC)
    .union(Capabilities::ATOMICS)
    .union(Capabilities::MW)
    .union(Capabilities::ODP)
    .union(Capabilities::ODP_IMPLICIT)
    .union(Capabilities::MCAST)
    .union(Capabilities::DEVICE_MEMORY)
    .union(Capabilities::FLUSH)
    .union(Capabilities::ATOMIC_WRITE);

impl Nic {
    pub(crate) fn new(table: &'static Table, mode: Mode) -> Through<Self> {
        let config = SimConfig::new()
            .mode(mode)
            .trace(true)
            .lacks(table.lacks())
            .limits(table.limits().expect("they were checked"))
            .behavior(table.behavior().expect("they were checked"));
        let sim = Sim::new(config);
        if table.first_gid_is_empty {
            empty_first_gids(&sim).expect("the simulator has a GID at each port");
        }
        Through(Self { sim, table })
    }

    /// Whether a place in the table of GIDs of a port is one of those that the simulator does not
    /// have, which are empty.
    fn is_behind(&self, context: Context, port: u8, index: u32) -> Result<bool> {
        let len = self.sim.query_port(context, port)?.gid_tbl_len;
        Ok((len..self.table.gid_places).contains(&index))
    }

    /// Changes the attributes to those that the NIC reports.
    fn report(&self, attr: &mut DeviceAttr) {
        // The structure of C has no such field.
        attr.max_inline_data = 0;
        self.table.report(attr).expect("they were checked");
    }

    /// The result of a call that makes an object: none, if the driver refuses it. Other mistakes
    /// are found first.
    fn made<T: Copy>(
        made: Result<T>,
        refusal: Option<Refusal>,
        destroy: impl FnOnce(T) -> Result<()>,
    ) -> Result<T> {
        match (made, refusal) {
            (Ok(object), Some(refusal)) => destroy(object).and(Err(refused(refusal))),
            (made, refusal) => in_words(made, refusal),
        }
    }
}

/// The result, with the errno by which a driver refuses what it lacks.
fn in_words<T>(result: Result<T>, refusal: Option<Refusal>) -> Result<T> {
    result.map_err(|error| match refusal {
        Some(refusal) if error.kind() == ErrorKind::NotSupported => refused(refusal),
        _ => error,
    })
}

fn empty_first_gids(sim: &Sim) -> Result<()> {
    for device in sim.devices()? {
        let context = sim.open_device(&device.name)?;
        sim.set_gid(context, 1, 0, Gid::default())?;
        sim.close_device(context)?;
    }
    Ok(())
}

fn refused((verb, kind): Refusal) -> Error {
    Error::new(verb, kind, Cause::Unspecified)
}

macro_rules! refused_as_by_the_driver {
    ($( fn $verb:ident(&self $(, $name:ident: $type:ty)*) -> $result:ty; )*) => { $(
        fn $verb(&self $(, $name: $type)*) -> $result {
            let result = self.sim.$verb($($name),*);
            let of = result.as_ref().err().and_then(|error| self.table.refusal(error.verb()));
            in_words(result, of)
        }
    )* };
}

impl Interpose for Nic {
    fn sim(&self) -> &Sim {
        &self.sim
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        let mut devices = self.sim.devices()?;
        for device in &mut devices {
            device.driver.clone_from(&self.table.driver);
        }
        Ok(devices)
    }

    fn open_device(&self, name: &str) -> Result<Context> {
        let context = self.sim.open_device(name)?;
        if self.table.announces {
            for kind in [AsyncEventType::LidChange, AsyncEventType::SmChange] {
                self.sim.announce(context, 1, kind)?;
            }
        }
        Ok(context)
    }

    fn capabilities(&self, context: Context) -> Result<Capabilities> {
        let lacks = self.table.lacks();
        let reported = if lacks.contains(Capabilities::IWARP_LACKS) {
            // The transport implies them.
            REPORTED | Capabilities::IWARP_LACKS
        } else {
            REPORTED
        };
        let unreported = lacks - reported;
        let mut has = self.sim.capabilities(context)? | unreported | Capabilities::THREADS;
        has.set(Capabilities::CM, Interpose::cm(self).is_some());
        Ok(has - Capabilities::LAB)
    }

    fn behavior(&self, context: Context) -> Result<Declared> {
        let known = self.sim.behavior(context);
        known.map(|_| Declared::default())
    }

    fn query_device(&self, context: Context) -> Result<DeviceAttr> {
        let mut attr = self.sim.query_device(context)?;
        self.report(&mut attr);
        Ok(attr)
    }

    fn query_device_ex(&self, context: Context) -> Result<DeviceAttrEx> {
        let mut attr = self.sim.query_device_ex(context)?;
        self.report(&mut attr.orig_attr);
        Ok(attr)
    }

    fn query_port(&self, context: Context, port: u8) -> Result<PortAttr> {
        let mut attr = self.sim.query_port(context, port)?;
        attr.gid_tbl_len = attr.gid_tbl_len.max(self.table.gid_places);
        Ok(attr)
    }

    fn query_gid(&self, context: Context, port: u8, index: u32) -> Result<Gid> {
        if self.is_behind(context, port, index)? {
            return Ok(Gid::default());
        }
        self.sim.query_gid(context, port, index)
    }

    fn query_gid_ex(&self, context: Context, port: u8, index: u32) -> Result<GidEntry> {
        if self.is_behind(context, port, index)? {
            return Err(refused((Verb::QueryGidEx, ErrorKind::NoData)));
        }
        self.sim.query_gid_ex(context, port, index)
    }

    fn create_qp(&self, pd: Pd, init: &QpInit) -> Result<Qp> {
        let made = self.sim.create_qp(pd, init);
        Self::made(made, self.table.refuses_qp(init), |qp| {
            self.sim.destroy_qp(qp, Wait::Poll)
        })
    }

    fn create_cq_ex(&self, context: Context, init: &CqInitEx) -> Result<Cq> {
        let made = self.sim.create_cq_ex(context, init);
        Self::made(made, self.table.refuses_cq_ex(init), |cq| {
            self.sim.destroy_cq(cq, Wait::Poll)
        })
    }

    refused_as_by_the_driver! {
        fn query_rt_values(&self, context: Context) -> Result<RtValues>;
        fn alloc_td(&self, context: Context) -> Result<Td>;
        fn alloc_parent_domain(&self, pd: Pd, td: Option<Td>) -> Result<Pd>;
        fn alloc_null_mr(&self, pd: Pd) -> Result<Mr>;
        fn alloc_mw(&self, pd: Pd, mw_type: MwType) -> Result<Mw>;
        fn alloc_dm(&self, context: Context, init: &DmInit) -> Result<Dm>;
        fn resize_cq(&self, cq: Cq, cqe: i32) -> Result<()>;
        fn modify_cq(&self, cq: Cq, moderation: &CqModeration) -> Result<()>;
        fn query_ece(&self, qp: Qp) -> Result<Ece>;
        fn attach_mcast(&self, qp: Qp, group: Gid, lid: u16) -> Result<()>;
        fn create_srq(&self, pd: Pd, init: &SrqInit) -> Result<Srq>;
        fn modify_srq(&self, srq: Srq, attr: &SrqAttr, mask: SrqAttrMask) -> Result<()>;
        fn open_xrcd(&self, context: Context, init: &XrcdInit<'_>) -> Result<Xrcd>;
    }

    fn cm(&self) -> Option<&dyn Cm> {
        let has = !self.table.lacks().contains(Capabilities::CM);
        has.then_some(&self.sim)
    }

    /// The clock moves by it. No scenario needs it.
    fn lab(&self) -> Option<&dyn Lab> {
        Some(&self.sim)
    }
}
