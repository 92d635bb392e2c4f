//! Two lines for every command, shown at the end of its help; a test reads them all as the program would.

use clap::Command;

/// A line as it is typed, and what it does.
type Example = (&'static str, &'static str);

/// Examples by command; the engine's actions by both of their words.
const EXAMPLES: &[(&str, [Example; 2])] = &[
    (
        "check",
        [
            ("cargo xtask check", "before you commit"),
            ("cargo xtask check --file team/variants.yaml", "a catalog of your own"),
        ],
    ),
    (
        "list",
        [
            ("cargo xtask list", "what there is, and its tags"),
            ("cargo xtask list --json", "the same, for a script"),
        ],
    ),
    (
        "explain",
        [
            ("cargo xtask explain --torch 2.9 --cuda 12.8", "do they work together?"),
            (
                "cargo xtask explain --gpu T4 --driver 535.104.05",
                "which of these images run on that machine?",
            ),
        ],
    ),
    (
        "plan",
        [
            ("cargo xtask plan --variant devel", "what a build would do, and why"),
            ("cargo xtask plan --all --json", "every image, with the exact commands"),
        ],
    ),
    (
        "nightly",
        [
            (
                "cargo xtask nightly --registry registry.example.org/team",
                "every variant of the default release",
            ),
            (
                "cargo xtask nightly --registry registry.example.org/team --gpus all --dry-run",
                "what it would run on a GPU machine",
            ),
        ],
    ),
    (
        "matrix",
        [
            (
                "cargo xtask matrix",
                "jobs that make each base and jobs that build on it, for GitHub's `strategy.matrix`",
            ),
            ("cargo xtask matrix --registry registry.example.org/team", "only what must be built"),
        ],
    ),
    (
        "doctor",
        [
            ("cargo xtask doctor --variant runtime", "can this variant use this host's GPU?"),
            ("cargo xtask doctor --container train", "why does it no longer see its GPU?"),
        ],
    ),
    (
        "lock",
        [
            ("cargo xtask lock --check", "was it made from this catalog?"),
            ("cargo xtask lock --update --release 2.9", "newer inputs for one release"),
        ],
    ),
    (
        "render",
        [
            ("cargo xtask render", "after editing the catalog, the lock or a template"),
            ("cargo xtask render --check", "would a file change?"),
        ],
    ),
    (
        "build",
        [
            ("cargo xtask build --variant runtime", "the default release"),
            (
                "cargo xtask build --all --release 2.15 --keep-going",
                "a whole release, carrying on after a failure",
            ),
        ],
    ),
    (
        "smoke",
        [
            ("cargo xtask smoke --variant runtime", "the image built here"),
            (
                "cargo xtask smoke --image pytorch-cuda:2.15-runtime --gpus all --require-gpu",
                "on a GPU machine",
            ),
        ],
    ),
    (
        "site",
        [
            ("cargo xtask site", "with measurements of the images built here"),
            (
                "cargo xtask site --out pages --registry registry.example.org/team",
                "what that registry publishes, into a branch to serve",
            ),
        ],
    ),
    (
        "run",
        [
            (
                "cargo xtask run --variant devel --detach --ssh-key ~/.ssh/id_ed25519.pub",
                "JupyterLab and SSH",
            ),
            (
                "cargo xtask run --variant runtime --gpus 0,1 -- torchrun --nproc-per-node 2 train.py",
                "one command on two GPUs",
            ),
        ],
    ),
    (
        "compose",
        [
            ("cargo xtask compose --variant devel > compose.yaml", "then `docker compose up`"),
            ("cargo xtask compose --variant mlflow --host", "reachable from other machines"),
        ],
    ),
    (
        "k8s",
        [
            ("cargo xtask k8s --variant devel --registry registry.example.org/team", "a Deployment"),
            (
                "cargo xtask k8s --variant runtime --registry registry.example.org/team -- python train.py",
                "a Job",
            ),
        ],
    ),
    (
        "slurm",
        [
            (
                "cargo xtask slurm --variant runtime --registry registry.example.org/team -- python train.py",
                "with pyxis and enroot",
            ),
            (
                "cargo xtask slurm --variant runtime --runtime apptainer --nodes 2 --gpus count=4 -- torchrun train.py",
                "two nodes with four GPUs each",
            ),
        ],
    ),
    (
        "engine",
        [
            ("cargo xtask engine status", "which engine is used, and what it can do"),
            ("cargo xtask engine prune", "remove the private engine with all its data"),
        ],
    ),
    (
        "engine status",
        [
            ("cargo xtask engine status", "and how to use it with docker directly"),
            ("cargo xtask engine status --engine private --json", "the private one, for a script"),
        ],
    ),
    (
        "engine up",
        [
            ("cargo xtask engine up", "fetches it first if needed"),
            (
                "cargo xtask engine up --engine private --state /big/disk",
                "beside your own docker, with its data elsewhere",
            ),
        ],
    ),
    (
        "publish",
        [
            (
                "cargo xtask publish --registry registry.example.org/team",
                "every variant of the default release",
            ),
            (
                "cargo xtask publish --registry registry.example.org/team --require gpu-tested --sign --key cosign.key",
                "only if tested on a GPU, and signed",
            ),
        ],
    ),
    (
        "freshness",
        [
            (
                "cargo xtask freshness --registry registry.example.org/team --max-age 2d",
                "as an independent alarm",
            ),
            (
                "cargo xtask freshness --registry registry.example.org/team --max-age 36h --release 2.9 --json",
                "one release, for a script",
            ),
        ],
    ),
    (
        "prune",
        [
            (
                "cargo xtask prune --registry registry.example.org/team --keep 10",
                "list what would be removed",
            ),
            ("cargo xtask prune --registry registry.example.org/team --keep 10 --delete", "remove it"),
        ],
    ),
    (
        "diff",
        [
            (
                "cargo xtask diff registry.example.org/team/pytorch-cuda:2.15-devel registry.example.org/team/pytorch-cuda:2.9-devel",
                "packages, layers, sizes",
            ),
            (
                "cargo xtask diff pytorch-cuda:2.15-runtime pytorch-cuda:2.15-devel",
                "two images in the engine",
            ),
        ],
    ),
    (
        "size",
        [
            ("cargo xtask size pytorch-cuda:2.15-runtime", "unpacked, layer by layer"),
            ("cargo xtask size registry.example.org/team/pytorch-cuda:2.15-runtime", "as pulled"),
        ],
    ),
    (
        "engine down",
        [
            ("cargo xtask engine down", "its images are kept"),
            ("cargo xtask engine down --engine private", "beside your own docker"),
        ],
    ),
    (
        "engine prune",
        [
            ("cargo xtask engine prune", "nothing is kept"),
            ("cargo xtask engine prune --state /big/disk", "if its data is elsewhere"),
        ],
    ),
    (
        "cache",
        [
            ("cargo xtask cache status", "where it is and how big it is"),
            ("cargo xtask cache prune --unused-for 7d", "what no build used in the last week"),
        ],
    ),
    (
        "cache status",
        [
            ("cargo xtask cache status", "this user's cache"),
            ("cargo xtask cache status --cache-dir /big/disk/cache", "another cache folder"),
        ],
    ),
    (
        "cache prune",
        [
            ("cargo xtask cache prune", "what was unused for 30 days"),
            ("cargo xtask cache prune --unused-for 0s", "everything"),
        ],
    ),
    (
        "bench",
        [
            ("cargo xtask bench --wheel numpy==2.4.6", "everything, three times: takes hours"),
            ("cargo xtask bench --runs 1 --against plain --case unchanged", "one comparison, twenty minutes"),
        ],
    ),
    (
        "ci",
        [
            ("cargo xtask ci --fast", "everything but the images, in a minute"),
            ("cargo xtask ci --dry-run", "only print the commands"),
        ],
    ),
    (
        "completions",
        [
            (
                "cargo xtask completions bash > ~/.local/share/bash-completion/completions/xtask",
                "for `xtask`",
            ),
            ("cargo xtask completions fish > ~/.config/fish/conf.d/xtask.fish", "for `cargo xtask` too"),
        ],
    ),
];

