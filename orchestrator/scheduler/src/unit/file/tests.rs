//! Unit files are read as by systemd, and written as by fleet.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// fleet's document has the hashes of these two.
const PING: &str = "[Unit]
Description=PING

[Service]
ExecStart=/bin/bash -c \"while true; do echo \\\"ping\\\"; sleep 1; done\"
";
const PONG: &str = "[Unit]
Description=PONG

[Service]
ExecStart=/bin/bash -c \"while true; do echo \\\"pong\\\"; sleep 1; done\"

[X-Fleet]
X-ConditionMachineOf=ping.service
";

fn file(text: &str) -> UnitFile {
    UnitFile::parse(text).unwrap()
}

fn option(section: &str, name: &str, value: &str) -> UnitOption {
    UnitOption { section: section.to_owned(), name: name.to_owned(), value: value.to_owned() }
}

/// Section, name and value of each option.
fn parts(file: &UnitFile) -> Vec<(&str, &str, &str)> {
    file.options().iter().map(|it| (it.section.as_str(), it.name.as_str(), it.value.as_str())).collect()
}

#[test]
fn files_are_read_as_by_systemd() {
    type Options<'a> = &'a [(&'a str, &'a str, &'a str)];
    let cases: [(&str, Options<'_>); 12] = [
        ("", &[]),
        ("\n# only a comment\n", &[]),
        ("[A]\n", &[]),
        ("[A]\nx=1\n y = 2 3 \nz=", &[("A", "x", "1"), ("A", "y", "2 3"), ("A", "z", "")]),
        ("\u{feff}[A]\r\nx=1\r\n", &[("A", "x", "1")]),
        ("  [A B]\t\nx==1=2", &[("A B", "x", "=1=2")]),
        ("[A]\nx=1 # 2 ; 3", &[("A", "x", "1 # 2 ; 3")]),
        ("[A]\n# a \\\n ; b \\\nx=1", &[("A", "x", "1")]),
        ("[A]\nx=1 \\\n# a\n ; b \\\n\n  2\ny=3", &[("A", "x", "1 \\\n  2"), ("A", "y", "3")]),
        ("[A]\nx=1 \\\\\ny=2", &[("A", "x", "1 \\\\"), ("A", "y", "2")]),
        ("[A]\nx=1 \\", &[("A", "x", "1")]),
        ("[A]\nx=1\n[B]\nx=2\n[A]\nx=3", &[("A", "x", "1"), ("B", "x", "2"), ("A", "x", "3")]),
    ];
    for (text, expected) in cases {
        let file = file(text);
        assert_eq!(parts(&file), expected, "{text:?}");
        assert_eq!(file.text(), text);
    }
}

#[test]
fn errors_name_the_line() {
    use UnitFileProblem as P;
    let long = "a".repeat(257);
    assert_eq!(file(&format!("[{}]\n{}=1", &long[1..], &long[1..])).options().len(), 1);
    let much = "a".repeat(UNIT_BYTES_MAX - "[A]\nx=".len());
    assert_eq!(file(&format!("[A]\nx={much}")).options().len(), 1);
    for (text, line, problem) in [
        ("x=1", 1, P::NoSection),
        ("# a\n\nx=1\n[A]", 3, P::NoSection),
        ("[A", 1, P::Section),
        ("\n[]", 2, P::Section),
        ("[A]x=1", 1, P::Section),
        ("[[A]", 1, P::Section),
        ("[A] \\\n", 1, P::Section),
        ("[A\tB]", 1, P::Section),
        (format!("[{long}]").as_str(), 1, P::Section),
        ("[A]\nx", 2, P::NoEquals),
        ("[A]\nx=1\n\\\ny=2", 3, P::NoEquals),
        ("[A]\n=1", 2, P::Name),
        ("[A]\n  =1", 2, P::Name),
        (format!("[A]\n{long}=1").as_str(), 2, P::Name),
        ("[A]\nx=\0", 2, P::Control),
        ("[A]\nx=1\ry=2", 2, P::Control),
        (format!("[A]\nx={much}b\ny=1").as_str(), 2, P::TooLong),
        (format!("[A]\nx={much}\ny=1").as_str(), 2, P::TooLong),
        (format!("[A]\ny={}\nx=1\n", &much[4..]).as_str(), 3, P::TooLong),
    ] {
        let error = UnitFileError { line, problem };
        assert_eq!(UnitFile::parse(text), Err(error), "{text:.30}");
    }
    let error = UnitFile::parse("[A]\nx").unwrap_err();
    assert_eq!(error.to_string(), "line 2: an option is a name, = and a value");
}

#[test]
fn empty_values_drop_those_before() {
    let file = file("[A]\nx=1\nx=2 \\\n 3\ny=4\n[B]\nx=5\nx=\nx=6\n[C]\nx=7\nx=\n");
    let values = |section, name| file.values(section, name).collect::<Vec<_>>();
    assert_eq!(values("A", "x"), ["1", "2   3"]);
    assert_eq!(values("A", "y"), ["4"]);
    assert_eq!(values("B", "x"), ["6"]);
    assert_eq!(values("C", "x"), [""; 0]);
    assert_eq!(values("A", "z"), [""; 0]);
}

#[test]
fn hashes_are_those_of_fleet() {
    for (text, file_hash, options_hash) in [
        (PING, "d9de011694dda111458a4fc9912ad629d86ad8af", "d9de011694dda111458a4fc9912ad629d86ad8af"),
        (PONG, "c555fd0e58a32ef0b290f4828757cef55ee39a88", "c555fd0e58a32ef0b290f4828757cef55ee39a88"),
        (
            "[Service]\r\nExecStart=/usr/bin/sleep 1d\r\n",
            "baa4ff959b0d626dcaf5d918b8959f2702d58605",
            "dd401fa78c2de99a9c4045cbb4b285679067acf6",
        ),
        ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
    ] {
        let file = file(text);
        assert_eq!(file.file_hash().to_string(), file_hash);
        assert_eq!(file.options_hash().to_string(), options_hash);
    }
}

#[test]
fn options_are_written_by_section() {
    let options = vec![option("A", "x", "1"), option("B", " y ", " 2 \\\n 3\n"), option("A", "z", "3")];
    let written = UnitFile::from_options(options).unwrap();
    assert_eq!(written.text(), "[A]\nx=1\nz=3\n\n[B]\ny=2 \\\n 3\n");
    assert_eq!(parts(&written), [("A", "x", "1"), ("A", "z", "3"), ("B", "y", "2 \\\n 3")]);
    assert_eq!(written.options_hash().to_string(), "1cda080c5e8dc2180d60673260feefef594c5940");
    assert_eq!(written.options_hash(), written.file_hash());
    assert_eq!(UnitFile::from_options(Vec::new()).unwrap(), file(""));
}

/// fleet's own parser keeps the backslash of a value that a blank line ends. systemd would take the next option into it.
#[test]
fn values_do_not_end_within_a_continuation() {
    let options = vec![option("A", "x", "1 \\\n"), option("A", "y", "2 \\")];
    assert_eq!(UnitFile::from_options(options).unwrap().text(), "[A]\nx=1\ny=2\n");
}

#[test]
fn options_that_read_as_others_are_refused() {
    use UnitFileProblem as P;
    for (refused, line, problem) in [
        (option("A", "x", "1\ny=2"), 5, P::NotOneOption),
        (option("A", "x", "1\n\n[B]"), 5, P::NotOneOption),
        (option("A", "x=y", "1"), 5, P::NotOneOption),
        (option("A]\n[B", "x", "1"), 6, P::NotOneOption),
        (option("A", "#x", "1"), 2, P::NotOneOption),
        (option("A", "[x", "1"), 5, P::Section),
        (option("A", "", "1"), 5, P::Name),
        (option("A", "x\ny", "1"), 5, P::NoEquals),
        (option("", "x", "1"), 4, P::Section),
        (option("A", "x", "\0"), 5, P::Control),
        (option("A", "x", &"a".repeat(UNIT_BYTES_MAX)), 5, P::TooLong),
    ] {
        let options = vec![option("Before", "x", "1"), refused.clone()];
        let error = UnitFileError { line, problem };
        assert_eq!(UnitFile::from_options(options), Err(error), "{:.30}", refused.value);
    }
}

/// Where reading is quadratic, each of these takes long.
#[test]
fn the_largest_files_are_read() {
    for (line, options) in [
        ("x=\n", UNIT_BYTES_MAX / 3),
        ("x=\\\n", 1),
        ("\\\n", 1),
        ("\\", 1),
        ("# a\n", 1),
        ("x=1 \\\n", 1),
        ("%n", 1),
        ("[A]\n", 1),
    ] {
        let lines = (UNIT_BYTES_MAX - "[X-Fleet]\nx=\\\n".len()) / line.len();
        let text = format!("[X-Fleet]\nx=\\\n{}", line.repeat(lines));
        assert!(file(&text).options().len() <= options, "{line:?}");
    }
}

/// Files of few words: headers, options, comments and continued lines in any order.
fn files() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        2 => select(&["[A]", "[B]", " [A] "][..]).prop_map(ToOwned::to_owned),
        6 => "(a|b|c\\\\| a) ?= ?[xy\\\\ #;=\\[\\]]{0,6}\\\\?",
        1 => "[xy#; \\\\]{0,4}\\\\?",
    ];
    vec((line, select(&["\n", "\r\n"][..])), 0..12).prop_map(|lines| {
        let lines = lines.into_iter().map(|(line, end)| line + end);
        std::iter::once("[A]\n".to_owned()).chain(lines).collect()
    })
}

proptest! {
    #[test]
    fn written_options_are_read_back(text in files()) {
        let Ok(file) = UnitFile::parse(&text) else { return Ok(()) };
        let written = UnitFile::from_options(file.options().to_vec()).unwrap();
        let expected: Vec<UnitOption> = by_section(file.options()).into_iter().flatten().cloned().collect();
        prop_assert_eq!(written.options(), expected);
        prop_assert_eq!(written.file_hash(), file.options_hash());
        prop_assert_eq!(written.options_hash(), file.options_hash());
        for option in file.options() {
            let values = |file: &UnitFile| -> Vec<String> {
                file.values(&option.section, &option.name).map(ToOwned::to_owned).collect()
            };
            prop_assert_eq!(values(&written), values(&file));
        }
    }

    #[test]
    fn options_are_read_as_given_or_refused(
        section in "[A\\[\\]\n]{0,3}", name in "[a=#\\[\\\\\n ]{0,4}", value in "[a=#;\\[\\]\\\\\n\r ]{0,8}",
    ) {
        let given = vec![option("A", "a", "1"), option(&section, &name, &value), option("A", "c", "1")];
        if let Ok(file) = UnitFile::from_options(given) {
            prop_assert_eq!(file.options().len(), 3);
            let read_back = UnitFile::parse(file.text()).unwrap();
            prop_assert_eq!(read_back.options(), file.options());
            let is_given = |it: &UnitOption| it.section == section && it.name == trim(&name);
            prop_assert!(file.options().iter().any(is_given));
        }
    }

    #[test]
    fn no_text_panics(text in "[\\[\\]a=\\\\#;\r\n \\x00]{0,40}|.{0,40}") {
        match UnitFile::parse(&text) {
            Ok(file) => prop_assert_eq!(file.text(), text),
            Err(error) => prop_assert!(usize::try_from(error.line).unwrap() <= text.split('\n').count()),
        }
    }
}
