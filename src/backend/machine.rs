//! The RDMA devices of this machine: on Linux those that libibverbs knows, elsewhere none.

#[cfg(target_os = "linux")]
mod on_linux {
    use verbs_api::Verbs;
    use verbs_hw::Hw;
    pub(crate) use verbs_hw::{is_simulated, kernel, locked_memory, obstacles, rdma_core};

    /// Its devices: all, or those of these names, in this order.
    pub(crate) fn verbs(only: Option<&[String]>) -> Option<Box<dyn Verbs>> {
        Some(Box::new(only.map_or_else(Hw::new, Hw::only)))
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use verbs_api::Verbs;

    pub(crate) fn verbs(_only: Option<&[String]>) -> Option<Box<dyn Verbs>> {
        None
    }

    pub(crate) fn obstacles() -> Vec<String> {
        vec!["RDMA devices are reached through libibverbs, which is for Linux alone".to_owned()]
    }

    pub(crate) fn locked_memory() -> Option<String> {
        None
    }

    pub(crate) fn is_simulated(_name: Option<&str>) -> bool {
        false
    }

    pub(crate) fn kernel() -> String {
        String::new()
    }

    pub(crate) fn rdma_core() -> Option<String> {
        None
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::*;
#[cfg(target_os = "linux")]
pub(super) use on_linux::*;
