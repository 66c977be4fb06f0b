//! Locks of APT and dpkg that another process holds.

/// A lock that a tool could not acquire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLock {
    /// The lock's path or name.
    pub lock: String,
    /// The id of the process that holds it; `None` if the tool does not report it.
    pub process: Option<u32>,
}

/// Finds the lock because of which a tool failed, in its output.
pub fn find_held(text: &str) -> Option<HeldLock> {
    text.lines().find_map(|line| apt(line).or_else(|| dpkg(line)))
}

/// `E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 4711 (apt-get)`
fn apt(line: &str) -> Option<HeldLock> {
    let rest = line.strip_prefix("E: Could not get lock ")?;
    let lock = rest.split_whitespace().next()?.trim_end_matches('.').to_owned();
    Some(HeldLock { lock, process: number_after(rest, "held by process ") })
}

/// `dpkg: error: dpkg frontend lock was locked by another process with pid 4711`
fn dpkg(line: &str) -> Option<HeldLock> {
    let rest = line.strip_prefix("dpkg: error: ")?;
    let (lock, _) = rest.split_once(" locked by another process")?;
    let lock = lock.trim_end_matches(" was").trim_end_matches(" is").to_owned();
    Some(HeldLock { lock, process: number_after(rest, "with pid ") })
}

fn number_after(text: &str, before: &str) -> Option<u32> {
    let (_, after) = text.split_once(before)?;
    let end = after.find(|character: char| !character.is_ascii_digit()).unwrap_or(after.len());
    after[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_locks_are_found() {
        for (text, expected) in [
            (
                "Reading...\nE: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 21360 (apt)\n\
                 E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?",
                Some(("/var/lib/dpkg/lock-frontend", Some(21360))),
            ),
            (
                "E: Could not get lock /var/lib/dpkg/lock - open (11: Resource temporarily unavailable)",
                Some(("/var/lib/dpkg/lock", None)),
            ),
            (
                "dpkg: error: dpkg database lock was locked by another process with pid 22106\nNote: removing",
                Some(("dpkg database lock", Some(22106))),
            ),
            (
                "dpkg: error: dpkg frontend lock is locked by another process",
                Some(("dpkg frontend lock", None)),
            ),
            ("E: Unable to fetch some archives", None),
        ] {
            let expected = expected.map(|(lock, process)| HeldLock { lock: lock.to_owned(), process });
            assert_eq!(find_held(text), expected, "{text}");
        }
    }
}
