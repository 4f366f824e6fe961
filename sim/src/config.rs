//! How a simulation is set up.

use core::net::IpAddr;
use core::time::Duration;

use verbs_api::behavior::Behavior;
use verbs_api::profile::{DeviceLimits, Profile};
use verbs_api::{Capabilities, LinkLayer};

use crate::network::Network;
use crate::packet::Pcap;
use crate::subnet::{self, Subnet};

/// How the simulator runs what is posted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Packets and timers wait in one queue ordered by time. A step, a poll that finds nothing, a
    /// blocking wait or [`Lab::settle`](verbs_api::lab::Lab::settle) moves the clock. For one thread: a
    /// second one gets a usage error. [`Wait::For`](verbs_api::Wait::For) is of virtual time. Fully
    /// deterministic. The default.
    #[default]
    Stepped,
    /// A posted work request runs as far as it can before the post returns, on all nodes it
    /// concerns. For any number of threads, one of which works at a time; waits block. Timers fire
    /// when the clock is moved by [`Lab::advance`](verbs_api::lab::Lab::advance) or `settle`, and by
    /// nothing else: [`Wait::For`](verbs_api::Wait::For) ends after that much time of the machine, in
    /// which virtual time stands still. Under a model checker, where no time passes, it ends when
    /// `advance` has moved the clock so far.
    Inline,
    /// As [`Inline`](Self::Inline), but the time is that of the machine: timers fire on their own,
    /// in a thread that ends with the simulation, and a wait for a time takes that time. For
    /// programs with threads that rely on timers, such as a retry after RNR. `advance` is refused,
    /// and `settle` waits.
    RealTime,
}

/// The set-up of a [`Sim`](crate::Sim).
///
/// ```
/// use verbs_sim::{Mode, Sim, SimConfig};
///
/// let sim = Sim::new(SimConfig::new().nodes(3).seed(7).mode(Mode::Inline));
/// ```
#[derive(Clone, Debug)]
pub struct SimConfig {
    pub(crate) nodes: u32,
    pub(crate) ports: u8,
    pub(crate) seed: u64,
    pub(crate) scatter: Option<u64>,
    pub(crate) mode: Mode,
    pub(crate) behavior: Behavior,
    pub(crate) declared: Option<Behavior>,
    pub(crate) lacks: Capabilities,
    pub(crate) limits: DeviceLimits,
    pub(crate) link_layer: LinkLayer,
    pub(crate) trace: bool,
    pub(crate) strikes: bool,
    pub(crate) trace_threads: bool,
    pub(crate) planted_defect: bool,
    pub(crate) latency: Duration,
    pub(crate) horizon: Duration,
    pub(crate) cm_timeout: Duration,
    pub(crate) wire: bool,
    pub(crate) pcap: Option<Pcap>,
    pub(crate) check_memory: bool,
    pub(crate) network: Option<Network>,
}

impl Default for SimConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl SimConfig {
    /// Two nodes `sim0` and `sim1` with one port each on Ethernet, stepped, seed 0, behavior of the
    /// specification, no trace, 1 us from port to port, a horizon of 120 s, which is more than
    /// rdma_cm needs to give up a peer.
    pub const fn new() -> Self {
        Self {
            nodes: 2,
            ports: 1,
            seed: 0,
            scatter: None,
            mode: Mode::Stepped,
            behavior: Behavior::SPEC,
            declared: None,
            lacks: Capabilities::empty(),
            limits: DeviceLimits::SPEC,
            link_layer: LinkLayer::Ethernet,
            trace: false,
            strikes: true,
            trace_threads: false,
            planted_defect: false,
            latency: Duration::from_micros(1),
            horizon: Duration::from_secs(120),
            cm_timeout: Duration::from_millis(6400),
            wire: false,
            pcap: None,
            check_memory: false,
            network: None,
        }
    }

