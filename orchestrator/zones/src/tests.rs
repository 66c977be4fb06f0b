//! Directories of zone files, whole and damaged.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;

use chrono_tz::Tz;
use os_upgrade_calendar::{Calendar, Window};
use tempfile::TempDir;

use super::*;

/// A zone file, as zic writes it with `-b slim`: nothing in the first block, and no changes in the second but those that
/// `footer` describes.
fn slim(offset: i32, footer: &str) -> Vec<u8> {
    with_leap_seconds(offset, footer, 0)
}

fn with_leap_seconds(offset: i32, footer: &str, leap_seconds: u32) -> Vec<u8> {
    let header = |counts: [u32; 6]| {
        let mut header = b"TZif2".to_vec();
        header.extend([0; 15]);
        header.extend(counts.into_iter().flat_map(u32::to_be_bytes));
        header
    };
    let block = |leap_bytes: usize| {
        let mut block = offset.to_be_bytes().to_vec();
        block.extend([0, 0, 0]);
        block.extend((0..leap_seconds).flat_map(|number| {
            let at = 78_796_800 + u64::from(number) * 31_536_001;
            let at = at.to_be_bytes();
            [&at[8 - leap_bytes..], &(number + 1).to_be_bytes()].concat()
        }));
        block
    };
    // The first block is as short as the format allows.
    let mut data = header([0, 0, 0, 0, 1, 1]);
    data.extend([0; 7]);
    data.extend(header([0, 0, leap_seconds, 0, 1, 1]));
    data.extend(block(8));
    data.extend(format!("\n{footer}\n").bytes());
    data
}

/// A directory with these files.
fn directory(files: &[(&str, Vec<u8>)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, data) in files {
        write(directory.path(), name, data);
    }
    directory
}

fn write(directory: &Path, name: &str, data: &[u8]) {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, data).unwrap();
}

/// When a window at 01:30 opens in `zone` on `day`.
fn opens(zones: &Zones, zone: Tz, day: &str) -> String {
    let json = format!(
        r#"{{"days-of-week": "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday", "start-time": "01:30",
            "duration": "1h", "not-before": "{day}"}}"#
    );
    let windows: [Window; 1] = [serde_json::from_str(&json).unwrap()];
    let found = Calendar::new(&windows, &[], zone, zones).next("2026-01-01T00:00:00Z".parse().unwrap());
    found.unwrap().unwrap().start.to_rfc3339()
}

fn said(data: &ZoneData) -> String {
    data.problem.as_ref().unwrap().to_string()
}

/// What zones that are not there have.
fn compiled(zone: Tz, day: &str) -> String {
    opens(&read_from(Path::new("/nonexistent")).zones, zone, day)
}

/// British Columbia keeps its summer time from 2026-11-01 on, as is compiled in.
#[test]
fn systems_rules_take_the_place_of_those_compiled_in() {
    let vancouver = Tz::America__Vancouver;
    let directory = directory(&[
        ("America/Vancouver", slim(-32_400, "<-09>9")),
        ("tzdata.zi", b"# version 2999f\n# This zic input file is in the public domain.\n".to_vec()),
    ]);
    let data = read_from(directory.path());
    assert_eq!(data.zones.version(), Some("2999f"));
    assert_eq!(data.to_string(), format!("2999f, from {}", directory.path().display()));
    assert_eq!(opens(&data.zones, vancouver, "2026-11-28"), "2026-11-28T10:30:00+00:00");
    assert_eq!(compiled(vancouver, "2026-11-28"), "2026-11-28T08:30:00+00:00");
    // A zone without a file.
    assert_eq!(opens(&data.zones, Tz::Asia__Tokyo, "2026-11-28"), "2026-11-27T16:30:00+00:00");
    let expected = format!(
        "{}: there is no file for Africa/Abidjan, Africa/Accra, Africa/Addis_Ababa and 593 more; the rules of these zones \
         are those compiled in, {}",
        directory.path().display(),
        built_in_version()
    );
    assert_eq!(said(&data), expected);
}

/// A file of another tool may have no footer. The library gives its last change for ever.
#[test]
fn without_footer_the_last_offset_stays() {
    let data = include_bytes!("../../../fuzz/corpus/zone_file/no_footer").to_vec();
    let directory = directory(&[("Europe/Stockholm", data)]);
    let zones = read_from(directory.path()).zones;
    for (day, utc) in [
        ("2026-07-01", "2026-06-30T23:30"),
        ("2026-12-01", "2026-12-01T00:30"),
        ("2027-07-01", "2027-07-01T00:30"),
    ] {
        assert_eq!(opens(&zones, Tz::Europe__Stockholm, day), format!("{utc}:00+00:00"), "{day}");
    }
}

