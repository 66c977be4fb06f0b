//! Packages as dpkg lists them.

/// The format for `dpkg-query --show --showformat`: one line per package.
pub const FORMAT: &str =
    "${db:Status-Abbrev}\\t${binary:Package}\\t${Version}\\t${Essential}\\t${Protected}\\n";

/// A package that dpkg knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Its name, with `:architecture` where dpkg needs it.
    pub name: String,
    /// Its version; empty if it is not installed.
    pub version: String,
    /// Whether it is installed.
    pub state: State,
    /// Whether an operator has put it on hold.
    pub held: bool,
    /// Whether the system needs it to work or to boot.
    pub essential: bool,
}

/// The installation state of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is installed and configured.
    Installed,
    /// It is not installed, though its configuration files may exist.
    Absent,
    /// Its installation is not finished: it is unpacked but not configured, or waits for triggers.
    Unfinished,
    /// Unpacking or removing it was cut off or failed: it must be installed again.
    Broken,
}

impl Package {
    /// Its name without an architecture.
    pub fn plain_name(&self) -> &str {
        self.name.split_once(':').map_or(&self.name, |(name, _)| name)
    }
}

/// Parses the output of `dpkg-query` with [`FORMAT`]; invalid lines are skipped.
pub fn parse(text: &str) -> Vec<Package> {
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<Package> {
    let mut fields = line.split('\t');
    let mut status = fields.next()?.chars();
    let (selection, state, error) = (status.next()?, status.next()?, status.next().unwrap_or(' '));
    let name = fields.next().filter(|name| !name.is_empty())?;
    let version = fields.next()?;
    let essential = fields.any(|field| field == "yes");
    let state = match (state, error) {
        (_, 'R') | ('H', _) => State::Broken,
        ('i', _) => State::Installed,
        ('U' | 'F' | 'W' | 't', _) => State::Unfinished,
        (_, _) => State::Absent,
    };
    Some(Package {
        name: name.to_owned(),
        version: version.to_owned(),
        state,
        held: selection == 'h',
        essential,
    })
}

/// The packages that are neither fully installed nor absent.
pub fn unfinished(packages: &[Package]) -> Vec<&str> {
    let open = packages.iter().filter(|package| matches!(package.state, State::Unfinished | State::Broken));
    open.map(|package| package.name.as_str()).collect()
}

/// The `names` that are not installed.
pub fn missing<'a>(names: impl IntoIterator<Item = &'a str>, packages: &[Package]) -> Vec<&'a str> {
    let is_installed = |name: &str| {
        packages.iter().any(|package| {
            package.state != State::Absent && (package.name == name || package.plain_name() == name)
        })
    };
    names.into_iter().filter(|name| !name.is_empty() && !is_installed(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dpkg_query_output_is_parsed() {
        let text = "ii \tbash\t5.2.15-2+b7\tyes\tno\n\
                    hi \tlibc6:amd64\t2.36-9+deb12u10\tno\tno\n\
                    rc \told\t1.0\tno\tno\n\
                    un \tnever\t\t\t\n\
                    iU \tbar\t2.0\tno\tno\n\
                    iF \tfoo\t2.0\tno\tno\n\
                    iHR\thalf\t3\tno\tno\n\
                    iW \twaits\t3\tno\tno\n\
                    ii \tinit\t1\tno\tyes\n\
                    nonsense\n\n";
        let packages = parse(text);
        let shown: Vec<_> = packages.iter().map(|p| (p.plain_name(), p.state, p.held, p.essential)).collect();
        assert_eq!(
            shown,
            [
                ("bash", State::Installed, false, true),
                ("libc6", State::Installed, true, false),
                ("old", State::Absent, false, false),
                ("never", State::Absent, false, false),
                ("bar", State::Unfinished, false, false),
                ("foo", State::Unfinished, false, false),
                ("half", State::Broken, false, false),
                ("waits", State::Unfinished, false, false),
                ("init", State::Installed, false, true),
            ]
        );
        assert_eq!(unfinished(&packages), ["bar", "foo", "half", "waits"]);
        let planned = ["bash", "libc6", "libc6:amd64", "libc6:i386", "old", "bar", "", "new"];
        assert_eq!(missing(planned, &packages), ["libc6:i386", "old", "new"]);
    }
}
