//! What a stage of a Dockerfile makes of a small Debian system: its files, and how its program is started.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::debian::Tree;
use crate::programs;

/// A Dockerfile, in instructions.
#[derive(Debug)]
pub struct Dockerfile(Vec<(String, String)>);

/// What a container of a stage is started with, unless it is told otherwise.
#[derive(Debug, Default)]
pub struct Start {
    /// The first words of the command.
    pub entrypoint: Vec<String>,
    /// The words after these.
    pub command: Vec<String>,
    /// Its environment.
    pub environment: BTreeMap<String, String>,
    /// Who runs it, as `UID:GID`.
    pub user: Option<String>,
    /// Its directory.
    pub directory: Option<String>,
    /// The command that tells its health.
    pub health: Option<Vec<String>>,
}

impl Dockerfile {
    /// Reads the file.
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
        let joined = lines.join("\n").replace("\\\n", " ");
        let instructions = joined.lines().filter_map(|line| line.trim().split_once(char::is_whitespace));
        Self(instructions.map(|(name, rest)| (name.to_owned(), rest.trim().to_owned())).collect())
    }

    /// The stages, by name.
    pub fn stages(&self) -> Vec<&str> {
        let froms = self.0.iter().filter(|(name, _)| name == "FROM");
        froms.filter_map(|(_, rest)| rest.split_once(" AS ")).map(|(_, stage)| stage).collect()
    }

    fn stage(&self, stage: &str) -> impl Iterator<Item = (&str, &str)> {
        let named = move |(name, rest): &&(String, String)| {
            name == "FROM" && rest.split_once(" AS ").is_some_and(|(_, it)| it == stage)
        };
        let instructions = self.0.iter().skip_while(move |instruction| !named(instruction)).skip(1);
        let instructions = instructions.take_while(|(name, _)| name != "FROM");
        instructions.map(|(name, rest)| (name.as_str(), rest.as_str()))
    }

    /// Does in `tree` what the instructions of `stage` say. Programs are those built here, other files those of
    /// `repository`, or of this machine where they come from another stage.
    pub fn build(&self, stage: &str, tree: &Tree, repository: &Path) -> Start {
        let mut start = Start::default();
        for (instruction, rest) in self.stage(stage) {
            match instruction {
                "COPY" => copy(rest, tree, repository),
                "RUN" => drop(tree.must(&["sh", "-c", rest])),
                "ENV" => {
                    let (name, value) = rest.split_once('=').unwrap();
                    start.environment.insert(name.to_owned(), value.to_owned());
                }
                "USER" => start.user = Some(rest.to_owned()),
                "WORKDIR" => start.directory = Some(rest.to_owned()),
                "ENTRYPOINT" => start.entrypoint = words(rest),
                "CMD" => start.command = words(rest),
                "HEALTHCHECK" => start.health = rest.split_once("CMD ").map(|(_, command)| words(command)),
                "EXPOSE" => {}
                other => panic!("{other} is not known here"),
            }
        }
        start
    }
}

fn words(list: &str) -> Vec<String> {
    serde_json::from_str(list).unwrap()
}

fn copy(rest: &str, tree: &Tree, repository: &Path) {
    let mut words: Vec<&str> = rest.split_whitespace().collect();
    let to = words.pop().unwrap();
    assert!(to.ends_with('/'), "{rest}: only directories are known here");
    let of_stage = words[0].starts_with("--from=");
    let mode = words[0].strip_prefix("--chmod=").map(|mode| u32::from_str_radix(mode, 8).unwrap());
    let copy = |from: PathBuf, target: &Path| {
        let to = target.join(from.file_name().unwrap());
        fs::copy(from, &to).unwrap();
        if let Some(mode) = mode {
            fs::set_permissions(to, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    for from in words.iter().filter(|word| !word.starts_with("--")) {
        let source = if !of_stage {
            repository.join(from)
        } else if from.starts_with("/etc/") {
            PathBuf::from(from)
        } else {
            programs::path(Path::new(from).file_name().unwrap().to_str().unwrap())
        };
        let target = tree.path(to);
        fs::create_dir_all(&target).unwrap();
        if source.is_dir() {
            for entry in fs::read_dir(source).unwrap() {
                copy(entry.unwrap().path(), &target);
            }
        } else {
            copy(source, &target);
        }
    }
}
