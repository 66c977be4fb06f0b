//! See [`os_upgrade_fuzz_targets::desired_state`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| os_upgrade_fuzz_targets::desired_state(data));
