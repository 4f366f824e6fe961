//! Futexes, which are carried out here: which waiter a wake-up wakes is a choice of the schedule.

use crate::calls::{Call, Futex, FutexWork};
use crate::draw::Draw;
use crate::memory;
use crate::proc;
use crate::table::{ProcessNumber, Table, ThreadNumber};

/// What a futex is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// In the memory of a process, which others may have, too. Private calls do not meet others.
    Own {
        memory: ProcessNumber,
        at: u64,
        is_private: bool,
    },
    /// In a file, or in memory that processes share.
    Shared(String, u64),
}

/// A thread that waits for a futex.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    key: Key,
    bits: u32,
    /// The futex that has an owner, and that the thread takes: where it is for this thread.
    lock: Option<u64>,
}

const EAGAIN: i64 = -(libc::EAGAIN as i64);
const EFAULT: i64 = -(libc::EFAULT as i64);

/// A word of a futex that has an owner, or of a robust mutex: the owner's number, and these.
const WAITERS: u32 = libc::FUTEX_WAITERS;
const OWNER_DIED: u32 = libc::FUTEX_OWNER_DIED;
const OWNER: u32 = libc::FUTEX_TID_MASK;

impl Table {
    /// The key of a futex of a thread.
    fn key(&self, number: ThreadNumber, at: u64, is_private: bool) -> Key {
        let process = self.threads[number].process;
        let own = Key::Own {
            memory: self.processes[process].memory,
            at,
            is_private,
        };
        if is_private {
            return own;
        }
        let shared = proc::shared_at(self.threads[number].tid, at);
        shared.map_or(own, |(file, place)| Key::Shared(file, place))
    }

    /// Begins a call of `futex`: what it returns, unless it waits.
    pub(crate) fn futex(
        &mut self,
        number: ThreadNumber,
        call: Futex,
        draw: &mut Draw,
    ) -> Option<i64> {
        let tid = self.threads[number].tid;
        if let FutexWork::Fails(error) = call.what {
            return Some(-i64::from(error));
        }
        if !call.at.is_multiple_of(4) {
            return Some(-i64::from(libc::EINVAL));
        }
        let key = self.key(number, call.at, call.is_private);
        let other = |at| self.key(number, at, call.is_private);
        match call.what {
            FutexWork::Wait { value, bits, .. } => self.wait(number, call.at, value, key, bits),
            FutexWork::WaitRequeueLock { value, .. } => {
                self.wait(number, call.at, value, key, u32::MAX)
            }
            FutexWork::Wake { count, bits } => Some(self.wake(&key, count, bits, draw)),
            FutexWork::Requeue {
                count,
                moved,
                to,
                value,
            } => {
                if value.is_some_and(|value| memory::u32_at(tid, call.at) != Some(value)) {
                    return Some(EAGAIN);
                }
                let to = other(to);
                let woken = self.wake(&key, count, u32::MAX, draw);
                let waiting = self.waiting(&key, u32::MAX);
                let moved = waiting.into_iter().take(moved as usize);
                let moved = moved.filter_map(|number| {
                    let futex = self.parked_mut(number)?.futex.as_mut()?;
                    futex.key = to.clone();
                    Some(())
                });
                Some(woken + moved.count() as i64)
            }
            FutexWork::WakeOp {
                count,
                others,
                to,
                work,
            } => {
                let Some(old) = memory::u32_at(tid, to) else {
                    return Some(EFAULT);
                };
                let other = other(to);
                let (new, holds) = op(work, old);
                if !memory::write(tid, to, &new.to_ne_bytes()) {
                    return Some(EFAULT);
                }
                let woken = self.wake(&key, count, u32::MAX, draw);
                let others = if holds {
                    self.wake(&other, others, u32::MAX, draw)
                } else {
                    0
                };
                Some(woken + others)
            }
            FutexWork::Lock { is_patient, .. } => self.lock(number, call.at, key, is_patient),
            FutexWork::Unlock => match memory::u32_at(tid, call.at) {
                None => Some(EFAULT),
                Some(word) if word & OWNER != self.threads[number].own.cast_unsigned() => {
                    Some(-i64::from(libc::EPERM))
                }
                Some(_) => {
                    if !self.hand_over(&key, 0, draw) {
                        memory::write(tid, call.at, &[0; 4]);
                    }
                    Some(0)
                }
            },
            FutexWork::RequeueLock { moved, to, value } => {
                if memory::u32_at(tid, call.at) != Some(value) {
                    return Some(EAGAIN);
                }
                let to_key = other(to);
                let waiting = self.waiting(&key, u32::MAX).into_iter();
                let mut count = 0;
                for number in waiting.take((moved as usize).saturating_add(1)) {
                    let at = match self.parked(number).map(|parked| parked.notification.args) {
                        Some(args) => args[4],
                        None => continue,
                    };
                    let result = self.lock(number, at, to_key.clone(), true);
                    if let Some(parked) = self.parked_mut(number) {
                        parked.result = result;
                    }
                    count += 1;
                }
                Some(count)
            }
            FutexWork::Fails(_) | FutexWork::Other => None,
        }
    }

