//! Which hosts an operator means. Strangers choose the names of hosts, and `*` and `?` are legal in them: a pattern is
//! expanded here, over the hosts that exist, and only names are sent.

use std::collections::BTreeSet;

use os_upgrade_protocol::HostName;
use wildmatch::WildMatch;

/// The hosts that `patterns` name, of those that are `known`, in the order of their names. A name that exists is that name
/// alone, whatever characters it has; else `*` and `?` stand for characters of names.
///
/// # Errors
/// A pattern matches no host, or no host has the name.
pub(super) fn expand(
    patterns: &[HostName],
    known: &BTreeSet<HostName>,
) -> Result<BTreeSet<HostName>, String> {
    let mut hosts = BTreeSet::new();
    for pattern in patterns {
        if known.contains(pattern) {
            hosts.insert(pattern.clone());
        } else if is_pattern(pattern) {
            let matcher = WildMatch::new(pattern.as_str());
            let meant: Vec<_> = known.iter().filter(|host| matcher.matches(host.as_str())).collect();
            if meant.is_empty() {
                return Err(format!("no host matches {pattern}"));
            }
            hosts.extend(meant.into_iter().cloned());
        } else {
            return Err(format!("no host has announced itself as {pattern}; --new approves it all the same"));
        }
    }
    Ok(hosts)
}

/// Whether a name can stand for others.
pub(super) fn is_pattern(name: &HostName) -> bool {
    name.as_str().contains(['*', '?'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<HostName> {
        names.iter().map(|name| HostName::new(name).unwrap()).collect()
    }

    #[test]
    fn patterns_stand_for_hosts_that_exist() {
        let known: BTreeSet<HostName> = names(&["a1", "a2", "b1", "a*", "ä?"]).into_iter().collect();
        for (patterns, expected) in [
            (&["a1"][..], Ok(&["a1"][..])),
            (&["b*", "a?"], Ok(&["a*", "a1", "a2", "b1"])),
            (&["?1"], Ok(&["a1", "b1"])),
            // A host that somebody has called so, and no other.
            (&["a*"], Ok(&["a*"])),
            (&["ä?"], Ok(&["ä?"])),
            (&["a1", "c1"], Err("no host has announced itself as c1")),
            (&["c*"], Err("no host matches c*")),
            // Nothing else has a meaning.
            (&["[ab]1"], Err("no host has announced itself as [ab]1")),
        ] {
            let expanded = expand(&names(patterns), &known);
            match expected {
                Ok(expected) => assert_eq!(expanded.unwrap(), names(expected).into_iter().collect()),
                Err(expected) => assert!(expanded.unwrap_err().starts_with(expected), "{patterns:?}"),
            }
        }
    }
}