/// All that comes after the last change in a file is in its footer.
#[test]
fn footers_are_read() {
    let data = slim(3_600, "CET-1CEST,M3.5.0,M10.5.0/3");
    let directory = directory(&[("Europe/Stockholm", data)]);
    let zones = read_from(directory.path()).zones;
    for day in ["2026-03-29", "2026-03-30", "2026-10-25", "2026-10-26", "2099-07-01", "2100-12-31"] {
        let found = opens(&zones, Tz::Europe__Stockholm, day);
        assert_eq!(found, compiled(Tz::Europe__Stockholm, day), "{day}");
    }
}

#[test]
fn without_data_the_compiled_ones_count() {
    let empty = tempfile::tempdir().unwrap();
    for directory in [empty.path().to_owned(), empty.path().join("absent")] {
        let data = read_from(&directory);
        assert_eq!(data.zones.source(), ZoneSource::BuiltIn);
        assert!(data.problem.is_none());
        let expected = format!(
            "{}, compiled in, as {} has none that can be used",
            built_in_version(),
            directory.display()
        );
        assert_eq!(data.to_string(), expected);
    }
}

/// The rules of chrono-tz, which are older, would count otherwise.
#[test]
fn every_zone_is_compiled_in() {
    let absent: Vec<Tz> = TZ_VARIANTS.into_iter().filter(|zone| built_in(*zone).is_none()).collect();
    assert_eq!(absent, []);
}

/// Debian and others package old names apart. Their rules are not those compiled in, which may be older.
#[test]
fn absent_names_are_found_by_their_links() {
    let database = "# version 2999f\nZ America/Vancouver -8 - MST\nL America/Vancouver Canada/Pacific\nL x\nL\n\
                    L ../../etc/passwd Cuba\n";
    let directory = directory(&[
        ("America/Vancouver", slim(-32_400, "<-09>9")),
        ("tzdata.zi", database.as_bytes().to_vec()),
    ]);
    let data = read_from(directory.path());
    assert_eq!(opens(&data.zones, Tz::Canada__Pacific, "2026-11-28"), "2026-11-28T10:30:00+00:00");
    assert_eq!(opens(&data.zones, Tz::Cuba, "2026-11-28"), compiled(Tz::Cuba, "2026-11-28"));
}

/// Each of these files leaves its zone the rules that are compiled in, and is named.
#[test]
fn unusable_files_are_named() {
    let changing_daily = {
        // One change a day between two offsets.
        let mut data = b"TZif2".to_vec();
        data.extend([0; 15]);
        data.extend([0_u32, 0, 0, 0, 1, 1].into_iter().flat_map(u32::to_be_bytes));
        data.extend([0; 7]);
        data.extend_from_slice(b"TZif2");
        data.extend([0; 15]);
        data.extend([0_u32, 0, 0, 3, 2, 1].into_iter().flat_map(u32::to_be_bytes));
        data.extend((1..4_i64).flat_map(|day| (day * 86_400).to_be_bytes()));
        data.extend([1, 0, 1]);
        data.extend([0, 0, 0, 0, 0, 0]);
        data.extend([0, 0, 14, 16, 0, 0]);
        data.extend(b"\0\n\n");
        data
    };
    let whole = slim(0, "UTC0");
    for (data, why) in [
        (vec![], "it is damaged, or no time zone file"),
        (b"TZif2".to_vec(), "it is damaged, or no time zone file"),
        (whole[..whole.len() / 2].to_vec(), "it is damaged, or no time zone file"),
        (b"#!/bin/sh\n".repeat(20), "it is damaged, or no time zone file"),
        (vec![b'x'; 64 * 1024 + 1], "it has more than 65536 bytes"),
        (with_leap_seconds(0, "UTC0", 2), "it counts leap seconds, like the files below right/"),
        (changing_daily, "its clocks change twice within two days"),
        (slim(90_000, ""), "its clocks are a day or more from UTC, or jump by more than a day"),
    ] {
        let directory = directory(&[("Asia/Tokyo", data), ("UTC", slim(0, "UTC0"))]);
        let read = read_from(directory.path());
        let expected =
            format!("1 of the zone files cannot be used, such as Asia/Tokyo: {why}; there is no file for ");
        assert!(said(&read).contains(&expected), "{}", said(&read));
        assert_eq!(
            opens(&read.zones, Tz::Asia__Tokyo, "2026-11-28"),
            compiled(Tz::Asia__Tokyo, "2026-11-28")
        );
    }
    let directory = directory(&[("UTC", slim(0, "UTC0"))]);
    symlink("loop", directory.path().join("loop")).unwrap();
    symlink("loop", directory.path().join("Japan")).unwrap();
    fs::create_dir(directory.path().join("Cuba")).unwrap();
    let problem = read_from(directory.path()).problem.unwrap();
    let found: BTreeMap<&str, String> =
        problem.unusable.iter().map(|(zone, error)| (zone.name(), error.to_string())).collect();
    assert_eq!(found["Cuba"], "it is not a file");
    assert!(found["Japan"].contains("symbolic links"), "{found:?}");
    assert_eq!(found.len(), 2);
}

