//! The configuration of a simulation.

use core::net::IpAddr;
use core::time::Duration;

use verbs_api::behavior::Behavior;
use verbs_api::lab::Shape;
use verbs_api::profile::{DeviceLimits, Profile, Reported};
use verbs_api::{Capabilities, Ece, LinkLayer, OdpCaps};

use crate::hosts::Hosts;
use crate::network::Network;
use crate::packet::Pcap;
use crate::subnet::{self, Subnet};

/// How the simulator executes posted work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Packets and timers wait in one queue ordered by time. A step takes the first of them and
    /// moves the clock to its time. A blocking wait or
    /// [`Lab::settle`](verbs_api::lab::Lab::settle) takes as many steps as it needs. An empty poll
    /// takes one if it is a packet; a timer only if nothing has happened since the last empty poll
    /// of the same CQ, so parties that take turns have each had one. For one thread: calls of a
    /// second one fail with a usage error. [`Wait::For`](verbs_api::Wait::For) is in virtual time.
    /// Fully deterministic. The default.
    #[default]
    Stepped,
    /// A posted work request runs as far as it can before the post returns, on all nodes involved.
    /// Any number of threads may call, and one works at a time; waits block. Timers fire only when
    /// [`Lab::advance`](verbs_api::lab::Lab::advance), `step` or `settle` moves the clock, or when
    /// every thread of [`Sim::threads`](crate::Sim::threads) waits. Outside of that,
    /// [`Wait::For`](verbs_api::Wait::For) ends after that much time of the machine, while virtual
    /// time stays. Under a model checker it is in virtual time.
    Inline,
    /// Like [`Inline`](Self::Inline), but with the time of the machine. Timers fire on their own,
    /// in a thread that starts with the first opened device and ends with the simulation, and a
    /// bounded wait takes real time. For programs
    /// with threads that rely on timers, such as a retry after RNR. `advance` and `step` are
    /// refused, and `settle` waits.
    RealTime,
}

