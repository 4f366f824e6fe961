//! Limits of devices that a simulation can choose.

use core::fmt;

use verbs_api::DeviceAttr;

/// Limits of the devices that are below those they have by themselves, by their names in
/// [`DeviceAttr`]. Queries show them, and calls that would go beyond them fail.
///
/// ```
/// use verbs_api::Verbs;
/// use verbs_sim::{DeviceLimits, Sim, SimConfig};
///
/// let mut limits = DeviceLimits::NONE;
/// limits.set("max_qp", 16)?;
/// let sim = Sim::new(SimConfig::new().limits(limits));
/// let context = sim.open_device("sim0")?;
/// assert_eq!(sim.query_device(context)?.max_qp, 16);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceLimits([Option<u64>; LIMITS.len()]);

/// Why a limit cannot be set.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitError {
    /// No limit has this name.
    Unknown(String),
    /// The value is not one that it can have.
    OutOfRange {
        /// The limit.
        name: &'static str,
        /// The value.
        value: u64,
        /// The least allowed.
        least: u64,
        /// The greatest allowed: what the devices have by themselves.
        most: u64,
    },
}

impl DeviceLimits {
    /// None is changed.
    pub const NONE: Self = Self([None; LIMITS.len()]);

    /// Sets a limit.
    ///
    /// # Errors
    /// [`LimitError`], with what is allowed.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), LimitError> {
        let Some(at) = LIMITS.iter().position(|limit| limit.name == name) else {
            return Err(LimitError::Unknown(name.to_owned()));
        };
        let Limit {
            name, least, get, ..
        } = LIMITS[at];
        let most = get(&crate::node::greatest());
        if !(least..=most).contains(&value) {
            return Err(LimitError::OutOfRange {
                name,
                value,
                least,
                most,
            });
        }
        self.0[at] = Some(value);
        Ok(())
    }

    /// The names of all limits.
    pub fn names() -> impl Iterator<Item = &'static str> {
        LIMITS.iter().map(|limit| limit.name)
    }

    pub(crate) fn apply(&self, attr: &mut DeviceAttr) {
        for (limit, value) in LIMITS.iter().zip(self.0) {
            if let Some(value) = value {
                let own = (limit.get)(attr);
                (limit.set)(attr, value.min(own));
            }
        }
    }
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => {
                let all: Vec<_> = DeviceLimits::names().collect();
                write!(f, "no limit is called {name}; there are {}", all.join(", "))
            }
            Self::OutOfRange {
                name,
                value,
                least,
                most,
            } => write!(f, "{name} is {value}, allowed are {least} to {most}"),
        }
    }
}

impl std::error::Error for LimitError {}

#[derive(Clone, Copy)]
struct Limit {
    name: &'static str,
    least: u64,
    get: fn(&DeviceAttr) -> u64,
    set: fn(&mut DeviceAttr, u64),
}

macro_rules! limits {
    ($( $name:ident from $least:literal, )*) => { [$( Limit {
        name: stringify!($name),
        least: $least,
        get: |attr| attr.$name.into(),
        // Never above what the device has by itself, which fits.
        set: |attr, value| attr.$name = value as _,
    }, )*] };
}

const LIMITS: [Limit; 19] = limits! {
    max_ah from 0,
    max_cq from 1,
    max_cqe from 1,
    max_inline_data from 0,
    max_mcast_grp from 0,
    max_mcast_qp_attach from 0,
    max_mr from 1,
    max_mr_size from 1,
    max_mw from 0,
    max_pd from 1,
    max_qp from 1,
    max_qp_init_rd_atom from 0,
    max_qp_rd_atom from 0,
    max_qp_wr from 1,
    max_sge from 1,
    max_srq from 0,
    max_srq_sge from 1,
    max_srq_wr from 1,
    num_comp_vectors from 1,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_set_within_what_the_device_has() {
        for name in DeviceLimits::names() {
            let mut limits = DeviceLimits::NONE;
            let Err(LimitError::OutOfRange { least, most, .. }) = limits.set(name, u64::MAX) else {
                panic!("{name} has no end");
            };
            assert!(limits.set(name, most + 1).is_err() && limits.set(name, most).is_ok());
            limits.set(name, least).unwrap();
            assert!(least == 0 || limits.set(name, least - 1).is_err());
            let mut attr = crate::node::greatest();
            limits.apply(&mut attr);
            assert_ne!(attr, crate::node::greatest(), "{name}");
        }
        let unknown = DeviceLimits::NONE.clone().set("max_fun", 1).unwrap_err();
        assert!(unknown.to_string().contains("max_qp, "), "{unknown}");
    }
}
