//! The process's allocator: mimalloc, asked for what every block of it has anyway without the detour over alignment.
//!
//! Rust names an alignment with every request, and the binding passes each to mimalloc's function for aligned blocks: twice the instructions of
//! its plain one, and for many sizes (320 bytes, say) a larger block every time, of which an aligned part is handed out. Blocks of the plain
//! function are aligned to [`NATURAL_BYTES`] from that size on, smaller ones to their size.

use core::ffi::c_void;
use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};

unsafe extern "C" {
    fn mi_malloc(size: usize) -> *mut c_void;
    fn mi_zalloc(size: usize) -> *mut c_void;
    fn mi_realloc(block: *mut c_void, size: usize) -> *mut c_void;
}

/// mimalloc's `MI_MAX_ALIGN_SIZE`.
const NATURAL_BYTES: usize = 16;

/// See the module.
pub struct Allocator;

/// Whether a plain block of so many bytes is aligned so.
const fn is_natural(size: usize, align: usize) -> bool {
    align <= NATURAL_BYTES && align <= size
}

// SAFETY: as mimalloc's own binding, to which all goes that plain blocks do not serve; `mi_free` takes both kinds.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match is_natural(layout.size(), layout.align()) {
            // SAFETY: any size may be asked for.
            true => unsafe { mi_malloc(layout.size()) }.cast(),
            // SAFETY: the caller's promise.
            false => unsafe { MiMalloc.alloc(layout) },
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match is_natural(layout.size(), layout.align()) {
            // SAFETY: any size may be asked for.
            true => unsafe { mi_zalloc(layout.size()) }.cast(),
            // SAFETY: the caller's promise.
            false => unsafe { MiMalloc.alloc_zeroed(layout) },
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { MiMalloc.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match is_natural(layout.size(), layout.align()) && is_natural(size, layout.align()) {
            // SAFETY: the block is one of ours.
            true => unsafe { mi_realloc(block.cast(), size) }.cast(),
            // SAFETY: the caller's promise.
            false => unsafe { MiMalloc.realloc(block, layout, size) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the plain function is relied upon for.
    #[test]
    fn plain_blocks_are_aligned_and_grow_and_go_like_others() {
        for size in (1..=4096).chain([5000, 1 << 16, (1 << 20) + 8, 3 << 20]) {
            for align in [1, 2, 4, 8, 16, 32, 64] {
                let layout = Layout::from_size_align(size, align).unwrap();
                // SAFETY: sizes are not zero, and each block is given back once, with its layout.
                unsafe {
                    let block = Allocator.alloc(layout);
                    assert!(!block.is_null() && block.addr().is_multiple_of(align), "{size} by {align}");
                    block.write_bytes(7, size);
                    let grown = Allocator.realloc(block, layout, size * 2);
                    assert!(!grown.is_null() && grown.addr().is_multiple_of(align), "{size} by {align}, grown");
                    assert_eq!((grown.read(), grown.add(size - 1).read()), (7, 7));
                    Allocator.dealloc(grown, Layout::from_size_align(size * 2, align).unwrap());
                    let zeroed = Allocator.alloc_zeroed(layout);
                    assert!(zeroed.addr().is_multiple_of(align) && zeroed.add(size - 1).read() == 0);
                    Allocator.dealloc(zeroed, layout);
                }
            }
        }
    }
}
