//! Running mmdebstrap.

use super::tool::Tool;
use super::{RootLayout, RootSpec, Sources, layout, recipe};
use crate::apt;
use crate::catalog::Platform;
use crate::files;
use crate::problem::{Id, refuse};
use crate::runner::{Step, quote};
use anyhow::Result;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a bootstrap leaves.
pub struct Made {
    /// The root as a tar.
    pub tar: PathBuf,
    /// Versions by package.
    pub packages: BTreeMap<String, String>,
}

/// Variables that reach the packages' scripts: how to get out. Everything else could end up in the bytes.
const PASSED: &[&str] = &[
    "PATH",
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
];

/// Whether this machine can run programs of a platform.
///
/// Errors: `E_PLATFORM`.
pub fn can_run(platform: Platform) -> Result<()> {
    let qemu = format!("/proc/sys/fs/binfmt_misc/qemu-{}", platform.machine());
    if platform == Platform::host() || Path::new(&qemu).exists() {
        return Ok(());
    }
    refuse(
        Id::Platform,
        "--platform",
        format!("this machine cannot run {platform}, and a root runs its own packages' scripts"),
        "install qemu-user-static and binfmt-support, or run this on a machine of that platform; a base alone stands on a root \
         from there with `build --base-only --root-layout FOLDER`",
    )
}

/// Bootstraps into `work`, which must be empty and on a disk with room for twice the root. On a `stack` of roots, only
/// what the packages add to it is taken.
pub fn run(
    spec: &RootSpec,
    sources: &Sources,
    tool: &Tool,
    stack: &[RootLayout],
    work: &Path,
    say: &dyn Fn(&str),
) -> Result<Made> {
    // The name tells apt the form; the file keeps credentials out of the arguments.
    let list = work.join(format!("main.{}", sources.form));
    files::write_private(&list, sources.text.as_bytes())?;
    let options = work.join("apt.conf");
    files::write_private(&options, apt_options()?.as_bytes())?;
    std::fs::create_dir(work.join("tmp"))?;
    let [tar, status, unpacked] = ["root.tar", "status", "unpacked"].map(|name| work.join(name));
    let download = |from: &str, to: &Path| format!("download {from} {}", quote(&to.display().to_string()));
    let hook = |hook: String| format!("--customize-hook={hook}");
    let mut step = command(spec, sources, tool, work)
        .args([format!("--aptopt={}", options.display())])
        .args([hook(download("/var/lib/dpkg/status", &status))]);
    let output = match stack.is_empty() {
        true => {
            step = step.args(["--variant=minbase", "--format=tar"]);
            step = step.args([format!("--setup-hook={}", recipe::setup(spec))]);
            tar.display().to_string()
        }
        false => {
            step = step.args(["--variant=essential", "--format=null"]).args(laid(stack, work)?);
            if !spec.unpack.is_empty() {
                step = step.args([hook(download(recipe::UNPACKED, &unpacked))]);
            }
            step = step.args([hook(recipe::pack(spec)), hook(download(recipe::PACKED, &tar))]);
            "/dev/null".to_owned()
        }
    };
    let step = step.args([spec.suite.clone(), output, list.display().to_string()]);
    let mut said = String::new();
    let ended = step.stream(|_, line| {
        said.push_str(line);
        said.push('\n');
        if let Some(phase) = phase(line) {
            say(&format!("root {}: {phase}", spec.suite));
        }
    })?;
    if !ended.success() {
        return Err(apt::refusal("mmdebstrap", &said));
    }
    let mut status = std::fs::read_to_string(status)?;
    if !spec.unpack.is_empty() {
        status.push_str(&std::fs::read_to_string(unpacked)?);
    }
    let mut packages = packages(&status, spec.platform.debian());
    let is_below =
        |name: &String, version: &String| stack.iter().any(|it| it.packages.get(name) == Some(version));
    packages.retain(|name, version| !is_below(name, version));
    Ok(Made { tar, packages })
}

/// Hooks that lay a stack of roots down before apt begins, and note the moment: what is newer was added.
fn laid(stack: &[RootLayout], work: &Path) -> Result<Vec<String>> {
    let mut hooks = Vec::new();
    for (i, below) in stack.iter().enumerate() {
        let tar = work.join(format!("below-{i}.tar"));
        layout::unpack(below, &tar)?;
        hooks.push(format!("--setup-hook=tar-in {} /", quote(&tar.display().to_string())));
    }
    hooks.push(format!("--setup-hook={}", recipe::laid()));
    Ok(hooks)
}

