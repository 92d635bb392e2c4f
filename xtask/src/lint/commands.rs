//! What a `RUN` must not do: take what nobody checked, take whatever is newest, or leave doors open.

use super::dockerfile::{Instruction, Stage};
use super::words::{Command, Word, commands, holds, pairs};
use super::{Finding, Subject};
use crate::problem::Id;
use std::collections::BTreeSet;

const CA: &str = "give the CA as the build secret `ca`; verification stays on";
const KEY: &str = "name the archive's key with `signed-by=`";
const HASHES: &str = "install from a file with hashes, and let the tool demand them";

/// Words that switch a verification off, wherever they stand, and one way out.
const UNVERIFIED: &[(&str, &str)] = &[
    ("--trusted-host", CA),
    ("PIP_TRUSTED_HOST", CA),
    ("--allow-insecure-host", CA),
    ("UV_INSECURE_HOST", CA),
    ("--no-check-certificate", CA),
    ("--insecure", CA),
    ("sslVerify=false", CA),
    ("GIT_SSL_NO_VERIFY", CA),
    ("PYTHONHTTPSVERIFY=0", CA),
    ("NODE_TLS_REJECT_UNAUTHORIZED=0", CA),
    ("strict-ssl=false", CA),
    ("Verify-Peer=false", CA),
    ("apt-key", KEY),
    ("trusted=yes", KEY),
    ("trusted: yes", KEY),
    ("--allow-unauthenticated", KEY),
    ("--allow-insecure-repositories", KEY),
    ("--force-yes", KEY),
    ("--nogpgcheck", KEY),
    ("--no-verify-hashes", HASHES),
    ("--no-require-hashes", HASHES),
];

/// Programs and verbs that replace every package by whatever is newest.
const UPGRADES: &[(&[&str], &[&str])] = &[
    (&["apt-get", "apt", "aptitude"], &["upgrade", "dist-upgrade", "full-upgrade", "safe-upgrade"]),
    (&["apk", "dnf", "yum", "zypper"], &["upgrade", "update", "dist-upgrade"]),
];

const APT: &[&str] = &["apt-get", "apt"];
const PIP: &[&str] = &["pip", "pip3"];
const FETCHERS: &[&str] = &["curl", "wget"];
const INTERPRETERS: &[&str] =
    &["sh", "bash", "dash", "zsh", "eval", "source", ".", "python", "python3", "perl", "node"];

/// Everything that the instructions do.
pub fn findings(subject: &Subject) -> Vec<Finding> {
    let mut found = Vec::new();
    for instruction in subject.dockerfile.instructions() {
        found.extend(unverified(instruction));
    }
    for stage in &subject.dockerfile.stages {
        for run in stage.instructions.iter().filter(|i| i.word == "RUN") {
            let commands = commands(run, subject.dockerfile.escape);
            found.extend(
                commands.iter().flat_map(|c| upgrades(c).into_iter().chain(curl(c)).chain(open_to_all(c))),
            );
            found.extend(commands.iter().filter_map(|command| pip(subject, stage, command)));
            found.extend(commands.windows(2).filter_map(piped));
            found.extend(apt(run, &commands));
        }
    }
    found
}

fn finding(line: usize, what: String, cure: &str) -> Finding {
    Finding { id: Id::Lint, line, what, cure: cure.to_owned() }
}

fn unverified(instruction: &Instruction) -> Vec<Finding> {
    let mut found = Vec::new();
    for line in &instruction.lines {
        for (word, cure) in UNVERIFIED.iter().filter(|(word, _)| holds(&line.text, word)) {
            found.push(finding(line.number, format!("`{word}` switches a verification off"), cure));
        }
    }
    found
}

fn curl(command: &Command) -> Option<Finding> {
    let curl = command.program(&["curl"])?;
    let is =
        |text: &str| text.len() < 8 && !text.starts_with("--") && text.starts_with('-') && text.contains('k');
    let flag = command.words[curl..].iter().find(|word| is(&word.text))?;
    Some(finding(flag.line, format!("`curl {}` switches a verification off", flag.text), CA))
}

fn upgrades(command: &Command) -> Option<Finding> {
    UPGRADES.iter().find_map(|(programs, verbs)| {
        let program = command.program(programs)?;
        let verb = command.verb(program).filter(|verb| verbs.contains(&verb.text.as_str()))?;
        let what = format!("`{} {}` takes whatever is newest", command.words[program].text, verb.text);
        Some(finding(verb.line, what, "let the root bring newer packages: `cargo xtask lock --update`"))
    })
}

