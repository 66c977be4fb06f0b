//! See [`os_upgrade_fuzz_targets::provider_url`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| os_upgrade_fuzz_targets::provider_url(data));
