//! Objects in slots, named by index and generation: what a backend keeps behind its handles.

use std::collections::VecDeque;

use crate::error::BadHandle;

/// A table of objects. A freed slot is used again with the next generation, but only after
/// [`QUARANTINE`] others were freed, so that numbers made from an index are not reused at once.
#[derive(Clone, Debug)]
pub struct Table<T> {
    slots: Vec<Slot<T>>,
    free: VecDeque<u32>,
    quarantine: usize,
    live: u32,
}

#[derive(Clone, Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

/// Index and generation of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    /// The slot.
    pub index: u32,
    /// The number of objects that have been in the slot, including this one.
    pub generation: u32,
}

/// Set in the generation of a slot whose object is corrupt.
const CORRUPT: u32 = 1 << 31;

/// The last generation of a slot.
const LAST: u32 = CORRUPT - 1;

/// The number of freed slots that rest before the oldest is reused.
pub const QUARANTINE: usize = 64;

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: VecDeque::new(),
            quarantine: QUARANTINE,
            live: 0,
        }
    }
}

impl<T> Table<T> {
    /// A table that uses a freed slot at once, the one that was freed last.
    pub fn without_quarantine() -> Self {
        Self {
            quarantine: 0,
            ..Self::default()
        }
    }

    /// The number of objects.
    pub fn len(&self) -> u32 {
        self.live
    }

    /// The number of slots used so far: every index is below it.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Whether none lives.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// The object of a handle's index and generation.
    ///
    /// # Errors
    /// What is wrong with the handle, if it names no object that lives.
    #[inline(always)]
    pub fn get(&self, index: u32, generation: u32) -> Result<&T, BadHandle> {
        match self.slots.get(index as usize) {
            Some(slot) if slot.generation == generation => {
                slot.value.as_ref().ok_or(BadHandle::Stale)
            }
            slot => Err(Self::problem(slot, generation)),
        }
    }

    fn problem(slot: Option<&Slot<T>>, generation: u32) -> BadHandle {
        match slot {
            _ if generation == 0 => BadHandle::Null,
            Some(slot) if slot.generation == generation | CORRUPT => BadHandle::Corrupt,
            Some(slot) if generation < slot.generation => BadHandle::Stale,
            _ => BadHandle::Foreign,
        }
    }

    /// The object at an index that is known to be in use; panics otherwise.
    #[inline(always)]
    pub fn at(&self, index: u32) -> &T {
        self.slots[index as usize]
            .value
            .as_ref()
            .expect("the index is in use")
    }

    /// The object at an index that is known to be in use; panics otherwise.
    #[inline(always)]
    pub fn at_mut(&mut self, index: u32) -> &mut T {
        self.slots[index as usize]
            .value
            .as_mut()
            .expect("the index is in use")
    }

    /// The object of this index and generation if it lives, corrupt or not.
    #[inline(always)]
    pub fn live_mut(&mut self, index: u32, generation: u32) -> Option<&mut T> {
        let slot = self.slots.get_mut(index as usize)?;
        let is_it = slot.generation & !CORRUPT == generation;
        slot.value.as_mut().filter(|_| is_it)
    }

    /// The object at an index, if it is in use.
    #[inline(always)]
    pub fn peek(&self, index: u32) -> Option<&T> {
        self.slots.get(index as usize)?.value.as_ref()
    }

