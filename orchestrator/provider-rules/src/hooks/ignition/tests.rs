//! Which configurations of Ignition are taken, as tables.

use super::*;

type Read = Result<(Vec<GivenFile>, ContentBytes), ConfigurationProblem>;

/// A configuration with the members `more` beside `ignition`.
fn config(more: &str) -> String {
    format!(r#"{{"ignition":{{"version":"3.4.0"}},{more}}}"#)
}

/// A configuration with these `files`.
fn with_files(files: &str) -> Read {
    read_ignition(&config(&format!(r#""storage":{{"files":[{files}]}}"#)))
}

/// A configuration with one file, which has the members `more` beside its path.
fn with_file(more: &str) -> Read {
    with_files(&format!(r#"{{"path":"/a"{more}}}"#))
}

fn unsupported(key: &'static str) -> Read {
    Err(ConfigurationProblem::Unsupported { key: key.into() })
}

fn file(path: &str, bytes: usize) -> GivenFile {
    GivenFile { path: path.to_owned(), mode: None, user: None, group: None, bytes }
}

#[expect(clippy::unnecessary_wraps, reason = "it is compared with what reading returns")]
fn given(files: Vec<GivenFile>, bytes: &[u8]) -> Read {
    Ok((files, ContentBytes::new(bytes.to_vec())))
}

#[test]
fn files_are_taken_in_order() {
    let files = r#"{"path":"/b","contents":{"source":"data:,level%20%3D%203%0A"},"mode":420,"overwrite":true},
        {"path":"/a","user":{"name":"root"},"group":{"name":"app"}},
        {"path":"/c","contents":{"source":"data:text/plain;charset=utf-8;base64,AP8="},"overwrite":false}"#;
    let expected = vec![
        GivenFile { mode: Some(0o644), ..file("/b", 10) },
        GivenFile { user: Some("root".to_owned()), group: Some("app".to_owned()), ..file("/a", 0) },
        file("/c", 2),
    ];
    assert_eq!(with_files(files), given(expected, b"level = 3\n\0\xff"));
}

#[test]
fn every_version_of_3_is_known() {
    let of = |version: &str| {
        let files = r#"[{"path":"/a","contents":{"source":"data:,x"}}]"#;
        read_ignition(&format!(r#"{{"ignition":{{"version":"{version}"}},"storage":{{"files":{files}}}}}"#))
    };
    for version in ["3.0.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0", "3.5.0", "3.6.0"] {
        assert_eq!(of(version), given(vec![file("/a", 1)], b"x"), "{version}");
    }
    for version in ["2.2.0", "3.7.0", "3.6.1", "4.0.0", "3.6.0-experimental", "3", ""] {
        assert_eq!(of(version), Err(ConfigurationProblem::IgnitionVersion), "{version}");
    }
    for json in [
        r#"{"ignition":7}"#,
        r#"{"ignition":{}}"#,
        r#"{"ignition":{"version":3}}"#,
        r#"{"ignition":{"version":"3.4.0"},"storage":{"files":[{"mode":420}]}}"#,
        r#"{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/a","mode":"0644"}]}}"#,
        r#"{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/a","path":"/b"}]}}"#,
        r#"{"ignition":{"version":"3.4.0"},"storage":{},"storage":{}}"#,
    ] {
        assert!(matches!(read_ignition(json), Err(ConfigurationProblem::Ignition { .. })), "{json}");
    }
}

#[test]
fn other_sections_are_refused_by_name() {
    for (more, key) in [
        (r#""systemd":{"units":[{"name":"a.service"}]}"#, "systemd"),
        (r#""passwd":{"users":[{"name":"core"}]}"#, "passwd"),
        (r#""kernelArguments":{"shouldExist":["quiet"]}"#, "kernelArguments"),
        (r#""storage":{"directories":[{"path":"/a"}]}"#, "storage.directories"),
        (r#""storage":{"disks":[{"device":"/dev/sda"}]}"#, "storage.disks"),
        (r#""storage":{"filesystems":[{"device":"/dev/sda"}]}"#, "storage.filesystems"),
        (r#""storage":{"links":[{"path":"/a","target":"/b"}]}"#, "storage.links"),
        (r#""storage":{"luks":[{"name":"a"}]}"#, "storage.luks"),
        (r#""storage":{"raid":[{"name":"a"}]}"#, "storage.raid"),
        // Unknown in this version, or in any.
        (r#""units":[]"#, "units"),
        (r#""storage":{"files":[{"path":"/a","acl":1}]}"#, "storage.files.acl"),
        (r#""storage":{"files":[{"path":"/a","user":{"nmae":"x"}}]}"#, "storage.files.user.nmae"),
        (r#""storage":{"luks":[{"name":"a","cex":{"enabled":true}}]}"#, "storage.luks.cex"),
        (r#""a key with spaces":1"#, "a key that is not Ignition's"),
    ] {
        assert_eq!(read_ignition(&config(more)), unsupported(key), "{more}");
    }
    let long = format!(r#""{}":1"#, "x".repeat(65));
    assert_eq!(read_ignition(&config(&long)), unsupported("a key that is not Ignition's"));
    for (more, key) in [
        (r#""config":{"merge":[{"source":"https://a/"}]}"#, "ignition.config"),
        (r#""config":{"replace":{"source":"https://a/"}}"#, "ignition.config"),
        (r#""proxy":{"httpProxy":"http://a/"}"#, "ignition.proxy"),
        (r#""security":{"tls":{"certificateAuthorities":[{"source":"data:,"}]}}"#, "ignition.security"),
        (r#""timeouts":{"httpTotal":0}"#, "ignition.timeouts"),
    ] {
        let json = format!(r#"{{"ignition":{{"version":"3.4.0",{more}}}}}"#);
        assert_eq!(read_ignition(&json), unsupported(key), "{more}");
    }
    // Empty ones ask for nothing; this is how the operator of machine configurations writes them.
    let json = r#"{"ignition":{"version":"3.4.0","config":{"replace":{"verification":{}}},"proxy":{},
        "security":{"tls":{}},"timeouts":{}},"passwd":{},"systemd":{"units":[]},"kernelArguments":null,
        "storage":{"directories":[],"files":[{"path":"/a","append":[],"user":{"name":""},"group":{},
        "contents":{"source":"data:,x","compression":"","verification":{}}}]}}"#;
    assert_eq!(read_ignition(json), given(vec![file("/a", 1)], b"x"));
}

#[test]
fn other_keys_of_files_are_refused_by_name() {
    for (more, key) in [
        (r#","append":[{"source":"data:,x"}]"#, "storage.files.append"),
        (r#","contents":{"compression":"gzip","source":"data:,x"}"#, "storage.files.contents.compression"),
        (
            r#","contents":{"verification":{"hash":"sha512-0"},"source":"data:,x"}"#,
            "storage.files.contents.verification",
        ),
        (r#","contents":{"httpHeaders":[{"name":"a","value":"b"}]}"#, "storage.files.contents.httpHeaders"),
        (r#","user":{"id":0}"#, "storage.files.user.id"),
        (r#","group":{"id":1000,"name":"a"}"#, "storage.files.group.id"),
    ] {
        assert_eq!(with_file(more), unsupported(key), "{more}");
    }
}

#[test]
fn contents_are_data_urls() {
    let of = |source: &str| with_file(&format!(r#","contents":{{"source":{source}}}"#));
    for (source, content) in [
        ("null", &b""[..]),
        (r#""""#, b""),
        (r#""data:,""#, b""),
        (r#""data:,a b%00%ff""#, b"a b\0\xff"),
        (r#""DATA:;base64,eA==""#, b"x"),
        (r#""data:;base64,eA""#, b"x"),
        (r#""data:,ä""#, "ä".as_bytes()),
    ] {
        assert_eq!(of(source), given(vec![file("/a", content.len())], content), "{source}");
    }
    for source in
        ["https://a/b", "http://a/b", "s3://a/b", "tftp://a/b", "file:///a", "/a", " data:,x", "date:,"]
    {
        let refused = Err(ConfigurationProblem::Source { file: 1 });
        assert_eq!(of(&format!("\"{source}\"")), refused, "{source}");
    }
    for source in [
        "data:",
        "data:x",
        "data:;base64,?",
        "data:;base64,e",
        "data:,x#y",
        "data:,x#",
        "data:,x ",
        r"data:,x\n",
    ] {
        let refused = Err(ConfigurationProblem::DataUrl { file: 1 });
        assert_eq!(of(&format!("\"{source}\"")), refused, "{source}");
    }
}

#[test]
fn files_have_valid_targets() {
    for (files, problem) in [
        (r#"{"path":"/a"},{"path":"b"}"#, ConfigurationProblem::Path { file: 2 }),
        (r#"{"path":"/a/../b"}"#, ConfigurationProblem::Path { file: 1 }),
        (r#"{"path":"/a/./b"}"#, ConfigurationProblem::Path { file: 1 }),
        (r#"{"path":"/a/"}"#, ConfigurationProblem::Path { file: 1 }),
        (r#"{"path":""}"#, ConfigurationProblem::Path { file: 1 }),
        (r#"{"path":"/a"},{"path":"/b"},{"path":"/a"}"#, ConfigurationProblem::DuplicatePath { file: 3 }),
        (r#"{"path":"/a","mode":2541}"#, ConfigurationProblem::Mode { file: 1 }),
        (r#"{"path":"/a","mode":-1}"#, ConfigurationProblem::Mode { file: 1 }),
        (r#"{"path":"/a","user":{"name":"a b"}}"#, ConfigurationProblem::Owner { file: 1 }),
        (r#"{"path":"/a","group":{"name":"a:b"}}"#, ConfigurationProblem::Owner { file: 1 }),
        ("", ConfigurationProblem::NoFiles),
    ] {
        assert_eq!(with_files(files), Err(problem), "{files}");
    }
    assert_eq!(read_ignition(&config(r#""storage":{}"#)), Err(ConfigurationProblem::NoFiles));
}

#[test]
fn files_and_their_bytes_are_bounded() {
    let many = |count: usize| {
        let files: Vec<String> = (0..count).map(|number| format!(r#"{{"path":"/{number}"}}"#)).collect();
        with_files(&files.join(","))
    };
    assert_eq!(many(FILES_MAX).map(|(files, _)| files.len()), Ok(FILES_MAX));
    assert_eq!(many(FILES_MAX + 1), Err(ConfigurationProblem::TooManyFiles { limit: FILES_MAX }));
    let halves = |rest: usize| {
        let half = "x".repeat(ITEM_BYTES_MAX / 2);
        let (one, other) = (format!("data:,{half}"), format!("data:,{half}{}", "x".repeat(rest)));
        with_files(&format!(
            r#"{{"path":"/a","contents":{{"source":"{one}"}}}},{{"path":"/b","contents":{{"source":"{other}"}}}}"#
        ))
    };
    assert_eq!(halves(0).map(|(_, bytes)| bytes.as_slice().len()), Ok(ITEM_BYTES_MAX));
    assert_eq!(halves(1), Err(ConfigurationProblem::TooLarge { limit: ITEM_BYTES_MAX }));
}