/// Puts the examples below the help of every command that has some.
pub(super) fn add(command: Command) -> Command {
    below(command, "")
}

fn below(command: Command, above: &str) -> Command {
    command.mut_subcommands(|it| {
        let name = format!("{above}{}", it.get_name());
        let it = below(it, &format!("{name} "));
        match EXAMPLES.iter().find(|(of, _)| *of == name) {
            Some((_, examples)) => it.after_help(text(examples)),
            None => it,
        }
    })
}

fn text(examples: &[Example]) -> String {
    let lines = examples.iter().map(|(line, does)| format!("\n  {line}\n      {does}"));
    format!("Examples:{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words that a shell would give the program; what stands behind `>` is the shell's.
    fn words(line: &str) -> Vec<&str> {
        line.split(" > ").next().unwrap().strip_prefix("cargo xtask ").unwrap().split_whitespace().collect()
    }

    #[test]
    fn every_command_has_two_examples_and_the_program_takes_them() {
        let mut left = vec![(String::new(), crate::cli::command())];
        let mut seen = 0;
        while let Some((path, command)) = left.pop() {
            for it in command.get_subcommands() {
                let name = format!("{path}{}", it.get_name());
                left.push((format!("{name} "), it.clone()));
                let found = EXAMPLES.iter().filter(|(of, _)| *of == name).collect::<Vec<_>>();
                assert_eq!(found.len(), 1, "examples of `{name}`");
                seen += found.len();
                for (line, does) in found.iter().flat_map(|(_, examples)| examples) {
                    assert!(line.starts_with(&format!("cargo xtask {name}")) && !does.is_empty(), "{line}");
                    let args = std::iter::once("xtask").chain(words(line));
                    crate::cli::command()
                        .try_get_matches_from(args)
                        .unwrap_or_else(|e| panic!("{line}: {e}"));
                }
            }
        }
        assert_eq!(seen, EXAMPLES.len(), "an example of a command that is not there");
    }
}
