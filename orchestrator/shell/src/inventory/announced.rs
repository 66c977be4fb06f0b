//! What the workers of one host have announced. Whoever has a host's credentials can announce any number of
//! applications, so only a few count. Workers that live announce themselves again when they find that their announcement
//! is gone, so an announcement gives way to a newer one if it may be that of a worker that is gone.
//!
//! What counts depends on the messages alone, and on the times at which the bus stored them: whoever reads the stream from
//! its beginning finds what those found who have followed it.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use imbl::OrdSet;
use os_upgrade_kernel::{Configures, SeenHost};
use os_upgrade_protocol::text::one_line;
use os_upgrade_protocol::{Announcement, ApplicationName, limits};
use os_upgrade_provider_rules::hooks::metadata_digest;

/// The most applications of a host that count.
pub const APPLICATIONS_MAX: usize = 16;
/// The most refused applications of a host that are shown.
const REFUSED_SHOWN_MAX: usize = 16;
/// An announcement that is older than another of the same boot by this much may be that of a worker that is gone.
const GIVES_WAY_AFTER: TimeDelta = TimeDelta::minutes(1);

/// The most labels of a host that are kept.
const LABELS_MAX: usize = 64;
/// The longest machine id of a host, in bytes. Those of systemd have 32.
const MACHINE_ID_BYTES_MAX: usize = limits::ID_BYTES_MAX;
/// The longest address of a host, in bytes: that of the longest name.
const ADDRESS_BYTES_MAX: usize = limits::NAME_BYTES_MAX;

/// An announcement, as the bus stored it.
#[derive(Debug)]
pub(super) struct Announced {
    pub(super) announcement: Announcement,
    pub(super) clock_skew_secs: Option<i64>,
    pub(super) at: DateTime<Utc>,
}

/// What the last message about an application says.
#[derive(Debug)]
pub(super) enum Said {
    Announced(Box<Announced>),
    Withdrawn,
    /// It cannot be used. An earlier announcement stays in force.
    Unusable,
}

/// What became of a message about an application.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Recorded {
    Counts,
    /// It counts in place of a message about another application, which is no longer needed in the stream. Of one application
    /// the stream has the last message only.
    Replaces {
        sequence: u64,
    },
    /// It does not count, and is not needed in the stream.
    Surplus,
}

/// The applications of one host.
#[derive(Debug, Default)]
pub(super) struct AnnouncedHost {
    applications: BTreeMap<ApplicationName, Entry>,
    refused: OrdSet<ApplicationName>,
}

/// The last message about an application.
#[derive(Debug)]
struct Entry {
    sequence: u64,
    /// `None` if it withdraws the application, or cannot be used.
    announced: Option<Box<Announced>>,
}

impl Entry {
    /// Whether, and how soon, it gives way to `new`, the announcement of another application: first what announces
    /// nothing, then what was announced in another boot, then the oldest of the same boot.
    fn gives_way(&self, new: &Announced) -> Option<(u8, Option<DateTime<Utc>>)> {
        let Some(announced) = &self.announced else { return Some((0, None)) };
        // Of a worker that names no boot it is not known.
        let boots = announced.announcement.boot_id.as_ref().zip(new.announcement.boot_id.as_ref());
        if boots.is_some_and(|(old, new)| old != new) {
            return Some((1, Some(announced.at)));
        }
        (new.at - announced.at >= GIVES_WAY_AFTER).then_some((2, Some(announced.at)))
    }
}

impl AnnouncedHost {
    /// Records the last message about `application`, which the stream has at `sequence`. If there is no place left, an
    /// announcement takes that of another application, see [`Entry::gives_way`]. If none gives way, it does not count, and
    /// has to be made again.
    pub(super) fn record(&mut self, application: &ApplicationName, sequence: u64, said: Said) -> Recorded {
        let announced = match said {
            Said::Announced(announced) => Some(announced),
            Said::Withdrawn => None,
            Said::Unusable => self.applications.get_mut(application).and_then(|entry| entry.announced.take()),
        };
        self.refused.remove(application);
        let mut replaced = None;
        if !self.applications.contains_key(application) && self.applications.len() >= APPLICATIONS_MAX {
            let Some(other) = announced.as_deref().and_then(|new| self.first_to_give_way(new)) else {
                if announced.is_some() {
                    self.refuse(application.clone());
                }
                return Recorded::Surplus;
            };
            replaced = self.applications.remove(&other);
            if replaced.as_ref().is_some_and(|entry| entry.announced.is_some()) {
                self.refuse(other);
            }
        }
        self.applications.insert(application.clone(), Entry { sequence, announced });
        let replaced = replaced.filter(|replaced| replaced.sequence < sequence);
        replaced.map_or(Recorded::Counts, |replaced| Recorded::Replaces { sequence: replaced.sequence })
    }