    /// Begins a wait.
    fn wait(
        &mut self,
        number: ThreadNumber,
        at: u64,
        value: u32,
        key: Key,
        bits: u32,
    ) -> Option<i64> {
        match memory::u32_at(self.threads[number].tid, at) {
            None => Some(EFAULT),
            Some(now) if now != value => Some(EAGAIN),
            Some(_) => {
                self.parked_mut(number)?.futex = Some(Waiting {
                    key,
                    bits,
                    lock: None,
                });
                None
            }
        }
    }

    /// Takes a futex that has an owner for a parked thread, or begins to wait for it.
    fn lock(&mut self, number: ThreadNumber, at: u64, key: Key, is_patient: bool) -> Option<i64> {
        let (tid, own) = (self.threads[number].tid, self.threads[number].own);
        let own = own.cast_unsigned();
        let Some(word) = memory::u32_at(tid, at) else {
            return Some(EFAULT);
        };
        let owner = word & OWNER;
        if owner == own {
            return Some(-i64::from(libc::EDEADLK));
        }
        let set = |word: u32| memory::write(tid, at, &word.to_ne_bytes());
        if owner == 0 {
            let is_waited = !self.waiting_for_lock(&key).is_empty();
            set(own | word & OWNER_DIED | if is_waited { WAITERS } else { 0 });
            return Some(0);
        }
        if !is_patient {
            return Some(EAGAIN);
        }
        if !self
            .living()
            .any(|other| self.threads[other].own.cast_unsigned() == owner)
        {
            return Some(-i64::from(libc::ESRCH));
        }
        set(word | WAITERS);
        self.parked_mut(number)?.futex = Some(Waiting {
            key,
            bits: u32::MAX,
            lock: Some(at),
        });
        None
    }

    /// Gives a futex that has an owner to one that waits for it. Returns whether there is one.
    fn hand_over(&mut self, key: &Key, died: u32, draw: &mut Draw) -> bool {
        let waiting = self.waiting_for_lock(key);
        if waiting.is_empty() {
            return false;
        }
        let next = waiting[draw.below(waiting.len())];
        let thread = &self.threads[next];
        let (tid, own) = (thread.tid, thread.own.cast_unsigned());
        let waiters = if waiting.len() > 1 { WAITERS } else { 0 };
        if let Some(parked) = self.parked_mut(next)
            && let Some(at) = parked.futex.take().and_then(|futex| futex.lock)
        {
            parked.result = Some(0);
            memory::write(tid, at, &(own | died | waiters).to_ne_bytes());
        }
        true
    }

    /// What the kernel wakes when a thread has ended: those that wait for its end, and for mutexes
    /// that it held.
    pub(crate) fn clear(&mut self, number: ThreadNumber, draw: &mut Draw) {
        let (process, own) = (self.threads[number].process, self.threads[number].own);
        if let Some(at) = self.threads[number].clears {
            let key = Key::Own {
                memory: self.processes[process].memory,
                at,
                is_private: false,
            };
            self.wake(&key, 1, u32::MAX, draw);
        }
        let mut waiting: Vec<_> = self.living().collect();
        waiting.sort_unstable();
        for other in waiting {
            let Some(parked) = self.parked(other).filter(|parked| parked.result.is_none()) else {
                continue;
            };
            let (Some(futex), Call::Futex(call)) = (&parked.futex, &parked.call) else {
                continue;
            };
            let at = futex.lock.unwrap_or(call.at);
            let Some(word) = memory::u32_at(parked.notification.tid, at) else {
                continue;
            };
            let (key, is_lock) = (futex.key.clone(), futex.lock.is_some());
            // The kernel has left this in the words of the thread's list of robust mutexes.
            let is_robust = word & (OWNER | OWNER_DIED) == OWNER_DIED;
            if is_lock && (is_robust || word & OWNER == own.cast_unsigned()) {
                self.hand_over(&key, OWNER_DIED, draw);
            } else if !is_lock && is_robust {
                self.wake(&key, 1, u32::MAX, draw);
            }
        }
    }