    /// How many nodes: devices `sim0`, `sim1`, ... At least 1, at most 65,535.
    ///
    /// # Panics
    /// Outside that range.
    #[must_use]
    pub const fn nodes(self, nodes: u32) -> Self {
        assert!(nodes >= 1 && nodes <= 0xffff, "1 to 65,535 nodes");
        Self { nodes, ..self }
    }

    /// How many ports each node has, 1 to 250. Every port reaches every other.
    ///
    /// # Panics
    /// Outside that range.
    #[must_use]
    pub const fn ports(self, ports: u8) -> Self {
        assert!(ports >= 1 && ports <= 250, "1 to 250 ports");
        Self { ports, ..self }
    }

    /// The seed of everything random.
    #[must_use]
    pub const fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Lets QP numbers, and keys of regions and windows, be anywhere, drawn from this seed: a process that gets
    /// its own has others than the next. Default: they are small, and the same in each run.
    ///
    /// ```
    /// use verbs_api::{Access, Verbs};
    /// use verbs_sim::{Sim, SimConfig};
    ///
    /// let first_rkey = |config| {
    ///     let sim = Sim::new(config);
    ///     let pd = sim.alloc_pd(sim.open_device("sim0")?)?;
    ///     let mr = sim.alloc_mr(pd, 8, Access::REMOTE_READ)?;
    ///     Ok::<_, verbs_api::Error>(sim.query_mr(mr)?.rkey)
    /// };
    /// let scattered = |seed| first_rkey(SimConfig::new().scatter(seed));
    /// assert_eq!(scattered(1)?, scattered(1)?);
    /// assert_ne!(scattered(1)?, scattered(2)?);
    /// assert_ne!(scattered(1)?, first_rkey(SimConfig::new())?);
    /// # Ok::<(), verbs_api::Error>(())
    /// ```
    #[must_use]
    pub const fn scatter(self, seed: u64) -> Self {
        Self {
            scatter: Some(seed),
            ..self
        }
    }

    /// How posted work runs.
    #[must_use]
    pub const fn mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// What the devices are: how they answer where they have a choice, what they lack, and their
    /// limits.
    ///
    /// ```
    /// use verbs_api::profile::Profile;
    /// use verbs_sim::{Sim, SimConfig};
    ///
    /// let sim = Sim::new(SimConfig::new().profile(Profile::RXE));
    /// ```
    #[must_use]
    pub const fn profile(self, profile: Profile) -> Self {
        self.behavior(profile.behavior)
            .lacks(profile.lacks)
            .limits(profile.limits)
    }

    /// How the devices answer where they have a choice.
    #[must_use]
    pub const fn behavior(self, behavior: Behavior) -> Self {
        Self { behavior, ..self }
    }

    /// What the devices say of their behavior, if it is not the truth: a planted defect.
    #[must_use]
    pub const fn declare(self, declared: Behavior) -> Self {
        Self {
            declared: Some(declared),
            ..self
        }
    }

    /// A defect, for tests that one is found: a message that is sent again arrives without its immediate
    /// data, and looks well.
    #[doc(hidden)]
    #[must_use]
    pub const fn planted_defect(self, planted_defect: bool) -> Self {
        Self {
            planted_defect,
            ..self
        }
    }

    /// What the devices do not claim to have. They refuse what needs it, but for connecting by
    /// attributes, waiting for receives (RNR), regions with addresses of the program's choice, and what is
    /// the backend's: threads, garbling, the laboratory. Those without all that iWARP has not ([`Capabilities::IWARP_LACKS`]) say that
    /// they are of that transport. Default: they have everything.
    ///
    /// ```
    /// use verbs_api::{Capabilities, CqInit, ErrorKind, QpInit, QpType, Transport, Verbs};
    /// use verbs_sim::{Sim, SimConfig};
    ///
    /// let sim = Sim::new(SimConfig::new().lacks(Capabilities::IWARP_LACKS));
    /// assert_eq!(sim.devices()?[0].transport, Transport::Iwarp);
    /// let context = sim.open_device("sim0")?;
    /// assert_eq!(sim.query_device(context)?.max_mcast_grp, 0);
    /// let (pd, cq) = (sim.alloc_pd(context)?, sim.create_cq(context, &CqInit::new(1))?);
    /// let refused = sim.create_qp(pd, &QpInit::new(QpType::Ud, cq, cq)).unwrap_err();
    /// assert_eq!(refused.kind(), ErrorKind::NotSupported);
    /// # Ok::<(), verbs_api::Error>(())
    /// ```
    #[must_use]
    pub const fn lacks(self, lacks: Capabilities) -> Self {
        Self { lacks, ..self }
    }