    fn first_to_give_way(&self, new: &Announced) -> Option<ApplicationName> {
        let rank = |(name, entry): (&ApplicationName, &Entry)| Some((entry.gives_way(new)?, name.clone()));
        self.applications.iter().filter_map(rank).min().map(|(_, name)| name)
    }

    fn refuse(&mut self, application: ApplicationName) {
        if self.refused.len() < REFUSED_SHOWN_MAX {
            self.refused.insert(application);
        }
    }

    /// The boot that a worker has announced last.
    fn boot_id(&self) -> Option<&String> {
        let boots = self.applications.values().filter_map(|entry| {
            let boot_id = entry.announced.as_ref()?.announcement.boot_id.as_ref()?;
            Some((entry.sequence, boot_id))
        });
        boots.max_by_key(|(sequence, _)| *sequence).map(|(_, boot_id)| boot_id)
    }

    /// The machine id that the worker announces which takes configuration; the first one, if that has none.
    fn machine_id(&self) -> Option<String> {
        let line = |announcement: &Announcement| {
            let most = MACHINE_ID_BYTES_MAX;
            let line = one_line(&limits::bounded(announcement.machine_id.as_ref()?, most), most);
            (!line.is_empty()).then_some(line)
        };
        let announced = || self.applications.values().filter_map(|entry| entry.announced.as_deref());
        let configuring = announced().find(|announced| announced.announcement.configures.is_some());
        let of_configuring = configuring.and_then(|announced| line(&announced.announcement));
        of_configuring.or_else(|| announced().find_map(|announced| line(&announced.announcement)))
    }

    /// The first address that a worker announces.
    fn address(&self) -> Option<String> {
        let announced = self.applications.values().filter_map(|entry| entry.announced.as_deref());
        let mut addresses = announced.flat_map(|announced| &announced.announcement.addresses);
        let most = ADDRESS_BYTES_MAX;
        let line = |address: &String| limits::bounded(&one_line(address, most), most);
        addresses.find_map(|address| Some(line(address)).filter(|line| !line.is_empty()))
    }

    /// The applications that do not count; the first ones, if there are many.
    pub(super) fn refused(&self) -> &OrdSet<ApplicationName> {
        &self.refused
    }

    /// The host as the kernel sees it, but for its reachability, and whether it sends heartbeats; `None` if no application
    /// is announced.
    pub(super) fn seen(&self) -> Option<(SeenHost, bool)> {
        let (mut seen, mut sends_heartbeats): (Option<SeenHost>, bool) = (None, false);
        let mut all_reboot = true;
        let boot_id = self.boot_id();
        for (application, entry) in &self.applications {
            let Some(announced) = &entry.announced else { continue };
            let seen = seen.get_or_insert_default();
            seen.applications.insert(application.clone());
            let announcement = &announced.announcement;
            seen.group = seen.group.take().or_else(|| announcement.group.clone());
            for (key, value) in &announcement.labels {
                if seen.labels.len() < LABELS_MAX && !seen.labels.contains_key(key) {
                    seen.labels.insert(key.clone(), value.clone());
                }
            }
            // What was said before the last boot is no longer true.
            let is_current = announcement.boot_id.is_none() || announcement.boot_id.as_ref() == boot_id;
            let most = limits::REBOOT_REQUIRED_BYTES_MAX;
            let line = |text: &String| one_line(&limits::bounded(text, most), most);
            let line = |text: &Option<String>| {
                text.as_ref().filter(|_| is_current).map(line).filter(|line| !line.is_empty())
            };
            seen.reboot_required =
                seen.reboot_required.take().or_else(|| line(&announcement.reboot_required));
            let ineffective = || line(&announcement.reboot_ineffective);
            seen.reboot_ineffective = seen.reboot_ineffective.take().or_else(ineffective);
            if let Some(key) = announcement.configures {
                if seen.configures.is_none() {
                    seen.configures = Some(Configures { application: application.clone(), key });
                } else {
                    seen.configures_refused.insert(application.clone());
                }
            }
            sends_heartbeats |= announcement.heartbeats;
            all_reboot &= announcement.reboots_on_request;
            if announcement.runs_units {
                if seen.runs_units.is_none() {
                    seen.runs_units = Some(application.clone());
                } else {
                    seen.runs_units_refused.insert(application.clone());
                }
            }
            seen.clock_skew_secs = seen.clock_skew_secs.or(announced.clock_skew_secs);
            seen.announced_at = seen.announced_at.max(Some(announced.at));
        }
        let mut seen = seen?;
        seen.refused = self.refused.clone();
        seen.machine_id = self.machine_id();
        seen.metadata_digest = metadata_digest(&seen.labels, seen.machine_id.as_deref());
        seen.boot_id = boot_id.cloned();
        seen.address = self.address();
        // Any of its workers may get the command.
        seen.reboots_on_request = all_reboot;
        // Also of what cannot be used.
        seen.announced = self.applications.values().map(|entry| entry.sequence).max().unwrap_or_default();
        Some((seen, sends_heartbeats))
    }
}

