//! Which engine this host has, and the choice between the user's docker and a private one.

use crate::apt::{OsRelease, os_release};
use crate::problem::{Id, refuse};
use crate::runner::{Output, Step};
use anyhow::Result;
use serde::{Deserialize, Serialize};

/// Which engine to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The user's docker if its daemon answers and buildx is there, otherwise a private one.
    Auto,
    /// The user's docker.
    Docker,
    /// The private engine.
    Private,
}

/// Whose engine it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The user's docker.
    Docker,
    /// The private engine.
    Private,
}

/// What a host has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Version of the docker client on PATH.
    pub client: Option<String>,
    /// Version of the daemon that answers it.
    pub daemon: Option<String>,
    /// Why no daemon answers, in the client's words.
    pub silence: String,
    /// Whether the client has buildx.
    pub buildx: bool,
    /// The system.
    pub os: OsRelease,
    /// The user.
    pub uid: u32,
}

/// Looks. The user's docker is not asked where only the private engine is wanted.
pub fn probe(choice: Choice) -> Result<Found> {
    use std::os::unix::fs::MetadataExt;
    let docker = match choice {
        Choice::Private => Found::default(),
        Choice::Auto | Choice::Docker => probe_docker()?,
    };
    Ok(Found {
        os: os_release(),
        // A process owns its own folder there.
        uid: std::fs::metadata("/proc/self").map_or(u32::MAX, |m| m.uid()),
        ..docker
    })
}

fn probe_docker() -> Result<Found> {
    if which::which("docker").is_err() {
        return Ok(Found::default());
    }
    let version = ask(&["version", "--format", "{{json .}}"])?;
    let (client, daemon) = versions(&version.stdout);
    let buildx = daemon.is_some() && ask(&["buildx", "version"])?.status.success();
    let telling = |line: &&str| !line.trim().is_empty() && !line.starts_with("WARNING");
    let said = version.stderr.lines().find(telling);
    Ok(Found {
        client: Some(client.unwrap_or_else(|| "of unknown version".into())),
        daemon,
        silence: said.unwrap_or("no word").trim().to_owned(),
        buildx,
        ..Found::default()
    })
}

/// Whether the user's docker, which was seen to answer, is without a daemon now. A client that cannot be asked tells nothing.
pub fn docker_ended() -> bool {
    ask(&["version", "--format", "{{json .}}"]).is_ok_and(|version| versions(&version.stdout).1.is_none())
}

