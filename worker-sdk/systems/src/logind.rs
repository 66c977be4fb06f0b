//! What systemd-logind says of a reboot: the programs that inhibit it, and the users who are logged in. It is asked over D-Bus
//! with `busctl`, whose output for a type does not depend on the version or the language.

use std::fmt;

use crate::text::one_line;

/// The type of the answer to `ListInhibitors`: what, who, why, mode, user, process.
const INHIBITORS: &str = "a(ssssuu)";
/// The type of the answer to `ListSessions`: session, user id, user, seat, object.
const SESSIONS: &str = "a(susso)";

/// A program that inhibits a reboot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inhibitor {
    /// The name that it gives itself.
    pub who: String,
    /// Its reason.
    pub why: String,
    /// Its process id.
    pub process: String,
}

impl fmt::Display for Inhibitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {}: {})", one_line(&self.who), self.process, one_line(&self.why))
    }
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The user's name.
    pub user: String,
    /// The path of its object, which has its [`PROPERTIES`].
    pub object: String,
}

/// The programs that inhibit a reboot, in the output of `busctl call` for `ListInhibitors`. Those that only delay it are left to
/// logind, and those of mode `block-weak` yield to root. `None` if it is no such output.
pub fn inhibitors(output: &str) -> Option<Vec<Inhibitor>> {
    let rows = rows::<6>(output, INHIBITORS)?;
    let inhibits = |[what, _, _, mode, ..]: &[String; 6]| {
        what.split(':').any(|what| what == "shutdown") && !["delay", "block-weak"].contains(&mode.as_str())
    };
    let inhibiting = rows.into_iter().filter(inhibits);
    Some(inhibiting.map(|[_, who, why, _, _, process]| Inhibitor { who, why, process }).collect())
}

/// All sessions, in the output of `busctl call` for `ListSessions`. `None` if it is no such output.
pub fn sessions(output: &str) -> Option<Vec<Session>> {
    let rows = rows::<5>(output, SESSIONS)?;
    Some(rows.into_iter().map(|[_, _, user, _, object]| Session { user, object }).collect())
}

/// The properties by which [`is_login`] judges a session.
pub const PROPERTIES: [&str; 3] = ["Class", "Type", "State"];

/// Whether somebody is logged in by a session, in the output of `busctl get-property` for its [`PROPERTIES`]: at a terminal or a
/// screen, as systemctl judges it. Login screens, jobs of cron, commands over ssh, and what is left after somebody has logged
/// out are none. `None` if it is no such output.
pub fn is_login(output: &str) -> Option<bool> {
    let mut words = output.lines().map(|line| words(line.trim().strip_prefix("s ")?)?.pop());
    let [class, kind, state] = [words.next()??, words.next()??, words.next()??];
    let is_user = class == "user" || class.starts_with("user-");
    Some(is_user && ["tty", "x11", "wayland", "mir"].contains(&kind.as_str()) && state != "closing")
}

/// The rows of an array of structures that have `COLUMNS` basic values each, and together this type.
fn rows<const COLUMNS: usize>(output: &str, of_type: &str) -> Option<Vec<[String; COLUMNS]>> {
    let mut words = words(output.trim().strip_prefix(of_type)?.strip_prefix(' ')?)?.into_iter();
    let count: usize = words.next()?.parse().ok()?;
    let words: Vec<String> = words.collect();
    if words.len() != count.checked_mul(COLUMNS)? {
        return None;
    }
    Some(words.chunks_exact(COLUMNS).filter_map(|row| row.to_vec().try_into().ok()).collect())
}

/// The words of `text`, which are numbers, or quoted and escaped as in C. `None` if a quote is not closed.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (word, after) = if let Some(quoted) = rest.strip_prefix('"') {
            unquoted(quoted)?
        } else {
            let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
            (word.to_owned(), after)
        };
        words.push(word);
        rest = after.trim_start();
    }
    Some(words)
}

