//! The examples run as they are, wherever they are started.

use crate::containers::run;

/// Any user, nothing writable but /tmp, no capability.
const BARE: [&str; 10] = [
    "--user=4242:4242",
    "--read-only",
    "--tmpfs=/tmp",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    "--workdir=/tmp",
    // A container without a network does not know its own name, and torchrun asks for it.
    "--hostname=here",
    "--add-host=here:127.0.0.1",
    "--network",
    "none",
];

/// The losses of lines like `epoch 1: loss 0.6903 (2 × cpu, gloo)`.
fn losses(text: &str) -> Vec<f64> {
    let loss = |line: &str| line.split_once(": loss ")?.1.split(' ').next()?.parse().ok();
    text.lines().filter(|line| line.starts_with("epoch ")).filter_map(loss).collect()
}

#[track_caller]
fn learned(text: &str) {
    let losses = losses(text);
    assert_eq!(losses.len(), 5, "{text}");
    assert!(losses.is_sorted_by(|before, after| before > after) && losses[4] < 0.5, "{text}");
}

/// R13: `torchrun` with two processes, gloo on CPUs and NCCL on GPUs; all end with the same weights.
#[test]
#[ignore = "needs the image"]
fn several_processes_train_one_network() {
    let torchrun = ["torchrun", "--standalone", "--nproc-per-node", "2", "/opt/examples/train_ddp.py"];
    let outcome = run(&BARE, "devel", &torchrun);
    let said = ["(2 × ", "largest difference between processes: 0.0"];
    learned(&outcome.expect(0, &said).stdout);
}

/// R14: the notebook, which is the example of mixed precision, in a kernel of any user.
#[test]
#[ignore = "needs the image"]
fn the_notebook_trains_in_mixed_precision() {
    let command = ["jupyter", "nbconvert", "--execute", "--to=markdown", "--stdout"];
    let outcome = run(&BARE, "devel", &[&command[..], &["/opt/examples/train_amp.ipynb"]].concat());
    let text: Vec<&str> =
        outcome.expect(0, &["torch.bfloat16 torch.float32"]).stdout.lines().map(str::trim).collect();
    learned(&text.join("\n"));
}