/// Says each setting once: its documentation, name, type and default make a field and a setter. A
/// setter that does not set the field to its argument says its own name, its argument, and what
/// the field is set to.
macro_rules! settings {
    (@setter $(#[$meta:meta])* $name:ident: $type:ty) => {
        settings! { @setter $(#[$meta])* $name: $type, by $name($name: $type) { $name } }
    };
    (@setter $(#[$meta:meta])* $name:ident: $type:ty,
        by $setter:ident($arg:ident: $of:ty) $value:block) => {
        $(#[$meta])*
        #[must_use]
        pub const fn $setter(self, $arg: $of) -> Self {
            let $name: $type = $value;
            Self { $name, ..self }
        }
    };
    ($(
        $(#[$meta:meta])*
        $name:ident: $type:ty = $default:expr $(, by $setter:ident($arg:ident: $of:ty) $value:block)?;
    )*) => {
        /// The configuration of a [`Sim`](crate::Sim).
        ///
        /// ```
        /// use verbs_sim::{Mode, Sim, SimConfig};
        ///
        /// let sim = Sim::new(SimConfig::new().nodes(3).seed(7).mode(Mode::Inline));
        /// ```
        #[derive(Clone, Debug)]
        pub struct SimConfig {
            $( pub(crate) $name: $type, )*
        }

        impl SimConfig {
            /// The default: two nodes `sim0` and `sim1` with one port each on Ethernet, stepped
            /// mode, seed 0, the behavior of the specification, no trace, 1 us from port to port,
            /// and a horizon of 120 s, which is more than rdma_cm needs to give up a peer.
            pub const fn new() -> Self {
                Self { $( $name: $default, )* }
            }

            $( settings! { @setter $(#[$meta])* $name: $type $(, by $setter($arg: $of) $value)? } )*
        }
    };
}

settings! {
    /// The number of nodes, 1 to 65,535: devices `sim0`, `sim1`, and so on. Default: 2.
    ///
    /// # Panics
    /// If the number is outside that range.
    nodes: u32 = 2, by nodes(nodes: u32) {
        assert!(nodes >= 1 && nodes <= 0xffff, "1 to 65,535 nodes");
        nodes
    };

    /// The machines that the nodes are in, for [`Lab::host`](verbs_api::lab::Lab::host): the name of
    /// each, and the number of its nodes, in the order of the nodes. [`nodes`](Self::nodes) then has
    /// no effect. Default: each node is a machine, with the name of its device.
    ///
    /// ```
    /// use verbs_api::{Verbs, lab::Lab};
    /// use verbs_sim::{Sim, SimConfig};
    ///
    /// let sim = Sim::new(SimConfig::new().hosts(&[("client", 1), ("server", 2)]));
    /// let devices = sim.host("server")?.devices()?;
    /// let names: Vec<_> = devices.into_iter().map(|device| device.name).collect();
    /// assert_eq!(names, ["sim1", "sim2"]);
    /// # Ok::<(), verbs_api::Error>(())
    /// ```
    ///
    /// # Panics
    /// Without hosts, with one that has no node, and with more than 65,535 nodes.
    /// [`Sim::new`](crate::Sim::new) panics if a name is empty, or two hosts have it.
    hosts: Hosts = Hosts::BY_NODE, by hosts(hosts: &'static [(&'static str, u32)]) {
        Hosts::new(hosts)
    };

    /// The number of ports of each node, 1 to 250. Every port reaches every other. Default: 1.
    ///
    /// # Panics
    /// If the number is outside that range.
    ports: u8 = 1, by ports(ports: u8) {
        assert!(ports >= 1 && ports <= 250, "1 to 250 ports");
        ports
    };

    /// The network between the ports. `Ethernet`, the default, is RoCE version 2: each port has a
    /// link-local GID and one of IPv4, and packets need a GID. With `InfiniBand` each port has one
    /// GID, and a LID from 1 on in the order of nodes and ports, or on a [`network`](Self::network)
    /// one that no port of another process has. The LID leads, with or without a GID.
    ///
    /// # Panics
    /// With any other link layer. [`Sim::new`](crate::Sim::new) panics with more than 49,151
    /// InfiniBand ports, because there are no more LIDs.
    link_layer: LinkLayer = LinkLayer::Ethernet, by link_layer(link_layer: LinkLayer) {
        let is_known = matches!(link_layer, LinkLayer::Ethernet | LinkLayer::InfiniBand);
        assert!(is_known, "Ethernet or InfiniBand");
        link_layer
    };

    /// Connects the devices to those of other processes, to soft-RoCE and to hardware. Packets for
    /// addresses that no local port has leave by UDP. Default: there are no other processes.
    ///
    /// A port gets its address when its device is first opened. GID 0 is that address. If it is of
    /// IPv4, GID 1 is a link-local one that leads to the same port. On InfiniBand the last bits of
    /// the address are the LID, and the link-local GID is the only one. Keys and QP numbers should
    /// be scattered ([`scatter`](Self::scatter)). Messages between queue pairs of this process
    /// never leave it. The first queue pair with a peer in another process starts a thread.
    ///
    /// # Panics
    /// [`Sim::new`](crate::Sim::new) panics in any mode except [`Mode::RealTime`], with iWARP
    /// devices, on InfiniBand if the network is not a [`Network::loopback`] one, and if the number
    /// of addresses is not the number of ports.
    #[cfg(feature = "network")]
    network: Option<Network> = None, by network(network: Network) { Some(network) };

    /// The seed of all random choices. Default: 0.
    seed: u64 = 0;

    /// Draws QP numbers and keys of regions and windows from this seed, so that processes with
    /// different seeds have different ones. Default: they are small, and the same in each run.
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
    scatter: Option<u64> = None, by scatter(seed: u64) { Some(seed) };

    /// How posted work is executed. Default: [`Mode::Stepped`].
    mode: Mode = Mode::Stepped;

    /// The behavior of the devices where they have a choice. Default: that of the specification.
    behavior: Behavior = Behavior::SPEC;

    /// The behavior that the devices report, if it is not the real one: a planted defect.
    declared: Option<Behavior> = None, by declare(declared: Behavior) { Some(declared) };

    /// A defect for tests that must find one: a message that is sent again arrives without its
    /// immediate data, and looks correct otherwise.
    #[doc(hidden)]
    planted_defect: bool = false;

    /// Capabilities that the devices lack. They refuse calls that need them, with exceptions:
    /// connecting by attributes, waiting for receives (RNR), regions with addresses of the
    /// program's choice, and the capabilities of a backend (threads, corrupting, test controls).
    /// Devices that lack all of [`Capabilities::IWARP_LACKS`] report iWARP as their transport.
    /// Default: they have all capabilities.
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
    lacks: Capabilities = Capabilities::empty();

    /// The on-demand paging of the devices, instead of their profile's. What they need for it and
    /// [lack](Self::lacks) is left out. Default: every operation.
    odp: OdpCaps = OdpCaps::EVERY;

    /// Limits of the devices, instead of their profile's. With any limits a device has at most
    /// 130,942 queue pairs: their numbers have 24 bits, some of which distinguish generations.
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
    limits: DeviceLimits = DeviceLimits::SPEC;

    /// What the devices report and no call depends on, instead of their profile's.
    reported: Reported = Reported::SPEC;

    /// The vendor of the devices' options for queue pairs, and the options that they support
    /// ([`Verbs::query_ece`](verbs_api::Verbs::query_ece)), instead of their profile's.
    ///
    /// ```
    /// use verbs_api::Ece;
    /// use verbs_sim::SimConfig;
    ///
    /// let config = SimConfig::new().ece(Ece::new(0x15b3, 0b101));
    /// ```
    ece: Ece = Profile::SPEC.ece;

    /// Whether to keep a trace ([`Lab::trace`](verbs_api::lab::Lab::trace)). Default: no.
    trace: bool = false;

    /// Whether to keep a trace that also shows threads
    /// ([`Sim::thread_trace`](crate::Sim::thread_trace)) and empty polls. It is for models: the
    /// trace is no longer the same for the same seed and calls. Default: no.
    trace_threads: bool = false;

    /// Writes every packet to a file, including those that stay on their node. Messages of several
    /// packets are sent as such in each mode.
    ///
    /// # Panics
    /// [`Sim::new`](crate::Sim::new) panics on InfiniBand and with iWARP devices, whose packets
    /// differ.
    pcap: Option<Pcap> = None, by pcap(pcap: Pcap) { Some(pcap) };

    /// Whether to keep the firings of fault rules ([`Lab::firings`](verbs_api::lab::Lab::firings)).
    /// Each takes 16 bytes until the end, so a long-running process with rules that never asks for
    /// them should turn this off. Default: yes.
    firings: bool = true;

    /// How slow the link from each node to each other one is, in stepped mode. The random times
    /// follow from the seed, and packets of a link stay in order. Fault rules act in addition:
    /// [`Fault::shape`](verbs_api::lab::Fault::shape) makes single links slower. Default: a delay
    /// of 1 us; a shape of your own has none unless you give it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use verbs_api::lab::{Distribution, Shape};
    /// use verbs_sim::SimConfig;
    ///
    /// let link = Shape::new().delay(Duration::from_micros(50)).jitter(Duration::from_micros(20));
    /// let config = SimConfig::new().link(link.distribution(Distribution::Pareto));
    /// ```
    ///
    /// # Panics
    /// If the rate is 0.
    link: Shape = Shape::new().delay(Duration::from_micros(1)), by link(link: Shape) {
        assert!(!matches!(link.rate, Some(0)), "a link that carries something");
        link
    };

    /// Whether only RoCEv2 bytes pass between nodes: the sender encodes each packet, and the
    /// receiver decodes it. Programs see the same results, but slower. Default: no.
    ///
    /// # Panics
    /// [`Sim::new`](crate::Sim::new) panics on InfiniBand and with iWARP devices, whose packets
    /// differ.
    wire: bool = false;

    /// Whether a diagnosis also finds misuse of memory that the device owns: sends whose bytes
    /// change before their completion is polled, regions whose memory is no longer mapped, regions
    /// that are deregistered while work names them, and receives whose memory is posted again
    /// before their completion is polled. Work on unmapped memory then fails, instead of ending the
    /// process. Messages do not take the fast path, and bytes are read three times. Default: no.
    ///
    /// Unmapped memory is found with feature `fd`, if
    /// [`can_check_mapping`](Self::can_check_mapping) returns true.
    ///
    /// ```
    /// use verbs_sim::{Sim, SimConfig};
    ///
    /// let sim = Sim::new(SimConfig::new().check_memory(true));
    /// assert!(sim.diagnose().is_empty());
    /// ```
    check_memory: bool = false;

    /// The time that a message of rdma_cm waits for its answer before it is sent again, at most
    /// fifteen times. So a connection request without an answer fails after sixteen times as long.
    /// Default: 6.4 s, as in Linux.
    cm_timeout: Duration = Duration::from_millis(6400);

    /// How long a queue pair waits for a peer in another process of this machine that does not read
    /// what was sent to it: because a debugger has stopped it, or because it has no processor. A
    /// timeout then uses up no retry. A peer whose process has ended, and one that has read
    /// everything and does not answer, has only the time that the queue pair's attributes give, as
    /// has any peer on a network of given addresses or while fault rules for packets are in force.
    /// With zero every peer has only that time. Default: 30 s.
    #[cfg(feature = "network")]
    patience: Duration = Duration::from_secs(30);

    /// How far `settle`, an unbounded wait in stepped mode, or the threads of
    /// [`Sim::threads`](crate::Sim::threads) that wait may move the clock before it counts as a
    /// stall. Default: 120 s.
    horizon: Duration = Duration::from_secs(120);
}

impl Default for SimConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl SimConfig {
    /// The kind of the devices: their behavior where they have a choice, the capabilities that they
    /// lack, their limits, what they report, and their options for queue pairs. Default: those of
    /// the specification.
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
            .odp(profile.odp)
            .limits(profile.limits)
            .reported(profile.reported)
            .ece(profile.ece)
    }

    /// The LIDs, on InfiniBand.
    pub(crate) fn subnet(&self) -> Option<Subnet> {
        let Self { nodes, ports, .. } = *self;
        if self.link_layer != LinkLayer::InfiniBand {
            return None;
        }
        let all = nodes * u32::from(ports);
        assert!(all <= subnet::MAX_PORTS, "49,151 ports of InfiniBand");
        Some(match self.network {
            Some(network) => {
                let first = network.first();
                Subnet::Addressed(first.expect("only a loopback network has LIDs"))
            }
            None => Subnet::Counted { nodes, ports },
        })
    }

    /// Whether the system can report unmapped memory. It may forbid the call.
    pub fn can_check_mapping() -> bool {
        crate::memory::is_permitted()
    }

    /// Whether packets to an address may arrive at another process.
    pub(crate) fn reaches(&self, address: IpAddr) -> bool {
        self.network.is_some_and(|network| network.has(address))
    }

    /// How long peers that are slow are waited for, in nanoseconds. Only this machine's kernel
    /// tells whether they are.
    pub(crate) fn waits_for_peers(&self) -> u64 {
        let is_near = self.network.is_some_and(Network::is_within_machine);
        let patience = u64::try_from(self.patience.as_nanos()).unwrap_or(u64::MAX);
        if is_near { patience } else { 0 }
    }

    pub(crate) fn is_iwarp(&self) -> bool {
        self.lacks.contains(Capabilities::IWARP_LACKS)
    }

    /// Whether packets are RoCEv2. On InfiniBand, and with iWARP devices, they are not.
    pub(crate) fn is_roce(&self) -> bool {
        self.link_layer == LinkLayer::Ethernet && !self.is_iwarp()
    }
}