/// Without hashes, or with `--upgrade`, an index decides what is installed.
fn pip(subject: &Subject, stage: &Stage, command: &Command) -> Option<Finding> {
    let program = command.program(PIP)?;
    let verb = command.verb(program).filter(|verb| ["install", "sync"].contains(&verb.text.as_str()))?;
    if let Some(flag) = command.words.iter().find(|word| ["-U", "--upgrade"].contains(&word.text.as_str())) {
        let what = format!("`pip {} {}` takes whatever is newest", verb.text, flag.text);
        return Some(finding(
            flag.line,
            what,
            "name the version in a file with hashes, and leave the flag out",
        ));
    }
    // Wherever it lies: `/below/bin/uv pip install`.
    let is_uv = |word: &Word| word.text.rsplit('/').next() == Some("uv");
    let variable =
        if command.words[..program].iter().any(is_uv) { "UV_REQUIRE_HASHES" } else { "PIP_REQUIRE_HASHES" };
    let set = |text: &str| {
        text.strip_prefix(variable).is_some_and(|rest| rest.starts_with("=1") || rest.starts_with("=true"))
    };
    let demanded = command.has("--require-hashes")
        || command.words.iter().any(|word| set(&word.text))
        || environment(subject, stage).iter().any(|pair| set(pair));
    let what = "`pip install` takes what the index serves: no hashes are demanded".to_owned();
    let cure = format!("install `-r FILE` with `--require-hashes`, or set `{variable}=1` in the stage");
    (!demanded).then(|| finding(verb.line, what, &cure))
}

/// `KEY=value` of every `ENV` that a stage has, inherited ones too.
fn environment(subject: &Subject, stage: &Stage) -> BTreeSet<String> {
    let file = &subject.dockerfile;
    let mut set = stage.parent.map(|parent| environment(subject, &file.stages[parent])).unwrap_or_default();
    let own = stage.instructions.iter().filter(|i| i.word == "ENV").flat_map(|i| pairs(i, file.escape));
    set.extend(own.map(|(key, value)| format!("{}={}", key.text, value.unwrap_or_default())));
    set
}

/// `curl … | sh` and `sh -c "$(curl …)"`: what comes is run before anybody saw it.
fn piped(pair: &[Command]) -> Option<Finding> {
    let [first, second] = pair else { return None };
    let (fetcher, interpreter) = match second.before? {
        '|' => (first, second),
        '(' | '`' => (second, first),
        _ => return None,
    };
    let fetches = fetcher.program(FETCHERS)?;
    let fetches = &fetcher.words[fetches];
    let name = |word: &&Word| word.text.rsplit('/').next().unwrap_or_default().to_owned();
    let runs = interpreter.head().filter(|head| INTERPRETERS.contains(&name(head).as_str()))?;
    let what = format!("`{}` runs what `{}` fetches, unseen", runs.text, fetches.text);
    Some(finding(fetches.line, what, "fetch it with `ADD --checksum=sha256:… ADDRESS`, then run it"))
}

/// Recommended packages and package lists have no place in a layer.
fn apt(run: &Instruction, commands: &[Command]) -> Vec<Finding> {
    let of = |verb: &str| {
        commands.iter().find_map(|command| {
            let found = command.verb(command.program(APT)?).filter(|own| own.text == verb)?;
            Some((command, found.line))
        })
    };
    let mut found = Vec::new();
    let lean = |c: &Command| {
        c.has("--no-install-recommends") || c.words.iter().any(|w| holds(&w.text, "Install-Recommends=false"))
    };
    if let Some((_, line)) = of("install").filter(|(command, _)| !lean(command)) {
        let what = "`apt-get install` without `--no-install-recommends`".to_owned();
        found.push(finding(line, what, "add `--no-install-recommends`, and name what is really needed"));
    }
    let lists = "/var/lib/apt";
    let removed = commands.iter().any(|c| c.has("rm") && c.words.iter().any(|w| w.text.starts_with(lists)));
    let mounted = run.flags.iter().any(|f| f.name == "mount" && f.value.contains(lists));
    if let Some((_, line)) = of("update").filter(|_| !removed && !mounted) {
        let what = "`apt-get update` leaves its package lists in the layer".to_owned();
        found.push(finding(
            line,
            what,
            "end the step with `rm -rf /var/lib/apt/lists/*`, or mount a cache there",
        ));
    }
    found
}

fn open_to_all(command: &Command) -> Option<Finding> {
    let program = command.program(&["chmod"])?;
    let mode = command.verb(program).filter(|mode| is_open(&mode.text))?;
    Some(writable(mode.line, &mode.text))
}

/// A mode that lets everybody write, unless it is sticky as `/tmp` is.
pub fn is_open(mode: &str) -> bool {
    match mode.bytes().all(|b| b.is_ascii_digit()) {
        true => {
            mode.ends_with(['2', '3', '6', '7'])
                && mode.len() >= 3
                && !(mode.len() == 4 && mode.starts_with('1'))
        }
        false => mode.split(',').any(|part| {
            let (who, what) = part.split_once(['+', '=']).unwrap_or((part, ""));
            who.contains(['a', 'o']) && what.contains('w')
        }),
    }
}

/// Something that everybody may write.
pub fn writable(line: usize, mode: &str) -> Finding {
    let cure = "let group 0 write instead: mode 0775 and `-g 0`";
    finding(line, format!("mode `{mode}` lets everybody write"), cure)
}
