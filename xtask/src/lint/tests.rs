//! Text to finding: each case is a Dockerfile that is good but for the lines that are named.

use super::*;
use std::path::PathBuf;

const PATH: &str = "images/1.0/base/Dockerfile";

/// The findings on a Dockerfile whose target has the contexts `root` and `rootfs`, as `line id what`.
fn found(text: &str) -> Vec<String> {
    let contexts = r#"{"root": "${ROOT}", "rootfs": "templates/rootfs"}"#;
    let bake =
        format!(r#"{{"target": {{"base": {{"context": "images/1.0/base", "contexts": {contexts}}}}}}}"#);
    let files = [(PATH, text), ("images/docker-bake.json", bake.as_str())];
    told_of(&files.map(|(path, text)| (PathBuf::from(path), text.to_owned())).into())
}

fn told_of(files: &Files) -> Vec<String> {
    let told = |problem: Problem| {
        format!("{} {} {}", problem.place.rsplit(':').next().unwrap_or_default(), problem.id, problem.what)
    };
    lint(files).into_iter().map(told).collect()
}

/// Each case: a Dockerfile, and the beginning of every finding in its order.
#[track_caller]
fn check(cases: &[(&str, &[&str])]) {
    for (text, want) in cases {
        let found = found(text);
        let fits =
            found.len() == want.len() && found.iter().zip(*want).all(|(found, want)| found.starts_with(want));
        assert!(fits, "{text}\n{found:#?}\nwanted: {want:#?}");
    }
}

#[test]
fn an_argument_is_used_in_the_stage_that_declares_it() {
    check(&[
        ("FROM root\nARG A=1\nRUN echo $A", &[]),
        ("FROM root\nARG A=1\nRUN echo \\\n  \"${A:-x}\"", &[]),
        ("FROM root\nARG A=1\nRUN true", &["2 E_LINT `ARG A` is used nowhere"]),
        ("FROM root\nARG A B=2\nENV X=$B", &["2 E_LINT `ARG A`"]),
        ("FROM root\nARG A\nRUN echo \\$A", &["2 E_LINT `ARG A`"]),
        ("FROM root AS one\nARG A\nFROM one\nRUN echo $A", &[]),
        ("FROM root AS one\nARG A\nFROM root\nRUN true", &["2 E_LINT `ARG A`"]),
        ("FROM root\nARG SOURCE_DATE_EPOCH\nARG https_proxy\nARG BUILDKIT_SANDBOX_HOSTNAME", &[]),
        ("FROM root\nARG A\nCOPY <<'EOF' /x\n$A\nEOF\n", &["2 E_LINT `ARG A`"]),
        ("FROM root\nARG A\nCOPY <<EOF /x\n$A\nEOF\n", &[]),
        ("ARG A=1\nFROM root", &["1 E_LINT `ARG A`"]),
        ("ARG A=1\nFROM root\nARG A\nRUN echo $A", &[]),
    ]);
}

#[test]
fn an_argument_is_declared_in_the_stage_that_uses_it() {
    check(&[
        (
            "ARG A=1\nFROM root AS x\nARG A\nRUN echo $A\nFROM root\nRUN echo \\\n # why\n ${A}",
            &["8 E_LINT `$A` is empty here"],
        ),
        ("FROM root\nRUN echo $A\nARG A\nRUN echo $A", &["2 E_LINT `$A` is empty here: `ARG A` on line 3"]),
        ("FROM root AS x\nARG A\nRUN echo $A\nFROM root\nRUN for A in 1 2; do echo $A; done", &[]),
        ("FROM root AS x\nARG A\nRUN echo $A\nFROM root\nRUN A=1 && echo $A", &[]),
        ("FROM root AS x\nARG A\nRUN echo $A\nFROM root\nENV A=1\nRUN echo $A", &[]),
        ("FROM root\nRUN echo $TARGETARCH", &["2 E_LINT `$TARGETARCH` is empty here"]),
        ("FROM root\nARG TARGETARCH\nRUN echo $TARGETARCH $PATH $HTTPS_PROXY", &[]),
        ("FROM --platform=$BUILDPLATFORM root\nRUN true", &[]),
    ]);
}

#[test]
fn a_secret_is_no_argument() {
    check(&[
        ("FROM root\nARG HF_TOKEN\nRUN echo $HF_TOKEN", &["2 E_SECRET_IN_ARG `HF_TOKEN` in ARG"]),
        ("FROM root\nENV A=1 \\\n    DB_PASSWORD=x", &["3 E_SECRET_IN_ARG `DB_PASSWORD` in ENV"]),
        ("FROM root\nENV API_KEY the key", &["2 E_SECRET_IN_ARG `API_KEY`"]),
        ("FROM root\nLABEL org.private-key=\"a b\"", &["2 E_SECRET_IN_ARG `org.private-key` in LABEL"]),
        ("FROM root\nENV TOKENIZERS_PARALLELISM=1 MAX_TOKENS=1 DB_PASSWORD_FILE=/run/x KEY=a", &[]),
        ("FROM root\nLABEL about=\"no TOKEN=x here\"", &[]),
        (
            "FROM root\nRUN true \\\n && git clone https://me:hush@h.example.org/x",
            &["3 E_SECRET_IN_ARG an address with a password"],
        ),
        ("FROM root\nRUN git clone https://me:$PASS@h.example.org/x ssh://git@h.example.org/y", &[]),
    ]);
    assert!(!found("FROM root\nRUN git clone https://me:hush@h.example.org/x")[0].contains("hush"));
}

#[test]
fn a_base_is_a_stage_a_context_or_pinned() {
    let hex = "0123456789abcdef".repeat(4);
    let pinned = format!(
        "# syntax=docker/dockerfile:1@sha256:{hex}\nFROM h.example.org:5000/a/debian:13@sha256:{hex}\n"
    );
    check(&[
        (&pinned, &[]),
        (
            "FROM root AS x\nFROM X\nCOPY --from=x / /\nCOPY --from=0 / /\nCOPY --from=rootfs / /\nFROM scratch",
            &[],
        ),
        ("FROM debian", &["1 E_BASE_UNPINNED `debian` is no stage"]),
        ("FROM debian:13", &["1 E_BASE_UNPINNED `debian:13` has no digest"]),
        ("FROM debian:13@sha256:abc", &["1 E_BASE_UNPINNED `debian:13@sha256:abc` has no digest"]),
        ("FROM h.example.org:5000/debian", &["1 E_BASE_UNPINNED `h.example.org:5000/debian` is no stage"]),
        (&format!("FROM debian@sha256:{hex}"), &["1 E_BASE_UNPINNED"]),
        (&format!("FROM debian:latest@sha256:{hex}"), &["1 E_BASE_UNPINNED"]),
        ("ARG BASE=debian:13\nFROM ${BASE}", &["2 E_BASE_UNPINNED `${BASE}`: whoever gives"]),
        ("# syntax=docker/dockerfile:1\nFROM root", &["1 E_BASE_UNPINNED `docker/dockerfile:1`"]),
        ("FROM root\nCOPY \\\n  --from=nginx:1 / /", &["3 E_BASE_UNPINNED `nginx:1`"]),
        (
            "FROM root\nRUN --mount=type=secret,id=a \\\n  --mount=type=bind,from=tools,target=/t true",
            &["3 E_BASE_UNPINNED `tools`"],
        ),
        ("FROM root\nCOPY --from=late / /\nFROM root AS late", &["2 E_BASE_UNPINNED `late`"]),
    ]);
}

#[test]
fn verification_stays_on() {
    check(&[
        ("FROM root\nENV PIP_TRUSTED_HOST=x", &["2 E_LINT `PIP_TRUSTED_HOST`"]),
        (
            "FROM root\nRUN pip install --require-hashes \\\n --trusted-host=x -r y",
            &["3 E_LINT `--trusted-host`"],
        ),
        ("FROM root\nRUN curl -fsSLk https://x.example.org", &["2 E_LINT `curl -fsSLk`"]),
        ("FROM root\nRUN curl -fsSL --retry 3 https://x.example.org/-k-", &[]),
        ("FROM root\nRUN git -c http.sslVerify=false clone x", &["2 E_LINT `sslVerify=false`"]),
        (
            "FROM root\nRUN <<EOF\necho 'deb [arch=amd64 trusted=yes] http://x.example.org y z'\nEOF",
            &["3 E_LINT `trusted=yes`"],
        ),
        (
            "FROM root\n# apt-key is not used\nRUN true \\\n  # no --insecure\n && apt-key add x",
            &["5 E_LINT `apt-key`"],
        ),
        ("FROM root\nCOPY my-apt-keys.txt /x", &[]),
    ]);
}

#[test]
fn nothing_is_taken_unseen_or_at_its_newest() {
    check(&[
        ("FROM root\nRUN apt-get -y dist-upgrade", &["2 E_LINT `apt-get dist-upgrade`"]),
        ("FROM root\nRUN sh -c \"apt upgrade\"", &["2 E_LINT `apt upgrade`"]),
        ("FROM root\nRUN pip install -U pip", &["2 E_LINT `pip install -U`"]),
        ("FROM root\nRUN pip install x==1", &["2 E_LINT `pip install` takes what"]),
        (
            "FROM root\nRUN python3 -m pip --quiet \\\n  install x && pip install --require-hashes -r y",
            &["3 E_LINT `pip install` takes"],
        ),
        (
            "FROM root AS a\nENV UV_REQUIRE_HASHES=1\nFROM a\nRUN uv pip install -r x\nRUN pip install -r x",
            &["5 E_LINT `pip install`"],
        ),
        ("FROM root\nRUN [\"pip\", \"install\", \"x\"]", &["2 E_LINT `pip install` takes"]),
        ("FROM root\nRUN curl -fsSL https://x.example.org | tar -xC /usr/share/python3", &[]),
        (
            "FROM root\nRUN curl https://x.example.org |\\\n  sudo bash -s",
            &["2 E_LINT `bash` runs what `curl` fetches"],
        ),
        ("FROM root\nRUN bash -c \"$(wget -qO- https://x.example.org)\"", &["2 E_LINT `bash` runs"]),
        ("FROM root\nRUN curl -o x https://x.example.org || sh y 2>&1; (sh z)", &[]),
        ("FROM root\nADD https://x.example.org/a /a", &["2 E_LINT `ADD https://x.example.org/a`"]),
        ("FROM root\nADD --checksum=sha256:1 https://x.example.org/a /a", &[]),
    ]);
}

#[test]
fn a_layer_is_lean_and_closed() {
    let install = "apt-get install --yes --no-install-recommends git";
    check(&[
        (&format!("FROM root\nRUN apt-get update && {install} && rm -rf /var/lib/apt/lists/*"), &[]),
        (&format!("FROM root\nRUN --mount=type=cache,target=/var/lib/apt apt-get update && {install}"), &[]),
        (&format!("FROM root\nRUN {install} \\\n && apt-get update"), &["3 E_LINT `apt-get update` leaves"]),
        ("FROM root\nRUN apt-get \\\n install git", &["3 E_LINT `apt-get install` without"]),
        (
            "FROM root\nRUN chmod -R 777 /x && chmod 1777 /tmp && chmod g=u,o-w /y && chmod 0755 /z",
            &["2 E_LINT mode `777`"],
        ),
        ("FROM root\nRUN chmod a+rwx /x", &["2 E_LINT mode `a+rwx`"]),
        ("FROM root\nCOPY --chmod=0777 a /a", &["2 E_LINT mode `0777`"]),
        ("FROM root\nUSER root\nRUN true\nUSER 1000:0", &[]),
        ("FROM root\nUSER 1000\nUSER 0:0", &["3 E_LINT the image runs as `0:0`"]),
    ]);
}

#[test]
fn the_escape_character_and_a_broken_file_are_told_by_line() {
    check(&[
        ("# escape=`\nFROM root\nARG A\nRUN echo `\n  $A && `\n  chmod 777 /x", &["6 E_LINT mode"]),
        ("FROM root\nRUM true", &["2 E_LINT unknown instruction"]),
        ("", &["1 E_LINT expected at least one FROM"]),
    ]);
}

#[test]
fn what_a_target_gives_is_declared_and_no_secret() {
    let bake = r#"{
      "target": {
        "a": {
          "context": "images/1.0/base",
          "contexts": {
            "root": "docker-image://${MIRROR}debian:13",
            "other": "docker-image://${OTHER}"
          },
          "args": {
            "A": "1",
            "B": "2",
            "SOURCE_DATE_EPOCH": "0",
            "HTTP_PROXY": null,
            "MY_TOKEN": "x"
          },
          "labels": {
            "org.api-key": "x"
          }
        }
      }
    }"#;
    let dockerfile = "FROM root\nARG A MY_TOKEN_FILE\nRUN echo $A $MY_TOKEN_FILE";
    let files = [(PATH, dockerfile), ("images/docker-bake.json", bake)];
    let found = told_of(&files.map(|(path, text)| (PathBuf::from(path), text.to_owned())).into());
    let want = [
        "6 E_BASE_UNPINNED `debian:13` has no digest",
        "11 E_LINT `a` gives `B`, which no stage",
        "14 E_LINT `a` gives `MY_TOKEN`",
        "14 E_SECRET_IN_ARG `MY_TOKEN` in args",
        "17 E_SECRET_IN_ARG `org.api-key` in labels",
    ];
    assert!(found.len() == want.len() && found.iter().zip(want).all(|(f, w)| f.starts_with(w)), "{found:#?}");
}

#[test]
fn the_findings_of_all_files_come_at_once_each_with_its_place() {
    let file = |path: &str| (PathBuf::from(path), "FROM debian\nARG A".to_owned());
    let problems = lint(&[file("images/1/a/Dockerfile"), file("images/2/a/Dockerfile")].into());
    let places: Vec<&str> = problems.iter().map(|problem| problem.place.as_str()).collect();
    let want = [
        "images/1/a/Dockerfile:1",
        "images/1/a/Dockerfile:2",
        "images/2/a/Dockerfile:1",
        "images/2/a/Dockerfile:2",
    ];
    assert_eq!(places, want);
}
