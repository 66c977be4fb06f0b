//! Why something does not go on.

use os_upgrade_api_types::body::Why;
use os_upgrade_console::describe;
use os_upgrade_kernel as kernel;

/// Why something does not go on, with its sentence.
pub(crate) fn why(why: impl Into<kernel::Why>) -> Why {
    let why = why.into();
    let text = describe(&why).to_string();
    Why::new(why, text)
}

/// The decisive why, and the others.
pub(crate) fn whys(whys: Vec<kernel::Why>) -> (Option<Why>, Vec<Why>) {
    let mut whys = whys.into_iter().map(why);
    (whys.next(), whys.collect())
}
