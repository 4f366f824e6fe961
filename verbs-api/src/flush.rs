//! What a flush does, and to which bytes.

use bitflags::bitflags;

bitflags! {
    /// What a flush makes true of data (`enum ibv_placement_type`). Four bits on the wire; those
    /// without a name are carried.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct PlacementType: u8 {
        /// It is visible to all of the machine.
        const GLOBAL = 1 << 0;
        /// It outlasts a loss of power.
        const PERSISTENT = 1 << 1;
        const _ = !0;
    }
}

/// Which bytes a flush is for (`enum ibv_selectivity_level`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SelectivityLevel {
    /// The bytes from its address on, as many as its length says.
    Range,
    /// All bytes of the region that its key names, whatever its address and length are.
    Mr,
}

impl SelectivityLevel {
    /// The level of this number in C and on the wire, if there is one.
    pub const fn from_raw(raw: u8) -> Option<Self> {
        match raw {
            0 => Some(Self::Range),
            1 => Some(Self::Mr),
            _ => None,
        }
    }

    /// Its number in C and on the wire.
    pub const fn raw(self) -> u8 {
        match self {
            Self::Range => 0,
            Self::Mr => 1,
        }
    }
}