fn ask(args: &[&str]) -> Result<Output> {
    Step::new("which engine answers", ["docker"]).args(args.iter().copied()).output()
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Versions {
    client: Option<Version>,
    server: Option<Version>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Version {
    version: Option<String>,
}

/// The versions of client and daemon in the answer of `docker version --format '{{json .}}'`.
fn versions(json: &str) -> (Option<String>, Option<String>) {
    match serde_json::from_str::<Versions>(json.trim()) {
        Ok(all) => (all.client.and_then(|v| v.version), all.server.and_then(|v| v.version)),
        Err(_) => (None, None),
    }
}

/// Chooses, by what was found.
///
/// Errors: one `E_ENGINE` that says what was found and the way out.
pub fn decide(choice: Choice, found: &Found) -> Result<Kind> {
    let docker = found.daemon.is_some() && found.buildx;
    let obstacle = private_obstacle(found);
    match choice {
        Choice::Auto | Choice::Docker if docker => Ok(Kind::Docker),
        Choice::Auto | Choice::Private if obstacle.is_none() => Ok(Kind::Private),
        Choice::Docker => refuse(Id::Engine, "--engine docker", docker_state(found), docker_cure(found)),
        Choice::Private => {
            let cure = "run this as root on Debian or Ubuntu, or use your own docker with --engine docker";
            refuse(Id::Engine, "--engine private", obstacle.unwrap_or_default(), cure)
        }
        Choice::Auto => {
            let what = format!("{}; {}", docker_state(found), obstacle.unwrap_or_default());
            refuse(Id::Engine, "engine", what, docker_cure(found))
        }
    }
}

/// Why there can be no private engine here.
fn private_obstacle(found: &Found) -> Option<String> {
    let name = match (found.os.name.as_str(), found.os.id.as_str()) {
        ("", "") => "an unknown system",
        ("", id) => id,
        (name, _) => name,
    };
    if !["debian", "ubuntu"].contains(&found.os.id.as_str()) {
        Some(format!("a private engine needs Debian or Ubuntu, and this is {name}"))
    } else if found.uid != 0 {
        Some(format!("a private engine needs root, and this is user {}", found.uid))
    } else {
        None
    }
}

fn docker_state(found: &Found) -> String {
    match (&found.client, &found.daemon) {
        (None, _) => "no docker is on PATH".into(),
        (Some(client), None) => {
            format!("docker {client} is on PATH, but no daemon answers ({})", found.silence)
        }
        (Some(_), Some(daemon)) => format!("docker {daemon} answers, but it has no buildx"),
    }
}

fn docker_cure(found: &Found) -> &'static str {
    if found.silence.contains("permission denied while trying to connect") {
        "join the group `docker` (`usermod -aG docker $USER`) and log in again, or run this as root"
    } else if found.daemon.is_some() {
        "install buildx: the package docker-buildx or docker-buildx-plugin"
    } else if found.client.is_some() {
        "start the daemon (`systemctl start docker`), or run this as root on Debian or Ubuntu"
    } else {
        "install Docker Engine with buildx, or run this as root on Debian or Ubuntu"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(client: Option<&str>, daemon: Option<&str>, buildx: bool, id: &str, uid: u32) -> Found {
        Found {
            client: client.map(str::to_owned),
            daemon: daemon.map(str::to_owned),
            silence: "Cannot connect to the Docker daemon at unix:///x".into(),
            buildx,
            os: OsRelease { id: id.into(), ..OsRelease::default() },
            uid,
        }
    }

    #[test]
    fn the_choice_by_what_is_there() {
        use Choice::{Auto, Docker, Private};
        let (c, d) = (Some("28.2.2"), Some("26.1.5"));
        type Case<'a> = (Choice, Found, Result<Kind, &'a [&'a str]>);
        let cases: &[Case] = &[
            (Auto, found(c, d, true, "arch", 1000), Ok(Kind::Docker)),
            (Auto, found(c, d, true, "debian", 0), Ok(Kind::Docker)),
            (Auto, found(c, d, false, "debian", 0), Ok(Kind::Private)),
            (Auto, found(c, None, false, "ubuntu", 0), Ok(Kind::Private)),
            (Auto, found(None, None, false, "debian", 0), Ok(Kind::Private)),
            (Auto, found(None, None, false, "debian", 1000), Err(&["no docker is on PATH", "user 1000"])),
            (
                Auto,
                found(c, None, false, "arch", 0),
                Err(&["docker 28.2.2 is on PATH", "Cannot connect", "this is arch"]),
            ),
            (
                Auto,
                found(c, d, false, "arch", 0),
                Err(&["docker 26.1.5 answers, but it has no buildx", "docker-buildx-plugin"]),
            ),
            (Auto, found(None, None, false, "", 0), Err(&["an unknown system"])),
            (
                Docker,
                found(None, None, false, "debian", 0),
                Err(&["--engine docker", "no docker is on PATH"]),
            ),
            (Docker, found(c, d, true, "debian", 0), Ok(Kind::Docker)),
            (Private, found(c, d, true, "debian", 0), Ok(Kind::Private)),
            (Private, found(c, d, true, "fedora", 0), Err(&["--engine private", "this is fedora"])),
        ];
        for (choice, found, want) in cases {
            match (decide(*choice, found), want) {
                (Ok(kind), Ok(want)) => assert_eq!(kind, *want, "{choice:?} {found:?}"),
                (Err(error), Err(words)) => {
                    let said = error.to_string();
                    assert!(said.starts_with("error[E_ENGINE]"), "{said}");
                    assert!(words.iter().all(|w| said.contains(w)), "{said}");
                }
                (got, _) => panic!("{choice:?} {found:?}: {got:?}"),
            }
        }
    }

    #[test]
    fn who_may_not_use_the_socket_is_told_so() {
        let mut it = found(Some("28"), None, false, "arch", 1000);
        it.silence = "permission denied while trying to connect to the Docker daemon socket".into();
        assert!(decide(Choice::Auto, &it).unwrap_err().to_string().contains("usermod -aG docker"));
    }

    #[test]
    fn versions_are_read_from_every_kind_of_answer() {
        let both =
            r#"{"Client":{"Version":"28.2.2"},"Server":{"Platform":{"Name":""},"Version":"26.1.5+dfsg1"}}"#;
        assert_eq!(versions(both), (Some("28.2.2".into()), Some("26.1.5+dfsg1".into())));
        let alone = r#"{"Client":{"Version":"28.2.2"},"Server":null}"#;
        assert_eq!(versions(alone), (Some("28.2.2".into()), None));
        assert_eq!(versions("emulate docker"), (None, None));
    }
}
