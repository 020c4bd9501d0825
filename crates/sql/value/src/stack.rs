//! Room on the stack for the deepest statement that is let in.
//!
//! Problem: trees are walked by recursion, and some of the walks cannot fail (dropping, copying, comparing) or are not ours. Idea:
//! depth is bounded once, where a text comes in (`syntax::depth`) and where views and values add to it, and all work on
//! statements begins with at least [`BYTES`] of stack, which hold the deepest tree. So no input ends a stack.
//!
//! Threads of connections are made with that much, so that nothing is done for them; on a smaller stack (a test's thread, another
//! program's) the work moves to a stack of its own, and comes back.

/// Stack that a statement may need. A debug build keeps what an optimised one does not; memory is only taken for what is used.
pub const BYTES: usize = if cfg!(debug_assertions) { 512 << 20 } else { 64 << 20 };

/// Calls `f` with [`BYTES`] of stack.
#[inline]
pub fn roomy<R>(f: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(BYTES, BYTES + (1 << 20), f)
}
