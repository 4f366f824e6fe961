//! The filter, as classic BPF.

use libc::{BPF_ABS, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter};
use libc::{SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, SECCOMP_RET_USER_NOTIF};

use crate::calls::{REFUSED, TRAPPED};

/// Where the kernel puts the number of the call and the architecture.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;

/// The architecture whose numbers `TRAPPED` has.
const NATIVE: u32 = if cfg!(target_arch = "x86_64") {
    0xc000_003e // AUDIT_ARCH_X86_64
} else {
    0xc000_00b7 // AUDIT_ARCH_AARCH64
};

/// The first number of x32, another set of calls of x86-64.
const X32: u32 = 0x4000_0000;

/// Answers `ENOSYS`.
const REFUSE: u32 = SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

/// Stops the trapped calls, refuses those of [`REFUSED`] and of x32, and lets all others pass, at
/// full speed. So do those of programs for another architecture: they are noticed as threads that
/// make no call.
pub(crate) fn filter() -> Vec<sock_filter> {
    let op = |code: u32, k, [jt, jf]: [u8; 2]| sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let load = |at| op(BPF_LD | BPF_W | BPF_ABS, at, [0, 0]);
    let jump = |k, offsets| op(BPF_JMP | BPF_JEQ | BPF_K, k, offsets);
    let end = |action| op(BPF_RET | BPF_K, action, [0, 0]);
    let is_x32 = |offset| op(BPF_JMP | BPF_JGE | BPF_K, X32, [offset, 0]);
    let count = |list: usize| u8::try_from(list).expect("a jump is at most 255 instructions");
    let (refused, trapped) = (count(REFUSED.len()), count(TRAPPED.len()));
    let all = refused + trapped;
    // At the end: allow, trap, refuse.
    let mut program = vec![
        load(ARCH),
        jump(NATIVE, [0, all + 2]),
        load(NUMBER),
        is_x32(all + 2),
    ];
    for (left, call) in (1..=trapped).rev().zip(TRAPPED) {
        program.push(jump(*call as u32, [refused + left, 0]));
    }
    for (left, call) in (1..=refused).rev().zip(REFUSED) {
        program.push(jump(*call, [left + 1, 0]));
    }
    program.extend([
        end(SECCOMP_RET_ALLOW),
        end(SECCOMP_RET_USER_NOTIF),
        end(REFUSE),
    ]);
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the filter decides, by its rules: there is no other judge of a number than a run.
    fn action(program: &[sock_filter], arch: u32, number: u32) -> u32 {
        let (mut at, mut value) = (0, 0);
        loop {
            let op = program[at];
            at += 1;
            match u32::from(op.code) {
                code if code == BPF_LD | BPF_W | BPF_ABS => {
                    value = if op.k == ARCH { arch } else { number };
                }
                code if code == BPF_RET | BPF_K => return op.k,
                code => {
                    let holds = if code == BPF_JMP | BPF_JGE | BPF_K {
                        value >= op.k
                    } else {
                        value == op.k
                    };
                    at += usize::from(if holds { op.jt } else { op.jf });
                }
            }
        }
    }

    #[test]
    fn each_call_of_the_tables_is_trapped_or_refused_and_no_other() {
        let program = filter();
        for number in 0..1024 {
            let is_trapped = TRAPPED.iter().any(|call| *call as u32 == number);
            let expected = if is_trapped {
                SECCOMP_RET_USER_NOTIF
            } else if REFUSED.contains(&number) {
                REFUSE
            } else {
                SECCOMP_RET_ALLOW
            };
            assert_eq!(action(&program, NATIVE, number), expected, "{number}");
            assert_eq!(action(&program, NATIVE + 1, number), SECCOMP_RET_ALLOW);
            assert_eq!(action(&program, NATIVE, X32 | number), REFUSE);
        }
        assert_eq!(action(&program, NATIVE, u32::MAX), REFUSE);
        assert!(program.len() <= 60 + TRAPPED.len());
    }
}