#[cfg(test)]
mod tests {
    use os_upgrade_protocol::{HostKey, HostName};

    use super::*;

    fn application(number: usize) -> ApplicationName {
        ApplicationName::new(&format!("a{number:02}")).unwrap()
    }

    fn announced(number: usize) -> Said {
        let announcement = Announcement::new(HostName::new("h1").unwrap(), application(number));
        let at = DateTime::UNIX_EPOCH;
        Said::Announced(Box::new(Announced { announcement, clock_skew_secs: None, at }))
    }

    fn full() -> AnnouncedHost {
        let mut host = AnnouncedHost::default();
        for number in 0..APPLICATIONS_MAX {
            assert_eq!(host.record(&application(number), number as u64, announced(number)), Recorded::Counts);
        }
        host
    }

    #[test]
    fn further_applications_are_refused_by_name() {
        let mut host = full();
        for number in 20..20 + 2 * REFUSED_SHOWN_MAX {
            assert_eq!(host.record(&application(number), 100, announced(number)), Recorded::Surplus);
            // What says nothing about a further application is not needed either.
            assert_eq!(host.record(&application(99), 101, Said::Withdrawn), Recorded::Surplus);
            assert_eq!(host.record(&application(98), 102, Said::Unusable), Recorded::Surplus);
        }
        let (seen, _) = host.seen().unwrap();
        assert_eq!(seen.applications, (0..APPLICATIONS_MAX).map(application).collect());
        assert_eq!(seen.refused, (20..20 + REFUSED_SHOWN_MAX).map(application).collect());
        // One that is withdrawn is not refused any more.
        assert_eq!(host.record(&application(20), 102, Said::Withdrawn), Recorded::Surplus);
        assert!(!host.seen().unwrap().0.refused.contains(&application(20)));
        // Those that count may announce themselves again.
        assert_eq!(host.record(&application(3), 103, announced(3)), Recorded::Counts);
    }

    #[test]
    fn refused_applications_count_once_announced_again() {
        let mut host = full();
        assert_eq!(host.record(&application(20), 100, announced(20)), Recorded::Surplus);
        assert_eq!(host.record(&application(5), 101, Said::Withdrawn), Recorded::Counts);
        let (seen, _) = host.seen().unwrap();
        assert!(!seen.applications.contains(&application(20)) && seen.refused.contains(&application(20)));
        let instead = Recorded::Replaces { sequence: 101 };
        assert_eq!(host.record(&application(20), 102, announced(20)), instead);
        let (seen, _) = host.seen().unwrap();
        assert!(seen.applications.contains(&application(20)) && seen.refused.is_empty());
        assert_eq!(host.record(&application(5), 103, announced(5)), Recorded::Surplus);
    }

    /// An announcement that is made in the boot `boot_id`, `minutes` after the epoch.
    fn announced_in(number: usize, boot_id: Option<&str>, minutes: i64) -> Said {
        let Said::Announced(mut said) = announced(number) else { unreachable!() };
        said.announcement.boot_id = boot_id.map(str::to_owned);
        said.at += TimeDelta::minutes(minutes);
        Said::Announced(said)
    }

    fn counts(host: &AnnouncedHost, number: usize) -> bool {
        host.seen().unwrap().0.applications.contains(&application(number))
    }

