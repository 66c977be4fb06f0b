//! What the workers of one host have announced. Whoever has a host's credentials can announce any number of
//! applications, so only the first ones count.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use imbl::OrdSet;
use os_upgrade_kernel::SeenHost;
use os_upgrade_protocol::{Announcement, ApplicationName, limits};

use crate::text::one_line;

/// The most applications of a host that count.
pub const APPLICATIONS_MAX: usize = 16;
/// The most refused applications of a host that are shown.
const REFUSED_SHOWN_MAX: usize = 16;

/// The most labels of a host that are kept.
const LABELS_MAX: usize = 64;

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
    /// It counts.
    Counts,
    /// It counts in place of a message about another application, which says nothing and is no longer needed in the stream. Of one
    /// application the stream has the last message only.
    Replaces { sequence: u64 },
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

impl AnnouncedHost {
    /// Records the last message about `application`, which the stream has at `sequence`. An announcement takes the place of
    /// one that is withdrawn or cannot be used. If there is no such place, it does not count, and has to be made again
    /// once there is one.
    pub(super) fn record(&mut self, application: &ApplicationName, sequence: u64, said: Said) -> Recorded {
        let announced = match said {
            Said::Announced(announced) => Some(announced),
            Said::Withdrawn => None,
            Said::Unusable => self.applications.get_mut(application).and_then(|entry| entry.announced.take()),
        };
        let is_announcement = announced.is_some();
        let mut replaced = None;
        if !self.applications.contains_key(application) && self.applications.len() >= APPLICATIONS_MAX {
            let Some(other) = self.first_without_announcement().filter(|_| is_announcement) else {
                if !is_announcement {
                    self.refused.remove(application);
                } else if self.refused.len() < REFUSED_SHOWN_MAX {
                    self.refused.insert(application.clone());
                }
                return Recorded::Surplus;
            };
            replaced = self.applications.remove(&other);
        }
        self.refused.remove(application);
        self.applications.insert(application.clone(), Entry { sequence, announced });
        let replaced = replaced.filter(|replaced| replaced.sequence < sequence);
        replaced.map_or(Recorded::Counts, |replaced| Recorded::Replaces { sequence: replaced.sequence })
    }

    fn first_without_announcement(&self) -> Option<ApplicationName> {
        let mut without = self.applications.iter().filter(|(_, entry)| entry.announced.is_none());
        without.next().map(|(application, _)| application.clone())
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
            seen.boot_id = seen.boot_id.take().or_else(|| announcement.boot_id.clone());
            let most = limits::REBOOT_REQUIRED_BYTES_MAX;
            let line = |text: &String| one_line(&limits::bounded(text, most), most);
            let line = |text: &Option<String>| text.as_ref().map(line).filter(|line| !line.is_empty());
            seen.reboot_required =
                seen.reboot_required.take().or_else(|| line(&announcement.reboot_required));
            let ineffective = || line(&announcement.reboot_ineffective);
            seen.reboot_ineffective = seen.reboot_ineffective.take().or_else(ineffective);
            sends_heartbeats |= announcement.heartbeats;
            all_reboot &= announcement.reboots_on_request;
            seen.clock_skew_secs = seen.clock_skew_secs.or(announced.clock_skew_secs);
            seen.announced_at = seen.announced_at.max(Some(announced.at));
        }
        let mut seen = seen?;
        seen.refused = self.refused.clone();
        // Any of its workers may get the command.
        seen.reboots_on_request = all_reboot;
        // Also of what cannot be used.
        seen.announced = self.applications.values().map(|entry| entry.sequence).max().unwrap_or_default();
        Some((seen, sends_heartbeats))
    }
}

#[cfg(test)]
mod tests {
    use os_upgrade_protocol::HostName;

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
