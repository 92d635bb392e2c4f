//! R14: whoever a container runs as, whatever is mounted; and what it is told once when it starts.

use crate::containers::{Container, Volume, docker, image, run};

/// What may be taken away from a container that only computes.
const HARD: [&str; 7] =
    ["--read-only", "--tmpfs", "/tmp:exec", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"];

/// Every user in every container.
fn users() -> Vec<Vec<&'static str>> {
    let users = [&[][..], &["--user", "1000:1000"], &["--user", "4242:4242"], &["--user", "4242:0"]];
    users.iter().flat_map(|user| [user.to_vec(), [user, &HARD[..]].concat()]).collect()
}

/// R14
#[test]
#[ignore = "needs the image"]
fn every_user_has_a_home_a_name_and_caches() {
    let script = r#"
import getpass, os, pathlib, tempfile, torch
assert getpass.getuser() in ("user", f"uid-{os.getuid()}"), getpass.getuser()
cache = pathlib.Path.home() / ".cache" / "test"
cache.mkdir(parents=True)
(cache / "x").write_text("x")
print(os.getuid())
"#;
    for options in users() {
        let uid = if options.contains(&"4242:4242") || options.contains(&"4242:0") { "4242" } else { "1000" };
        let outcome = run(&options, "runtime", &["python", "-c", script]);
        assert_eq!(outcome.expect(0, &[]).stdout, format!("{uid}\n"), "{options:?}");
    }
}

/// R14: the group of a user that the image does not know decides what it may change in the environment.
#[test]
#[ignore = "needs the image"]
fn users_of_group_0_can_write_where_the_user_can() {
    let write = "touch /workspace/x /home/user/x /opt/venv/bin/x && echo written";
    for user in ["1000:0", "4242:0"] {
        assert_eq!(
            run(&["--user", user], "runtime", &["sh", "-c", write]).expect(0, &[]).stdout,
            "written\n"
        );
    }
    run(&["--user", "4242:4242"], "runtime", &["sh", "-c", write]).expect(1, &["Permission denied"]);
}

/// R14: one line, with both uids and what to do.
#[test]
#[ignore = "needs the image"]
fn an_unwritable_work_folder_is_told_once() {
    let volume = Volume::new();
    // An empty volume takes over the owner in the image, unless it is told not to.
    let mount = volume.at("/workspace:nocopy");
    let give = |owner: &str| {
        let words = ["run", "--rm", "--user", "0", "--network", "none", "--entrypoint", "chown", &mount];
        docker(&[&words[..], &[&image("runtime"), owner, "/workspace"]].concat()).expect(0, &[]);
    };
    for (owner, options, said) in [
        (
            "2001:2001",
            &[][..],
            "belongs to uid 2001 and this container runs as uid 1000, which cannot write there: add --user 2001:2001",
        ),
        (
            "0:4",
            &["--user", "4242:4242"],
            "belongs to uid 0 and this container runs as uid 4242, which cannot write there: on the host: chown 4242:4242",
        ),
    ] {
        give(owner);
        let outcome = run(&[&[mount.as_str()][..], options].concat(), "runtime", &["true"]);
        outcome.expect(0, &[said]);
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:#?}");
    }
    give("1000:0");
    assert_eq!(run(&[&mount], "runtime", &["true"]).expect(0, &[]).stderr, "");
}

/// R13
#[test]
#[ignore = "needs the image"]
fn little_shared_memory_is_told_once() {
    let small = run(&["--shm-size", "64m"], "runtime", &["true"]);
    small.expect(0, &["entrypoint: warning: /dev/shm holds only 64 MiB", "--shm-size=1g"]);
    assert_eq!(small.stderr.lines().count(), 1, "{small:#?}");
    assert_eq!(run(&[], "runtime", &["true"]).expect(0, &[]).stderr, "");
    let quiet = run(&["--shm-size", "64m", "--env", "ENTRYPOINT_QUIET=1"], "runtime", &["true"]);
    assert_eq!(quiet.expect(0, &[]).stderr, "");
}

/// R4: what `torch.compile` makes is loaded from /tmp, which docker's own tmpfs forbids.
#[test]
#[ignore = "needs the image"]
fn a_tmp_that_runs_nothing_is_told_once() {
    let closed = run(&["--tmpfs=/tmp"], "runtime", &["true"]);
    closed.expect(0, &["entrypoint: warning: nothing in /tmp can be executed", "--tmpfs /tmp:exec"]);
    assert_eq!(closed.stderr.lines().count(), 1, "{closed:#?}");
    for silent in
        [&["--tmpfs=/tmp:exec"][..], &["--tmpfs=/tmp", "--env=TORCHINDUCTOR_CACHE_DIR=/workspace/.cache"]]
    {
        assert_eq!(run(silent, "runtime", &["true"]).expect(0, &[]).stderr, "", "{silent:?}");
    }
}

/// R4, R14: a user without an account, on a root that is only read, compiles.
#[test]
#[ignore = "needs the image"]
fn any_user_compiles() {
    let script =
        "import torch; print(torch.compile(lambda x: torch.sin(x) + x)(torch.zeros(4)).sum().item())";
    let options = [&["--user", "4242:4242", "--env=ENTRYPOINT_QUIET=1"], &HARD[..]].concat();
    assert_eq!(run(&options, "runtime", &["python", "-c", script]).expect(0, &[]).stdout, "0.0\n");
}

/// Locale and time zone are the container's; no frontend of a build lasts.
#[test]
#[ignore = "needs the image"]
fn the_locale_is_utf8_and_the_time_zone_can_be_set() {
    let script = "locale charmap; date --date=@0 +%H:%M; \
                  python -c 'import time; print(time.localtime(0).tm_hour)'; echo \"[$DEBIAN_FRONTEND]\"";
    let outcome = run(&["--env", "TZ=Asia/Tokyo"], "runtime", &["bash", "-c", script]);
    assert_eq!(outcome.expect(0, &[]).stdout, "UTF-8\n09:00\n9\n[]\n");
}

/// R14: data is mounted below a folder that is there and that nobody fills by mistake.
#[test]
#[ignore = "needs the image"]
fn there_is_a_place_for_data_that_is_only_read() {
    run(&[], "runtime", &["touch", "/datasets/x"]).expect(1, &["Permission denied"]);
    let volume = Volume::new();
    let mount = format!("{}:ro", volume.at("/datasets/some"));
    let container = Container::start(&[&mount], "runtime", &["sleep", "600"]);
    container.exec(&["touch", "/datasets/some/x"]).expect(1, &["Read-only file system"]);
    assert_eq!(container.output(&["ls", "/datasets"]), "README\nsome\n");
}
