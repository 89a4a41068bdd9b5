//! Writing values with all their fields, so that one can see which fields a type has.

use std::cell::Cell;

thread_local! {
    static WHOLE: Cell<bool> = const { Cell::new(false) };
}

/// For `skip_serializing_if` on types that go both ways: leaves out what is not set, except within [`write`].
pub(crate) fn unset<T>(field: &Option<T>) -> bool {
    field.is_none() && !is_whole()
}

/// A function of its own, so that it is not compiled again for each type of field.
#[inline(never)]
fn is_whole() -> bool {
    WHOLE.get()
}

/// Runs `encode` such that it writes each field, unset ones as null.
pub(crate) fn write<R>(encode: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            WHOLE.set(self.0);
        }
    }
    let _restore = Restore(WHOLE.replace(true));
    encode()
}
