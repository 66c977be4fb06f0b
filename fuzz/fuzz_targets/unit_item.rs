//! See [`os_upgrade_fuzz_targets::unit_item`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| os_upgrade_fuzz_targets::unit_item(data));