/// mmdebstrap with everything but its positional arguments, in an environment that is the same everywhere.
fn command(spec: &RootSpec, sources: &Sources, tool: &Tool, work: &Path) -> Step {
    let callers = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let unset = callers.filter(|name| !PASSED.contains(&name.as_str())).flat_map(|n| ["-u".to_owned(), n]);
    let mut set = vec![
        format!("PATH={}", tool.path),
        "HOME=/root".to_owned(),
        format!("TMPDIR={}", work.join("tmp").display()),
        format!("SOURCE_DATE_EPOCH={}", spec.epoch),
    ];
    set.extend(tool.perl.iter().map(|perl| format!("PERL5LIB={perl}")));
    let step = Step::new("bootstrap the root", mounts_apart())
        .args(["env"])
        .args(unset)
        .args(set)
        .args(["mmdebstrap", mode()])
        .args([format!("--architectures={}", spec.platform.debian())])
        // Device nodes are the engine's to make; unprivileged engines cannot unpack them. The recipe cleans up after
        // apt itself: an apt that lost its configuration in a hook would clean up the host.
        .args(["--skip=output/dev", "--skip=chroot/policy-rc.d", "--skip=cleanup/apt"])
        .args([format!("--extract-hook={}", recipe::extracted())])
        // Before the lists of packages go.
        .args(spec.unpack.iter().map(|package| format!("--customize-hook={}", recipe::unpack(package))))
        .args([format!("--customize-hook={}", recipe::customize(spec, sources))]);
    let step = match spec.packages.is_empty() {
        true => step,
        false => step.args([format!("--include={}", spec.packages.join(","))]),
    };
    step.args(tool.keyring.iter().map(|file| format!("--keyring={}", file.display()))).env("PATH", &tool.path)
}

/// What keeps the mounts of a bootstrap away from the host's: root's mmdebstrap would mount below the host's own tree and
/// make all of it private. A chroot that is no mount point cannot change how mounts spread; the second form does not try.
fn mounts_apart() -> Vec<String> {
    let forms = ["slave", "unchanged"].map(|spread| ["unshare", "--mount", "--propagation", spread, "--"]);
    let works = |form: &&[&str; 5]| {
        let step = Step::new("mounts of its own", form.iter().copied()).args(["true"]);
        step.output().is_ok_and(|out| out.status.success())
    };
    match forms.iter().filter(|_| is_root()).find(works) {
        Some(form) => form.iter().map(|word| (*word).to_owned()).collect(),
        None => Vec::new(),
    }
}

/// Root bootstraps as itself; others need the kernel's user namespaces, which mmdebstrap finds out about.
fn mode() -> &'static str {
    if is_root() { "--mode=root" } else { "--mode=auto" }
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    // A process owns its own folder there.
    std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0)
}

/// How apt reaches the archives: the host's proxies, certificates and credentials. They do not stay in the image.
fn apt_options() -> Result<String> {
    // A host without apt's own configuration has nothing to add.
    let mut options = apt::host_configuration().unwrap_or_default();
    for (option, path) in [("netrc", "/etc/apt/auth.conf"), ("netrcparts", "/etc/apt/auth.conf.d")] {
        if Path::new(path).exists() {
            options.push_str(&format!("Dir::Etc::{option} \"{path}\";\n"));
        }
    }
    options.push_str(
        "Acquire::Languages \"none\";\nAPT::Install-Recommends \"false\";\nAcquire::Retries \"3\";\n",
    );
    Ok(options)
}

/// What mmdebstrap is about to do, out of a line of its words.
fn phase(line: &str) -> Option<&str> {
    let phase = line.strip_prefix("I: ")?.trim_end_matches('.');
    let telling = ["running apt-get", "downloading", "extracting", "installing", "cleaning", "creating"];
    // Hooks are ours; their scripts are no news.
    let tells = telling.iter().any(|word| phase.starts_with(word)) && !phase.contains("hook");
    tells.then_some(phase)
}

/// The installed packages of a dpkg status file, by `native` architecture.
fn packages(status: &str, native: &str) -> BTreeMap<String, String> {
    let package = |stanza: &str| {
        let field = |name: &str| stanza.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(": "));
        let (name, version, arch) = (field("Package")?, field("Version")?, field("Architecture")?);
        let name = match arch == native || arch == "all" {
            true => name.to_owned(),
            false => format!("{name}:{arch}"),
        };
        field("Status")?.ends_with(" installed").then(|| (name, version.to_owned()))
    };
    status.split("\n\n").filter_map(package).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installed_packages_are_read_from_dpkgs_status() {
        let status = "Package: a\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1-1\n\n\
            Package: b\nStatus: install ok installed\nArchitecture: all\nVersion: 2\nDescription: x\n Version: no\n\n\
            Package: c\nStatus: deinstall ok config-files\nArchitecture: amd64\nVersion: 3\n\n\
            Package: d\nStatus: install ok installed\nArchitecture: arm64\nVersion: 1:4~x\n";
        let found = packages(status, "amd64");
        let found: Vec<_> = found.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(found, [("a", "1-1"), ("b", "2"), ("d:arm64", "1:4~x")]);
    }

    #[test]
    fn phases_are_told_and_chatter_is_not() {
        assert_eq!(phase("I: running apt-get update..."), Some("running apt-get update"));
        for chatter in [
            "I: success in 39.9 seconds",
            "Get:1 http://m.example.org",
            "W: running",
            "I: running --setup-hook in shell: x",
        ] {
            assert_eq!(phase(chatter), None, "{chatter}");
        }
    }

    #[test]
    fn a_platform_that_cannot_run_is_refused() {
        assert!(can_run(Platform::host()).is_ok());
    }
}