    #[test]
    fn dead_announcements_give_way_to_live_ones() {
        // Of an earlier boot at once; where a worker names none, once it is older.
        for (boot_id, minutes) in [(Some("earlier"), 0), (None, 1)] {
            let mut host = AnnouncedHost::default();
            for number in 0..APPLICATIONS_MAX {
                host.record(&application(number), number as u64, announced_in(number, boot_id, 0));
            }
            if boot_id.is_none() {
                let early = announced_in(20, Some("now"), 0);
                assert_eq!(host.record(&application(20), 99, early), Recorded::Surplus);
            }
            let instead = Recorded::Replaces { sequence: 0 };
            assert_eq!(host.record(&application(20), 100, announced_in(20, Some("now"), minutes)), instead);
            assert!(counts(&host, 20) && !counts(&host, 0));
            assert_eq!(host.seen().unwrap().0.refused, OrdSet::unit(application(0)), "operators see it");
            // Those that are announced in this boot stay.
            let instead = Recorded::Replaces { sequence: 1 };
            assert_eq!(host.record(&application(21), 101, announced_in(21, Some("now"), minutes)), instead);
            assert!(counts(&host, 20) && counts(&host, 21));
        }
        // Of the same boot: the oldest, once it is older.
        let mut host = AnnouncedHost::default();
        for number in 0..APPLICATIONS_MAX {
            let minutes = i64::from(number != 7);
            host.record(&application(number), number as u64, announced_in(number, Some("now"), minutes));
        }
        let instead = Recorded::Replaces { sequence: 7 };
        assert_eq!(host.record(&application(20), 100, announced_in(20, Some("now"), 1)), instead);
        assert_eq!(host.record(&application(7), 101, announced_in(7, Some("now"), 1)), Recorded::Surplus);
        assert_eq!(
            host.record(&application(7), 102, announced_in(7, Some("now"), 2)),
            Recorded::Replaces { sequence: 0 },
            "a worker that lives comes back"
        );
        assert!(counts(&host, 7) && counts(&host, 20) && !counts(&host, 0));
    }

    #[test]
    fn what_was_said_before_the_last_boot_is_over() {
        let mut host = AnnouncedHost::default();
        let Said::Announced(mut earlier) = announced_in(0, Some("earlier"), 0) else { unreachable!() };
        earlier.announcement.reboot_required = Some("a kernel".to_owned());
        host.record(&application(0), 1, Said::Announced(earlier));
        assert_eq!(host.seen().unwrap().0.reboot_required.as_deref(), Some("a kernel"));
        host.record(&application(1), 2, announced_in(1, Some("now"), 1));
        let seen = host.seen().unwrap().0;
        assert_eq!((seen.boot_id.as_deref(), seen.reboot_required), (Some("now"), None));
    }

    #[test]
    fn the_machine_id_is_that_of_the_configured_worker() {
        let mut host = AnnouncedHost::default();
        let long = format!("m3\n{}", "x".repeat(1_000));
        for (number, machine_id, takes_configuration, expected) in [
            (4, None, false, None),
            (3, Some(" \n"), false, None),
            (5, Some("m5"), false, Some("m5")),
            (2, Some("m2"), false, Some("m2")),
            (6, None, true, Some("m2")),
            (6, Some("m6"), true, Some("m6")),
            (1, Some("m1"), false, Some("m6")),
            // Of several that take configuration, the first one counts.
            (0, Some("m0"), true, Some("m0")),
        ] {
            let Said::Announced(mut said) = announced(number) else { unreachable!() };
            said.announcement.machine_id = machine_id.map(str::to_owned);
            said.announcement.configures = takes_configuration.then(|| HostKey::new([1; 32]));
            host.record(&application(number), number as u64, Said::Announced(said));
            assert_eq!(host.seen().unwrap().0.machine_id.as_deref(), expected, "{number}");
        }
        let Said::Announced(mut said) = announced(0) else { unreachable!() };
        (said.announcement.machine_id, said.announcement.configures) =
            (Some(long), Some(HostKey::new([1; 32])));
        host.record(&application(0), 9, Said::Announced(said));
        let machine_id = host.seen().unwrap().0.machine_id.unwrap();
        assert!(machine_id.starts_with("m3 x") && machine_id.len() <= MACHINE_ID_BYTES_MAX, "{machine_id}");
    }

