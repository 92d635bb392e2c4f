//! A container in the background: whether its services answer, and at which addresses a person finds them.

use super::Starter;
use crate::problem::{Id, refuse};
use crate::recipe::{Listening, Recipe, SERVICES, bracketed};
use crate::runner::{Step, tail};
use anyhow::Result;
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

/// How long services may take until they answer: JupyterLab on a slow disk takes half a minute.
const PATIENCE: Duration = Duration::from_secs(180);

/// A container that was started.
pub struct Container<'a> {
    /// Who started it.
    pub starter: &'a Starter,
    /// What it needs.
    pub recipe: &'a Recipe,
}

impl Container<'_> {
    /// Starts it in the background. What could not start is taken back: it would be in the way of the next try.
    ///
    /// Errors: `E_GPU_NOT_ATTACHED` where the engine cannot give it the GPUs, otherwise `E_CONTAINER`, in the engine's words.
    pub fn start(&self, step: &Step) -> Result<()> {
        let out = step.output()?;
        if out.status.success() {
            return Ok(());
        }
        let name = self.recipe.name.as_str();
        self.starter.step("what did not start goes", ["rm", name]).output()?;
        let said = tail(out.stderr.trim_end(), 4);
        let of_gpus = ["could not select device driver", "nvidia-container-cli", "CDI device"];
        match of_gpus.iter().any(|part| said.contains(part)) {
            true => refuse(
                Id::GpuNotAttached,
                name,
                said,
                "`cargo xtask doctor` names the cause; or add `--gpus none`",
            ),
            false => refuse(Id::Container, name, said, "fix that, then run the same command again"),
        }
    }

    /// Waits until every service answers, and returns what the container has said by then.
    ///
    /// Errors: `E_CONTAINER` with the end of its log where it ended, or where they do not answer in time.
    pub fn answers(&self) -> Result<String> {
        let name = self.recipe.name.as_str();
        let begun = Instant::now();
        loop {
            if self.all_answer()? {
                return self.log();
            }
            let state = ["inspect", "--format", "{{.State.Running}}", name];
            let ended = self.starter.step("does it run?", state).read()? != "true";
            if ended || begun.elapsed() > PATIENCE {
                let why = if ended { "it ended" } else { "its services do not answer" };
                let log = tail(self.log()?.trim_end(), 8).replace('\n', "\n    ");
                let cure = self.starter.step("", ["rm", "--force", name]).to_line();
                return refuse(
                    Id::Container,
                    name,
                    format!("{why}\n    {log}"),
                    format!("fix that, after `{cure}`"),
                );
            }
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    /// Each is asked by its name: the health check of a container that has only begun knows of none and is content.
    fn all_answer(&self) -> Result<bool> {
        for it in &self.recipe.listening {
            let service = format!("{SERVICES}{}", it.service);
            let check = ["exec", &self.recipe.name, &service, "--check"];
            if !self.starter.step("does it answer?", check).output()?.status.success() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn log(&self) -> Result<String> {
        let log = self.starter.step("what it says", ["logs", &self.recipe.name]).output()?;
        Ok(format!("{}{}", log.stdout, log.stderr))
    }
}

/// Where a person finds the services.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Addresses {
    /// Pages for a browser, by service.
    pub pages: Vec<(String, String)>,
    /// The line that logs in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh: Option<String>,
    /// The entry for `~/.ssh/config`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_config: Option<String>,
}

impl Addresses {
    /// From the recipe, and from what the container has said: a token that it made stands in its log and nowhere else.
    pub fn new(recipe: &Recipe, log: &str) -> Addresses {
        let login = recipe.listening.iter().find(|it| it.service == "ssh");
        Addresses {
            pages: recipe.listening.iter().filter_map(|it| page(recipe, it, log)).collect(),
            ssh: login
                .map(|it| format!("ssh -p {} {}@{}", it.host_port, recipe.login, reachable(recipe.address))),
            ssh_config: login.map(|it| ssh_config(recipe, it)),
        }
    }

    /// A line for each.
    pub fn text(&self, ssh_config: bool) -> String {
        let pages = self.pages.iter().map(|(_, address)| address.clone());
        let entry = self.ssh_config.clone().filter(|_| ssh_config);
        pages.chain(self.ssh.clone()).chain(entry).collect::<Vec<_>>().join("\n")
    }
}

fn page(recipe: &Recipe, it: &Listening, log: &str) -> Option<(String, String)> {
    let page = it.page.as_ref()?;
    let said = log
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix(&format!("{}: http", it.service)))
        .unwrap_or_default();
    let scheme = if said.starts_with('s') { "https" } else { "http" };
    let query = said.split_once('?').map(|(_, query)| format!("?{}", query.trim_end())).unwrap_or_default();
    let address = bracketed(reachable(recipe.address));
    Some((it.service.clone(), format!("{scheme}://{address}:{}{page}{query}", it.host_port)))
}

/// An address that one can go to: all addresses are none.
fn reachable(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(it) if it.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(it) if it.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    }
}