/// Without one usable file there is no zone data, whatever is there instead.
#[test]
fn unusable_data_is_said() {
    let directory =
        directory(&[("UTC", with_leap_seconds(0, "UTC0", 1)), ("tzdata.zi", b"# version 2999f".to_vec())]);
    let data = read_from(directory.path());
    assert_eq!(data.zones.source(), ZoneSource::BuiltIn);
    assert!(said(&data).contains("such as UTC: it counts leap seconds"), "{}", said(&data));
}

#[test]
fn release_may_be_unknown() {
    for (name, text, version) in [
        ("tzdata.zi", "# version 2999f\nmore\n", Some("2999f")),
        ("tzdata.zi", "# version \u{1b}[2J\n", None),
        ("tzdata.zi", "R x 2026 ma - Mar lastSu 1u 1 S\n", None),
        ("+VERSION", "2999e\n", Some("2999e")),
        ("+VERSION", "", None),
    ] {
        let directory = directory(&[("UTC", slim(0, "UTC0")), (name, text.into())]);
        assert_eq!(read_from(directory.path()).zones.version(), version, "{text:?}");
    }
}

#[test]
fn replaced_data_is_noticed() {
    let directory = directory(&[("Asia/Tokyo", slim(32_400, "JST-9"))]);
    let (data, mut watch) = Watch::begin_at(directory.path().to_owned());
    assert_eq!(opens(&data.zones, Tz::Asia__Tokyo, "2026-11-28"), "2026-11-27T16:30:00+00:00");
    assert!(watch.check().is_none());
    // As a package manager replaces a file, and as somebody copies over one.
    write(directory.path(), "new", &slim(36_000, "JST-10"));
    fs::rename(directory.path().join("new"), directory.path().join("Asia/Tokyo")).unwrap();
    let data = watch.check().unwrap();
    assert_eq!(opens(&data.zones, Tz::Asia__Tokyo, "2026-11-28"), "2026-11-27T15:30:00+00:00");
    write(directory.path(), "Asia/Tokyo", &slim(28_800, "JST-8"));
    let data = watch.check().unwrap();
    assert_eq!(opens(&data.zones, Tz::Asia__Tokyo, "2026-11-28"), "2026-11-27T17:30:00+00:00");
    assert!(watch.check().is_none());
    fs::remove_dir_all(directory.path()).unwrap();
    assert_eq!(watch.check().unwrap().zones.source(), ZoneSource::BuiltIn);
}

/// The one test that reads this machine's data: all of it can be used.
#[test]
fn this_machines_data_can_be_read() {
    let directory = Path::new(DIRECTORY);
    if !directory.join("UTC").exists() {
        println!("there is none");
        return;
    }
    let unusable = TZ_VARIANTS.into_iter().filter_map(|zone| match read_zone(directory, zone.name()) {
        Err(ZoneFileError::Read(error)) if error.kind() == io::ErrorKind::NotFound => None,
        read => Some((zone, read.err()?.to_string())),
    });
    assert_eq!(unusable.collect::<Vec<_>>(), []);
}

/// Hours off is worse than a `date` that says something else.
#[test]
fn older_data_does_not_count() {
    let of_release = |version: &str| {
        let directory = directory(&[
            ("America/Vancouver", slim(-32_400, "<-09>9")),
            ("tzdata.zi", format!("# version {version}\n").into()),
        ]);
        (read_from(directory.path()), directory)
    };
    let day = "2026-11-28";
    let (data, directory) = of_release("1999c");
    assert_eq!(data.zones.source(), ZoneSource::BuiltIn);
    assert_eq!(opens(&data.zones, Tz::America__Vancouver, day), compiled(Tz::America__Vancouver, day));
    assert_eq!(opens(&data.zones, Tz::Asia__Tokyo, day), compiled(Tz::Asia__Tokyo, day));
    assert!(data.problem.is_none());
    let (version, path) = (built_in_version(), directory.path().display());
    let expected = format!("{version}, compiled in, as {path} has 1999c, which is older");
    assert_eq!(data.to_string(), expected);
    let (data, _directory) = of_release(&version.to_string());
    assert_eq!(data.zones.source(), ZoneSource::System);
    assert_eq!(opens(&data.zones, Tz::America__Vancouver, day), "2026-11-28T10:30:00+00:00");
}