    /// The thread that holds the mutex that a parked thread waits for, if it is one of glibc's, or
    /// a futex that has an owner.
    pub(crate) fn holder(&self, number: ThreadNumber) -> Option<ThreadNumber> {
        const LOCKED_AND_WAITED_FOR: u32 = 2;
        let parked = self.parked(number)?;
        let futex = parked.futex.as_ref()?;
        let (Call::Futex(call), None) = (&parked.call, parked.result) else {
            return None;
        };
        let tid = parked.notification.tid;
        let owner = match (futex.lock, call.what) {
            (Some(at), _) => memory::u32_at(tid, at)? & OWNER,
            (None, FutexWork::Wait { value, .. }) if value == LOCKED_AND_WAITED_FOR => {
                let bytes = memory::read(tid, call.at, 20)?;
                let (words, _) = bytes.as_chunks();
                let words: Vec<_> = words.iter().map(|word| u32::from_ne_bytes(*word)).collect();
                // The lock, how often it is taken, its owner, its users, its kind.
                let [lock, _, owner, _, kind] = words[..] else {
                    return None;
                };
                (lock == LOCKED_AND_WAITED_FOR && kind < 0x400).then_some(owner)?
            }
            // A robust one.
            (None, FutexWork::Wait { value, .. })
                if value & WAITERS != 0 && memory::u32_at(tid, call.at) == Some(value) =>
            {
                value & OWNER
            }
            _ => return None,
        };
        let process = self.threads[number].process;
        let memory = |process: ProcessNumber| self.processes[process].memory;
        self.living().find(|other| {
            let thread = &self.threads[*other];
            thread.own.cast_unsigned() == owner && memory(thread.process) == memory(process)
        })
    }

    /// Those that wait for a futex and are not yet woken, by their numbers.
    fn waiting(&self, key: &Key, bits: u32) -> Vec<ThreadNumber> {
        self.waiters(|futex| futex.lock.is_none() && futex.key == *key && futex.bits & bits != 0)
    }

    /// Those that wait for a futex that has an owner.
    fn waiting_for_lock(&self, key: &Key) -> Vec<ThreadNumber> {
        self.waiters(|futex| futex.lock.is_some() && futex.key == *key)
    }

    fn waiters(&self, is: impl Fn(&Waiting) -> bool) -> Vec<ThreadNumber> {
        let waits = |number: &ThreadNumber| {
            let parked = self.parked(*number);
            parked.is_some_and(|parked| {
                parked.result.is_none() && parked.futex.as_ref().is_some_and(&is)
            })
        };
        let mut waiting: Vec<_> = self.living().filter(waits).collect();
        waiting.sort_unstable();
        waiting
    }

    fn wake(&mut self, key: &Key, count: u32, bits: u32, draw: &mut Draw) -> i64 {
        let mut waiting = self.waiting(key, bits);
        let mut woken = 0;
        while woken < i64::from(count) && !waiting.is_empty() {
            let number = waiting.swap_remove(draw.below(waiting.len()));
            if let Some(parked) = self.parked_mut(number) {
                parked.result = Some(0);
                parked.futex = None;
            }
            woken += 1;
        }
        woken
    }
}

/// The new value of the second word of a `FUTEX_WAKE_OP`, and whether the comparison with the old
/// one holds.
fn op(work: u32, old: u32) -> (u32, bool) {
    let (what, compare) = (work >> 28 & 0xf, work >> 24 & 0xf);
    // They have 12 bits, with a sign.
    let signed = |bits: u32| ((bits << 20).cast_signed() >> 20).cast_unsigned();
    let [mut operand, with] = [signed(work >> 12), signed(work)];
    if what & 8 != 0 {
        operand = 1 << (operand & 31);
    }
    let new = match what & 7 {
        0 => operand,
        1 => old.wrapping_add(operand),
        2 => old | operand,
        3 => old & !operand,
        _ => old ^ operand,
    };
    let holds = match compare {
        0 => old == with,
        1 => old != with,
        2 => (old as i32) < with as i32,
        3 => old as i32 <= with as i32,
        4 => old as i32 > with as i32,
        _ => old as i32 >= with as i32,
    };
    (new, holds)
}
