//! The objects there are, and whose children they are.

use core::fmt;
use smallvec::SmallVec;
use verbs_api::lab::Live;

use super::map::Map;
use verbs_api::{Context, Cq, Handle, Object};

/// An object of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    kind: Object,
    /// Handles of one kind stand for those of all.
    handle: Cq,
}

impl Id {
    pub(crate) fn of<H: Handle>(handle: H) -> Self {
        Self {
            kind: H::OBJECT,
            handle: Cq::from_parts(handle.context(), handle.index(), handle.generation()),
        }
    }

    fn context(&self) -> Context {
        self.handle.context()
    }
}

impl fmt::Display for Id {
    /// As handles are shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.kind, self.handle.index())?;
        match self.handle.generation() {
            1 => Ok(()),
            more => write!(f, ".{more}"),
        }
    }
}

/// All objects in contexts.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    living: Map<Id, Living>,
    /// How often an object came or began to go.
    changes: u64,
}

#[derive(Debug, Default)]
struct Living {
    parents: SmallVec<[Id; 1]>,
    /// How often it is a parent.
    children: u32,
    /// Calls under way that destroy it: it may be gone.
    leaving: u32,
}

/// The state before an object is destroyed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaving {
    changes: u64,
    childless: bool,
}

impl Objects {
    pub(crate) fn made(&mut self, id: Id, parents: &[Id]) {
        self.changes += 1;
        for parent in parents {
            self.count_child(*parent, 1);
        }
        let living = Living {
            parents: parents.into(),
            ..Living::default()
        };
        self.living.insert(id, living);
    }

    /// It has another parent of a kind.
    pub(crate) fn moved(&mut self, id: Id, parent: Id) {
        let Some(living) = self.living.get_mut(&id) else {
            return;
        };
        let mut parents = living.parents.iter_mut();
        let old = parents.find(|old| old.kind == parent.kind);
        if let Some(old) = old.map(|old| core::mem::replace(old, parent)) {
            self.count_child(old, -1);
            self.count_child(parent, 1);
        }
    }

    fn count_child(&mut self, parent: Id, more: i32) {
        if let Some(parent) = self.living.get_mut(&parent) {
            parent.children = parent.children.saturating_add_signed(more);
        }
    }

    /// A call that destroys an object begins.
    pub(crate) fn leaving(&mut self, id: Id) -> Leaving {
        self.changes += 1;
        let mut childless = false;
        if let Some(living) = self.living.get_mut(&id) {
            living.leaving += 1;
            childless = living.children == 0;
        }
        let changes = self.changes;
        Leaving { changes, childless }
    }

    /// The call has failed, because the object is in use or for another reason: what is wrong with
    /// that.
    pub(crate) fn stays(&mut self, id: Id, before: Leaving, busy: bool) -> Result<(), String> {
        let Some(living) = self.living.get_mut(&id) else {
            return Ok(());
        };
        living.leaving -= 1;
        let is_strange = busy && before.childless && before.changes == self.changes;
        if is_strange && PARENTS.contains(&id.kind) {
            Err(format!("{id} is said to be in use, and nothing uses it"))
        } else {
            Ok(())
        }
    }

    /// The object was destroyed: the invariant that this breaks, if any.
    pub(crate) fn gone(&mut self, id: Id) -> Result<(), String> {
        let Some(gone) = self.living.remove(&id) else {
            return Ok(());
        };
        for parent in &gone.parents {
            self.count_child(*parent, -1);
        }
        let mut others = self.living.iter().filter(|_| gone.children > 0);
        let child = others.find(|(_, other)| other.leaving == 0 && other.parents.contains(&id));
        match child {
            Some((child, _)) => Err(format!("{id} was destroyed while {child} used it")),
            None => Ok(()),
        }
    }

    pub(crate) fn closed(&mut self, context: Context) {
        self.changes += 1;
        self.living.retain(|id, _| id.context() != context);
    }

    /// How many objects of a kind live in contexts.
    pub(crate) fn count(&self, kind: Object, is_of: impl Fn(Context) -> bool) -> u32 {
        let all = self.living.keys();
        all.filter(|id| id.kind == kind && is_of(id.context()))
            .count() as u32
    }

    /// Whether no call that destroys something is under way.
    pub(crate) fn is_still(&self) -> bool {
        self.living.values().all(|living| living.leaving == 0)
    }
}

/// The objects that a simulator counts, by kind.
pub(crate) fn counted(live: &Live) -> [(Object, u32); 11] {
    [
        (Object::Pd, live.pds),
        (Object::Td, live.tds),
        (Object::Mr, live.mrs),
        (Object::Mw, live.mws),
        (Object::Dm, live.dms),
        (Object::CompChannel, live.channels),
        (Object::Cq, live.cqs),
        (Object::Qp, live.qps),
        (Object::Ah, live.ahs),
        (Object::Srq, live.srqs),
        (Object::Xrcd, live.xrcds),
    ]
}

/// What is in use by its children alone. A region is also by windows, a QP by multicast groups.
const PARENTS: [Object; 7] = [
    Object::Pd,
    Object::Td,
    Object::Dm,
    Object::CompChannel,
    Object::Cq,
    Object::Srq,
    Object::Xrcd,
];
