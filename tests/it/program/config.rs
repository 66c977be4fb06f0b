//! `os-upgrade config`: changes are shown and agreed to, made under the tag that was read, and put back.

use harness::orchestrator::{CommandResult, Orchestrator};
use harness::programs;
use harness::site::Site;

/// The configuration in YAML.
async fn shown(orchestrator: &Orchestrator) -> String {
    let (code, shown, error) = orchestrator.ask(&["config", "get"], "").await;
    assert_eq!((code, error.as_str()), (Some(0), ""));
    shown
}

/// Runs `config edit` with a script as editor, to which `$1` is the file and `$COUNT` how often it has been called.
async fn edit(orchestrator: &mut Orchestrator, script: &str) -> CommandResult {
    let (path, counted) = (orchestrator.directory().join("editor"), orchestrator.directory().join("counted"));
    std::fs::write(&counted, "").unwrap();
    let program = programs::path(programs::ORCHESTRATOR);
    let lines = format!(
        "set -e\nos_upgrade='{}'\necho >> '{counted}'\nCOUNT=$(wc -l < '{counted}')\n{script}\n",
        program.display(),
        counted = counted.display()
    );
    std::fs::write(&path, lines).unwrap();
    orchestrator.set_environment("VISUAL", &format!("sh '{}'", path.display()));
    orchestrator.ask(&["config", "edit", "--yes"], "").await
}

#[tokio::test]
async fn configuration_is_applied_edited_and_put_back() {
    const FILE: &str = "worker-applications:\n  - name: debian\nrollout:\n  max-concurrent: 2\n";
    let mut site = Site::start().await;
    let orchestrator = &mut site.orchestrator;
    let file = orchestrator.directory().join("wanted.yaml");
    std::fs::write(&file, FILE).unwrap();
    let file = file.to_str().unwrap().to_owned();

    // What is wrong with a file is said before anybody is asked; nobody is there to agree.
    let apply = ["config", "apply", "-f", &file];
    for (name, text, code, expected) in [
        ("missing.yaml", None, 2, "error: cannot read "),
        ("broken.yaml", Some("rollout: ["), 5, "error: "),
        ("wrong.yaml", Some("rollout:\n  max-concurrent: 0\n"), 5, "error: rollout/max-concurrent: "),
        ("wanted.yaml", Some(FILE), 2, "error: without a terminal, confirm with --yes"),
    ] {
        let path = orchestrator.directory().join(name);
        if let Some(text) = text {
            std::fs::write(&path, text).unwrap();
        }
        let (found, _, error) =
            orchestrator.ask(&["config", "apply", "-f", path.to_str().unwrap()], "").await;
        let last = error.lines().last().unwrap_or_default();
        assert!(found == Some(code) && last.starts_with(expected), "{name}: {found:?}: {error}");
    }
    let (code, difference, warnings) = orchestrator.ask(&[&apply[..], &["--diff"]].concat(), "").await;
    assert_eq!(code, Some(0), "{warnings}");
    assert!(difference.contains("\n+  - name: debian"), "{difference}");
    assert_eq!(warnings, "warning: no host announces debian");
    assert!(!shown(orchestrator).await.contains("name: debian\n"), "only shown");

    let yes = [&apply[..], &["--yes"]].concat();
    assert_eq!(orchestrator.ask(&yes, "").await.0, Some(0));
    let first = shown(orchestrator).await;
    assert!(first.contains("max-concurrent: 2") && first.starts_with("worker-applications:\n"), "{first}");
    let (code, same, _) = orchestrator.ask(&yes, "").await;
    assert_eq!((code, same.as_str()), (Some(0), "nothing changes"));
    let quiet = ["config", "set", "start-jitter", "1m", "--yes", "--quiet"];
    assert_eq!(orchestrator.ask(&quiet, "").await, (Some(0), String::new(), String::new()));
    let back = ["config", "set", "start-jitter", "null", "--yes", "--quiet"];
    assert_eq!(orchestrator.ask(&back, "").await, (Some(0), String::new(), String::new()));

    let set = ["config", "set", "rollout.max-concurrent", "3", "--yes"];
    let (code, difference, error) = orchestrator.ask(&set, "").await;
    assert_eq!(code, Some(0), "{error}");
    assert!(difference.contains("\n-  max-concurrent: 2\n+  max-concurrent: 3"), "{difference}");
    let (code, _, error) = orchestrator.ask(&["config", "set", "rollout.colour", "red", "--yes"], "").await;
    assert!(code == Some(5) && error.contains("unknown field `colour`"), "{error}");

    // A refused configuration is opened again, with the reason as a comment.
    let twice = r#"
        if [ "$COUNT" = 1 ]; then sed -i 's/max-concurrent: 3/max-concurrent: 0/' "$1"
        else grep -q '^# refused: rollout/max-concurrent: must be at least 1' "$1"
            sed -i 's/max-concurrent: 0/max-concurrent: 4/' "$1"; fi"#;
    let (code, _, error) = edit(orchestrator, twice).await;
    assert_eq!(code, Some(0), "{error}");
    assert!(shown(orchestrator).await.contains("max-concurrent: 4"));
    assert_eq!(edit(orchestrator, "true").await.0, Some(5), "nothing was edited");

    // Somebody else is faster. What was written is not lost.
    let slow = r#"
        "$os_upgrade" config set rollout.max-failures 7 --yes --url "$URL" > /dev/null
        sed -i 's/max-concurrent: 4/max-concurrent: 5/' "$1""#;
    let url = format!("URL='http://{}'\n{slow}", orchestrator.address());
    let (code, _, error) = edit(orchestrator, &url).await;
    assert_eq!(code, Some(5), "{error}");
    assert!(error.contains("somebody else has changed the configuration"), "{error}");
    let kept = error.lines().find_map(|line| line.strip_prefix("your configuration is in ")).unwrap();
    assert!(std::fs::read_to_string(kept).unwrap().contains("max-concurrent: 5"));
    std::fs::remove_file(kept).unwrap();
    let now = shown(orchestrator).await;
    assert!(now.contains("max-concurrent: 4") && now.contains("max-failures: 7"), "{now}");

    // The first change is put back, and that is a change too.
    let (_, listed, _) = orchestrator.ask(&["config", "history"], "").await;
    let numbers: Vec<&str> = listed.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(numbers.len(), 7, "{listed}");
    let (code, change, _) = orchestrator.ask(&["config", "history", numbers[2]], "").await;
    assert_eq!(code, Some(0));
    assert!(change.contains("\n-  max-concurrent: 2\n+  max-concurrent: 3"), "{change}");
    assert_eq!(orchestrator.ask(&["config", "rollback", numbers[5], "--yes"], "").await.0, Some(0));
    assert_eq!(shown(orchestrator).await, first);
    assert_eq!(orchestrator.ask(&["config", "rollback", "999999", "--yes"], "").await.0, Some(5));
}