/// The content of a quoted word up to its closing quote, and what follows that.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes().enumerate();
    while let Some((at, byte)) = rest.next() {
        match byte {
            b'"' => return Some((String::from_utf8_lossy(&bytes).into_owned(), &text[at + 1..])),
            b'\\' => bytes.push(match rest.next()?.1 {
                b'a' => 0x07,
                b'b' => 0x08,
                b'f' => 0x0c,
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'v' => 0x0b,
                first @ b'0'..=b'7' => {
                    let [second, third] = [rest.next()?.1, rest.next()?.1];
                    let digits = [first, second, third].map(|digit| u32::from(digit.wrapping_sub(b'0')));
                    u8::try_from(digits[0] * 64 + digits[1] * 8 + digits[2]).ok()?
                }
                other => other,
            }),
            other => bytes.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_blocks_a_reboot_inhibits_it() {
        let output = concat!(
            r#"a(ssssuu) 7 "shutdown:sleep" "borg" "nightly backup" "block" 0 4711 "#,
            r#""sleep" "NetworkManager" "needs to turn off networks" "delay" 0 512 "#,
            r#""shutdown" "Unattended Upgrades Shutdown" "Stop ongoing upgrades" "delay" 0 801 "#,
            r#""handle-power-key:idle" "gdm" "block" "block" 0 900 "#,
            r#""shutdown" "gnome-session" "user session inhibited" "block-weak" 1000 1500 "#,
            r#""shutdown" "" "a \"quoted\" \\ \303\244\nshutdown \"x\" \"y\"" "block" 1000 77 "#,
            r#""shutdown" "later" "" "block-harder" 0 5"#,
            "\n"
        );
        let inhibitor = |who: &str, why: &str, process: &str| Inhibitor {
            who: who.to_owned(),
            why: why.to_owned(),
            process: process.to_owned(),
        };
        let expected = [
            inhibitor("borg", "nightly backup", "4711"),
            inhibitor("", "a \"quoted\" \\ ä\nshutdown \"x\" \"y\"", "77"),
            inhibitor("later", "", "5"),
        ];
        assert_eq!(inhibitors(output).unwrap(), expected);
        assert_eq!(expected[0].to_string(), "borg (process 4711: nightly backup)");
        assert_eq!(inhibitors("a(ssssuu) 0\n").unwrap(), []);
    }

    #[test]
    fn other_output_is_unknown() {
        for output in [
            "",
            "a(ssssuu)",
            "a(ssssuu) x",
            "a(ssssuu) 1",
            r#"a(ssssuu) 1 "shutdown" "a" "b" "block" 0"#,
            r#"a(ssssuu) 1 "shutdown" "a" "b" "block" 0 1 2"#,
            r#"a(ssssuu) 1 "shutdown" "a" "b" "block 0 1"#,
            r#"a(ssssuu) 0 "shutdown""#,
            "a(ssssuu) 18446744073709551615",
            r#"a(susso) 1 "2" 1000 "alice" "" "/o""#,
        ] {
            assert_eq!(inhibitors(output), None, "{output}");
        }
    }

    #[test]
    fn sessions_have_users_and_classes() {
        let output = r#"a(susso) 2 "c1" 117 "gdm" "seat0" "/org/freedesktop/login1/session/c1" "2" 1000 "alice" "" "/o/_32""#;
        let session = |user: &str, object: &str| Session { user: user.to_owned(), object: object.to_owned() };
        let expected = [session("gdm", "/org/freedesktop/login1/session/c1"), session("alice", "/o/_32")];
        assert_eq!(sessions(output).unwrap(), expected);
        for (output, is_login) in [
            ("s \"user\"\ns \"tty\"\ns \"active\"\n", Some(true)),
            ("s \"user\"\ns \"wayland\"\ns \"online\"\n", Some(true)),
            ("s \"user-light\"\ns \"tty\"\ns \"active\"\n", Some(true)),
            ("s \"user\"\ns \"unspecified\"\ns \"active\"\n", Some(false)),
            ("s \"user\"\ns \"tty\"\ns \"closing\"\n", Some(false)),
            ("s \"manager\"\ns \"unspecified\"\ns \"active\"\n", Some(false)),
            ("s \"greeter\"\ns \"x11\"\ns \"active\"\n", Some(false)),
            ("s \"background\"\ns \"unspecified\"\ns \"active\"\n", Some(false)),
            ("s \"user\"\n", None),
            ("", None),
            ("u 5\nu 5\nu 5", None),
        ] {
            assert_eq!(super::is_login(output), is_login, "{output}");
        }
    }
}
