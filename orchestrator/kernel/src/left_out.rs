//! What is left out of JSON.

/// Whether a field has its default, such as `false` or 0, and is left out.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