/// Its host key is known by the container's name: another container may have the same address and port tomorrow.
fn ssh_config(recipe: &Recipe, it: &Listening) -> String {
    let key = recipe
        .secrets
        .iter()
        .find(|secret| secret.service == "ssh")
        .and_then(|secret| secret.file.as_deref());
    let identity = key.and_then(|file| file.strip_suffix(".pub"));
    let identity = identity.map(|file| format!("\n    IdentityFile \"{file}\"\n    IdentitiesOnly yes"));
    let (name, address) = (&recipe.name, reachable(recipe.address));
    format!(
        "Host {name}\n    HostName {address}\n    Port {}\n    User {}\n    HostKeyAlias {name}{}",
        it.host_port,
        recipe.login,
        identity.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Wishes;
    use crate::recipe::tests::recipe_of;

    fn wishes() -> Wishes {
        let mut wishes = Wishes::new("devel");
        wishes.secrets.insert("ssh".into(), "/home/me/.ssh/id.pub".into());
        wishes.ports.insert("jupyter".into(), 18888);
        wishes
    }

    #[test]
    fn the_page_has_the_hosts_port_and_the_token_that_the_log_shows() {
        let recipe = recipe_of(&wishes());
        let log = "jupyter: https://127.0.0.1:8888/lab?token=abc\nssh: host key of type rsa: SHA256:x\n";
        let addresses = Addresses::new(&recipe, log);
        assert_eq!(addresses.pages, [("jupyter".into(), "https://127.0.0.1:18888/lab?token=abc".into())]);
        assert_eq!(addresses.text(false).lines().last(), Some("ssh -p 2222 user@127.0.0.1"));
        let given = Addresses::new(
            &recipe,
            "jupyter: http://127.0.0.1:8888/lab (its token is the one that was given)",
        );
        assert_eq!(given.pages[0].1, "http://127.0.0.1:18888/lab");
    }

    #[test]
    fn an_editor_is_told_host_port_user_and_key() {
        let entry = Addresses::new(&recipe_of(&wishes()), "").ssh_config.unwrap();
        let lines = [
            "Host pytorch-cuda-devel",
            "HostName 127.0.0.1",
            "Port 2222",
            "User user",
            "HostKeyAlias pytorch-cuda-devel",
        ];
        for line in lines.iter().chain(&["IdentityFile \"/home/me/.ssh/id\""]) {
            assert!(entry.lines().any(|it| it.trim() == *line), "{line}: {entry}");
        }
    }

    #[test]
    fn all_addresses_are_reached_through_loopback() {
        assert_eq!(reachable("0.0.0.0".parse().unwrap()).to_string(), "127.0.0.1");
        assert_eq!(bracketed(reachable("::".parse().unwrap())), "[::1]");
        assert_eq!(reachable("192.0.2.7".parse().unwrap()).to_string(), "192.0.2.7");
    }
}