    /// Puts in an object made from its id.
    pub fn insert(&mut self, make: impl FnOnce(Id) -> T) -> Id {
        let freed = match self.quarantine {
            0 => self.free.pop_back(),
            rest if self.free.len() > rest => self.free.pop_front(),
            _ => None,
        };
        let index = freed.unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                value: None,
            });
            u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 objects")
        });
        let slot = &mut self.slots[index as usize];
        slot.generation += 1;
        let id = Id {
            index,
            generation: slot.generation,
        };
        slot.value = Some(make(id));
        self.live += 1;
        id
    }

    /// Takes out the object at an index that is known to be in use; panics otherwise.
    pub fn remove(&mut self, index: u32) -> T {
        let slot = &mut self.slots[index as usize];
        let value = slot.value.take().expect("the index is in use");
        slot.generation &= !CORRUPT;
        // There is no further generation for a slot whose objects have had all of them.
        if slot.generation < LAST {
            self.free.push_back(index);
        }
        self.live -= 1;
        value
    }

    /// Marks the id of an object as corrupt, or as valid again.
    ///
    /// # Errors
    /// As for [`get`](Self::get), but that a corrupt object is found.
    pub fn corrupt_handle(&mut self, id: Id, corrupt: bool) -> Result<(), BadHandle> {
        match self.get(id.index, id.generation) {
            Ok(_) | Err(BadHandle::Corrupt) => {}
            Err(problem) => return Err(problem),
        }
        let mark = if corrupt { CORRUPT } else { 0 };
        self.slots[id.index as usize].generation = id.generation | mark;
        Ok(())
    }

    /// The indices of the live objects that are `wanted`, in order.
    pub fn indices(&self, wanted: impl Fn(&T) -> bool) -> Vec<u32> {
        self.iter()
            .filter(|(_, object)| wanted(object))
            .map(|(index, _)| index)
            .collect()
    }

    /// The live objects in the order of their index.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..)
            .zip(&self.slots)
            .filter_map(|(index, slot)| Some((index, slot.value.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_id_never_names_the_next_object() {
        let mut table = Table::default();
        let mut old = Vec::new();
        for i in 0..500 {
            let id = table.insert(|_| i);
            assert_eq!(table.get(id.index, id.generation), Ok(&i));
            table.remove(id.index);
            old.push(id);
        }
        assert!(table.slots.len() < 100, "slots are used again");
        for id in old {
            assert_eq!(table.get(id.index, id.generation), Err(BadHandle::Stale));
        }
        assert_eq!(table.get(0, 0), Err(BadHandle::Null));
        assert_eq!(table.get(9999, 1), Err(BadHandle::Foreign));
    }

    #[test]
    fn a_slot_rests_until_enough_others_were_freed_after_it() {
        let mut table = Table::default();
        let all: Vec<_> = (0..=QUARANTINE).map(|i| table.insert(|_| i)).collect();
        for id in &all[..QUARANTINE] {
            table.remove(id.index);
        }
        // All that are free still rest, and the next object gets a slot of its own.
        let next = table.insert(|_| 0);
        assert!(!all.iter().any(|id| id.index == next.index));
        table.remove(all[QUARANTINE].index);
        // Now the one that was freed first has rested.
        let reused = table.insert(|_| 0);
        assert_eq!(reused.index, all[0].index);
        table.remove(next.index);
        assert_eq!(table.insert(|_| 0).index, all[1].index);
    }

    #[test]
    fn without_quarantine_a_slot_is_used_at_once_under_another_id() {
        let mut table = Table::without_quarantine();
        let [other, first] = [0, 1].map(|_| table.insert(|_| 'a'));
        table.remove(other.index);
        table.remove(first.index);
        let second = table.insert(|_| 'b');
        assert_eq!(second.index, first.index);
        assert_eq!(
            table.get(first.index, first.generation),
            Err(BadHandle::Stale)
        );
    }

    #[test]
    fn a_slot_whose_generations_are_used_up_is_never_used_again() {
        let mut table = Table::without_quarantine();
        let first = table.insert(|_| 'a');
        table.remove(first.index);
        table.slots[0].generation = LAST - 1;
        let last = table.insert(|_| 'b');
        assert_eq!((last.index, last.generation), (0, LAST));
        assert_eq!(table.get(0, LAST), Ok(&'b'));
        table.corrupt_handle(last, true).unwrap();
        assert_eq!(table.get(0, LAST), Err(BadHandle::Corrupt));
        table.remove(0);
        let next = table.insert(|_| 'c');
        assert_eq!((next.index, next.generation), (1, 1));
        assert_eq!(table.get(0, LAST), Err(BadHandle::Stale));
        assert_eq!(table.get(0, 1), Err(BadHandle::Stale));
    }

    #[test]
    fn a_corrupt_object_is_found_only_once_it_is_put_right() {
        let mut table = Table::default();
        let id = table.insert(|_| 'a');
        table.corrupt_handle(id, true).unwrap();
        assert_eq!(table.get(id.index, id.generation), Err(BadHandle::Corrupt));
        table.corrupt_handle(id, false).unwrap();
        assert_eq!(table.get(id.index, id.generation), Ok(&'a'));
        table.corrupt_handle(id, true).unwrap();
        table.remove(id.index);
        assert_eq!(table.get(id.index, id.generation), Err(BadHandle::Stale));
        assert_eq!(table.corrupt_handle(id, false), Err(BadHandle::Stale));
    }

    /// Even if other objects were in its slot before.
    #[test]
    fn a_corrupt_object_keeps_its_id() {
        let mut table = Table::without_quarantine();
        for round in 1..5 {
            let id = table.insert(|_| round);
            assert_eq!(id.generation, round);
            for corrupt in [true, false] {
                table.corrupt_handle(id, corrupt).unwrap();
                let found = table.get(id.index, id.generation);
                let expected = if corrupt {
                    Err(BadHandle::Corrupt)
                } else {
                    Ok(&round)
                };
                assert_eq!(found, expected);
            }
            table.corrupt_handle(id, true).unwrap();
            table.remove(id.index);
        }
    }
}