    /// Limits of the devices, in the place of their profile's. Whatever they are, a device has at most
    /// 130,942 queue pairs: their numbers have 24 bits, some of which tell their generations apart.
    ///
    /// ```
    /// use verbs_api::profile::Profile;
    /// use verbs_api::Verbs;
    /// use verbs_sim::{Sim, SimConfig};
    ///
    /// let mut limits = Profile::RXE.limits;
    /// limits.lower("max_qp", 16)?;
    /// let sim = Sim::new(SimConfig::new().profile(Profile::RXE).limits(limits));
    /// let device = sim.query_device(sim.open_device("sim0")?)?;
    /// assert_eq!((device.max_qp, device.max_cqe), (16, 32_767));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn limits(self, limits: DeviceLimits) -> Self {
        Self { limits, ..self }
    }

    /// What is between the ports. `Ethernet`, the default: RoCE version 2; each port has a GID that is
    /// link-local and one of IPv4, and packets need one. `InfiniBand`: each port has a LID, from 1 in
    /// the order of nodes and ports, and one GID; the LID leads, with a GID or without.
    ///
    /// # Panics
    /// With another link layer, and [`Sim::new`](crate::Sim::new) with more than 49,151 ports of
    /// InfiniBand: there are no more LIDs.
    #[must_use]
    pub const fn link_layer(self, link_layer: LinkLayer) -> Self {
        assert!(
            matches!(link_layer, LinkLayer::Ethernet | LinkLayer::InfiniBand),
            "Ethernet or InfiniBand"
        );
        Self { link_layer, ..self }
    }

    /// The LIDs, on InfiniBand.
    pub(crate) fn subnet(&self) -> Option<Subnet> {
        let Self { nodes, ports, .. } = *self;
        if self.link_layer != LinkLayer::InfiniBand {
            return None;
        }
        let all = nodes * u32::from(ports);
        assert!(all <= subnet::MAX_PORTS, "49,151 ports of InfiniBand");
        Some(Subnet { nodes, ports })
    }

    /// Whether a trace is kept ([`Lab::trace`](verbs_api::lab::Lab::trace)).
    #[must_use]
    pub const fn trace(self, trace: bool) -> Self {
        Self { trace, ..self }
    }

    /// Whether it is kept what fault rules strike ([`Lab::strikes`](verbs_api::lab::Lab::strikes)). Each strike
    /// takes 16 bytes until the end: a process that runs for long with rules, and never asks, should not
    /// keep them. Default: yes.
    #[must_use]
    pub const fn strikes(self, strikes: bool) -> Self {
        Self { strikes, ..self }
    }

    /// Whether a trace is kept that also says which thread did what
    /// ([`Sim::thread_trace`](crate::Sim::thread_trace)), and has polls that find nothing. For
    /// models: it is no longer the same for the same seed and calls. Default: no.
    #[must_use]
    pub const fn trace_threads(self, trace_threads: bool) -> Self {
        Self {
            trace: self.trace || trace_threads,
            trace_threads,
            ..self
        }
    }

    /// Time of a packet from port to port, in stepped mode.
    #[must_use]
    pub const fn latency(self, latency: Duration) -> Self {
        Self { latency, ..self }
    }

    /// Whether nothing but bytes of RoCEv2 passes from node to node: each packet is written as such, and the receiver
    /// reads it. What a program sees is the same, and takes longer. Default: no.
    ///
    /// # Panics
    /// [`Sim::new`](crate::Sim::new) on InfiniBand, and with devices of iWARP: their packets are others.
    #[must_use]
    pub const fn wire(self, wire: bool) -> Self {
        Self { wire, ..self }
    }

    /// Writes every packet to a file, also those that stay on their node. Messages of several packets are sent as
    /// such in each mode.
    ///
    /// # Panics
    /// As for [`wire`](Self::wire).
    #[must_use]
    pub const fn pcap(self, pcap: Pcap) -> Self {
        Self {
            pcap: Some(pcap),
            ..self
        }
    }

    /// Whether a diagnosis also has what programs do to memory that is the device's: sends whose bytes change before their
    /// completion is polled, memory of regions that is not mapped any more, regions that are deregistered while work
    /// names them. Work on memory that is not mapped then fails, and does not end the process. Messages take the long
    /// way, and bytes are read three times. Default: no.
    ///
    /// What is not mapped is found with feature `fd`, where [`can_check_mapping`](Self::can_check_mapping) says so.
    ///
    /// ```
    /// use verbs_sim::{Sim, SimConfig};
    ///
    /// let sim = Sim::new(SimConfig::new().check_memory(true));
    /// assert!(sim.diagnose().is_empty());
    /// ```
    #[must_use]
    pub const fn check_memory(self, check_memory: bool) -> Self {
        Self {
            check_memory,
            ..self
        }
    }

    /// Whether the system can say what memory is not mapped: it may forbid the call.
    pub fn can_check_mapping() -> bool {
        crate::memory::is_permitted()
    }

    /// Lets devices of other processes be reached, and soft-RoCE and hardware: packets for addresses that no port here
    /// has leave by UDP. Default: there is nobody else.
    ///
    /// A port gets its address when its device is first opened. GID 0 is that address, GID 1 a link-local one that
    /// leads to the same place if it is of IPv4. Keys and QP numbers should be anywhere ([`scatter`](Self::scatter)).
    /// Queue pairs whose peer is of this process keep their way, which no packet leaves. The first one whose peer is
    /// not starts a thread.
    ///
    /// # Panics
    /// [`Sim::new`](crate::Sim::new) in another mode than [`Mode::RealTime`]; on InfiniBand, and with devices of iWARP;
    /// with another number of addresses than ports; and if the system has no more descriptors.
    #[cfg(feature = "network")]
    #[must_use]
    pub const fn network(self, network: Network) -> Self {
        Self {
            network: Some(network),
            ..self
        }
    }

    /// Whether there are devices of other processes.
    pub(crate) fn has_network(&self) -> bool {
        self.network.is_some()
    }

    /// Whether packets to an address may arrive at another process.
    pub(crate) fn reaches(&self, address: IpAddr) -> bool {
        self.network.is_some_and(|network| network.has(address))
    }

    /// Whether packets are those of RoCEv2. On InfiniBand, and with devices of iWARP, they are others.
    pub(crate) fn is_roce(&self) -> bool {
        let is_iwarp = self.lacks.contains(Capabilities::IWARP_LACKS);
        self.link_layer == LinkLayer::Ethernet && !is_iwarp
    }

    /// How long a message of rdma_cm waits for its answer before it is sent again, fifteen times at most: who asks for
    /// a connection hears after sixteen times as long that nobody answers. Default: 6.4 s, as in Linux.
    #[must_use]
    pub const fn cm_timeout(self, cm_timeout: Duration) -> Self {
        Self { cm_timeout, ..self }
    }

    /// How far `settle`, or in stepped mode a wait without an end, may move the clock before it is called
    /// a stall.
    #[must_use]
    pub const fn horizon(self, horizon: Duration) -> Self {
        Self { horizon, ..self }
    }
}
