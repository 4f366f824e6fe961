//! Limits of a device.

use core::fmt;

use crate::DeviceAttr;
use crate::shown::debug_is_display;

macro_rules! limits {
    ($( $name:ident: $ty:ty = $own:expr, from $least:literal; )*) => {
        /// Limits of a device, by their names in [`DeviceAttr`]: those of its
        /// [`Profile`](crate::profile::Profile), or lower ones. Queries show them, and calls that
        /// would go beyond them fail (DEV-04).
        ///
        /// ```
        /// use verbs_api::profile::Profile;
        ///
        /// let mut limits = Profile::RXE.limits;
        /// limits.lower("max_qp", 16)?;
        /// assert_eq!((limits.max_qp, limits.max_cqe), (16, 32_767));
        /// let refused = limits.lower("max_cqe", 65_535).unwrap_err();
        /// assert_eq!(refused.to_string(), "max_cqe is 65535, allowed are 1 to 32767");
        /// # Ok::<(), verbs_api::profile::LimitError>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        #[expect(missing_docs, reason = "DeviceAttr says what each is")]
        pub struct DeviceLimits {
            $( pub $name: $ty, )*
        }

        impl DeviceLimits {
            /// Those of [`Profile::SPEC`](crate::profile::Profile::SPEC). The specification has
            /// none of its own.
            pub const SPEC: Self = Self { $( $name: $own, )* };

            /// The limits that a device reports.
            pub fn of(attr: &DeviceAttr) -> Self {
                Self { $( $name: attr.$name, )* }
            }

            /// Lets a device report these; for backends.
            pub fn put_into(&self, attr: &mut DeviceAttr) {
                $( attr.$name = self.$name; )*
            }

            /// Lowers a limit.
            ///
            /// # Errors
            /// [`LimitError`], with what is allowed.
            pub fn lower(&mut self, name: &str, value: u64) -> Result<(), LimitError> {
                match name {
                    $( stringify!($name) => {
                        let name = stringify!($name);
                        self.$name = lowered(name, value, $least, self.$name)?;
                    } )*
                    _ => return Err(LimitError::Unknown(name.to_owned())),
                }
                Ok(())
            }

            /// All limits, by name.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$( (stringify!($name), self.$name.into()) ),*].into_iter()
            }
        }
    };
}

limits! {
    max_ah: u32 = 65_536, from 0;
    max_cq: u32 = 65_536, from 1;
    max_cqe: u32 = 4_194_304, from 1;
    max_inline_data: u32 = 1024, from 0;
    max_mcast_grp: u32 = 128, from 0;
    max_mcast_qp_attach: u32 = 64, from 0;
    max_mr: u32 = 1 << 20, from 1;
    max_mr_size: u64 = 1 << 40, from 1;
    max_mw: u32 = 65_536, from 0;
    max_pd: u32 = 65_536, from 1;
    max_qp: u32 = 130_942, from 1;
    max_qp_init_rd_atom: u8 = 128, from 0;
    max_qp_rd_atom: u8 = 128, from 0;
    max_qp_wr: u32 = 32_768, from 1;
    max_sge: u32 = 32, from 1;
    max_srq: u32 = 65_536, from 0;
    max_srq_sge: u32 = 32, from 1;
    max_srq_wr: u32 = 32_768, from 1;
    num_comp_vectors: u32 = 4, from 1;
}

/// Why a limit cannot be lowered.
#[derive(Clone, PartialEq, Eq)]
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
        /// The greatest allowed: what it is now.
        most: u64,
    },
}

fn lowered<T>(name: &'static str, value: u64, least: u64, own: T) -> Result<T, LimitError>
where
    T: Copy + Into<u64> + TryFrom<u64>,
{
    let most = own.into();
    let fits = (least..=most).contains(&value).then_some(value);
    fits.and_then(|value| T::try_from(value).ok())
        .ok_or(LimitError::OutOfRange {
            name,
            value,
            least,
            most,
        })
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => {
                let all: Vec<_> = DeviceLimits::SPEC.iter().map(|(name, _)| name).collect();
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

debug_is_display!(LimitError);

impl core::error::Error for LimitError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_lowered_within_what_there_is() {
        for (name, own) in DeviceLimits::SPEC.iter() {
            let mut limits = DeviceLimits::SPEC;
            limits.lower(name, own).unwrap();
            assert_eq!(limits, DeviceLimits::SPEC);
            let Err(LimitError::OutOfRange { least, most, .. }) = limits.lower(name, own + 1)
            else {
                panic!("{name} has no end");
            };
            assert_eq!(most, own);
            limits.lower(name, least).unwrap();
            assert!(limits.iter().any(|limit| limit == (name, least)));
            assert!(least == 0 || limits.lower(name, least - 1).is_err());
            assert!(limits.lower(name, own).is_err(), "{name} is lower now");
        }
        let unknown = DeviceLimits::SPEC.clone().lower("max_fun", 1).unwrap_err();
        assert!(unknown.to_string().contains("max_qp, "), "{unknown}");
    }
}