    #[test]
    fn labels_are_those_of_all_applications() {
        let mut host = AnnouncedHost::default();
        for number in [2, 1] {
            let Said::Announced(mut said) = announced(number) else { unreachable!() };
            let own = (0..40).map(|key| (format!("a{number}-{key:02}"), "x".to_owned()));
            said.announcement.labels = own.chain([("rack".to_owned(), format!("r{number}"))]).collect();
            host.record(&application(number), number as u64, Said::Announced(said));
        }
        let (seen, _) = host.seen().unwrap();
        assert_eq!(seen.labels.len(), LABELS_MAX);
        // Of two that say different things the first application counts, as for the group.
        assert_eq!(seen.labels.get("rack").map(String::as_str), Some("r1"));
        assert!(seen.labels.contains_key("a1-39") && seen.labels.contains_key("a2-00"));
    }

    /// Another one cannot take the place of the first, and is named.
    #[test]
    fn one_application_of_a_host_takes_configuration() {
        let mut host = AnnouncedHost::default();
        for (number, key) in [(2, Some([2; 32])), (1, None), (3, Some([3; 32]))] {
            let Said::Announced(mut said) = announced(number) else { unreachable!() };
            said.announcement.configures = key.map(HostKey::new);
            host.record(&application(number), number as u64, Said::Announced(said));
        }
        let (seen, _) = host.seen().unwrap();
        let configures = Configures { application: application(2), key: HostKey::new([2; 32]) };
        assert_eq!(seen.configures, Some(configures));
        assert_eq!(seen.configures_refused, [application(3)].into_iter().collect());
    }

    #[test]
    fn the_first_application_that_runs_units_is_the_agent() {
        let mut host = AnnouncedHost::default();
        assert_eq!(host.record(&application(1), 1, announced(1)), Recorded::Counts);
        assert_eq!(host.seen().unwrap().0.runs_units, None);
        for (number, expected) in [(3, 3), (2, 2), (4, 2)] {
            let Said::Announced(mut said) = announced(number) else { unreachable!() };
            said.announcement.runs_units = true;
            host.record(&application(number), number as u64, Said::Announced(said));
            assert_eq!(host.seen().unwrap().0.runs_units, Some(application(expected)));
        }
        assert_eq!(host.seen().unwrap().0.runs_units_refused, [3, 4].map(application).into_iter().collect());
    }

    #[test]
    fn the_first_address_is_shown() {
        let mut host = AnnouncedHost::default();
        for (number, addresses, expected) in [
            (3, vec!["10.0.0.3", "fd00::3"], "10.0.0.3"),
            (2, vec![], "10.0.0.3"),
            (1, vec![" \n", "10.0.0.1\n\u{1b}"], "10.0.0.1 \u{fffd}"),
        ] {
            let Said::Announced(mut said) = announced(number) else { unreachable!() };
            said.announcement.addresses = addresses.into_iter().map(str::to_owned).collect();
            host.record(&application(number), number as u64, Said::Announced(said));
            assert_eq!(host.seen().unwrap().0.address.as_deref(), Some(expected), "{number}");
        }
        let Said::Announced(mut said) = announced(0) else { unreachable!() };
        said.announcement.addresses = vec!["a".repeat(10_000)];
        host.record(&application(0), 9, Said::Announced(said));
        assert!(host.seen().unwrap().0.address.is_some_and(|address| address.len() <= ADDRESS_BYTES_MAX));
    }

    #[test]
    fn lines_about_reboots_are_bounded() {
        let Said::Announced(mut said) = announced(1) else { unreachable!() };
        said.announcement.reboot_required = Some("a new\n\u{1b}".to_owned() + &"kernel ".repeat(1_000));
        said.announcement.reboot_ineffective = said.announcement.reboot_required.clone();
        let mut host = AnnouncedHost::default();
        host.record(&application(1), 1, Said::Announced(said));
        let Said::Announced(mut empty) = announced(0) else { unreachable!() };
        empty.announcement.reboot_required = Some(" ".to_owned());
        host.record(&application(0), 2, Said::Announced(empty));
        let seen = host.seen().unwrap().0;
        for line in [seen.reboot_required.unwrap(), seen.reboot_ineffective.unwrap()] {
            assert!(
                line.starts_with("a new \u{fffd}kernel ")
                    && line.chars().count() <= limits::REBOOT_REQUIRED_BYTES_MAX
            );
        }
    }

    #[test]
    fn unusable_announcement_changes_nothing() {
        let mut host = full();
        assert_eq!(host.record(&application(1), 100, Said::Unusable), Recorded::Counts);
        assert!(host.seen().unwrap().0.applications.contains(&application(1)));
    }
}
