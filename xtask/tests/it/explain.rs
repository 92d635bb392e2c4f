//! `explain` from outside: the answer on standard output, the verdict in the exit code, nothing started.

use crate::support::Copy;

#[test]
fn the_exit_code_is_the_verdict() {
    let copy = Copy::new();
    let good = copy.xtask(&["explain", "--torch", "2.9", "--cuda", "12.8"]);
    good.expect(0, &["known good: torch 2.9.1"]);
    assert!(good.stderr.is_empty(), "{good:#?}");
    let bad = copy.xtask(&["explain", "--torch", "2.9", "--cuda", "11.8"]);
    bad.expect(1, &["error[E_CHECK]"]);
    assert!(bad.stdout.starts_with("known bad: torch 2.9.1, CUDA 11.8"), "{bad:#?}");
    copy.xtask(&["explain", "--torch", "2.9", "--cuda", "12.9"]).expect(1, &["not known to work"]);
    let said = ["error[E_UNKNOWN_NAME]: --gpu", "`GTX 1080 Tie`", "did you mean `GTX 1080 Ti`?"];
    let refused = copy.xtask(&["explain", "--torch", "2.9", "--gpu", "GTX 1080 Tie"]);
    refused.expect(2, &said);
    assert!(refused.stdout.is_empty(), "{refused:#?}");
}

#[test]
fn the_same_answer_comes_as_json() {
    let args = [
        "explain",
        "--json",
        "--torch",
        "2.15",
        "--cuda",
        "13.2",
        "--gpu",
        "GTX 1080 Ti",
        "--driver",
        "535.104",
    ];
    let outcome = Copy::new().xtask(&args);
    outcome.expect(1, &[]);
    let answer: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(answer["verdict"], "known-bad");
    assert_eq!(answer["combination"]["verdict"], "known-good");
    assert_eq!(answer["gpu"]["fit"], "too-old");
    assert_eq!(answer["driver"]["floor"], "580.65.06");
    assert_eq!(answer["runs_here"]["newest"]["cuda_build"], "cu126");
}

#[test]
fn a_machine_alone_is_a_question_too() {
    let copy = Copy::new();
    let here = |args: &[&str]| copy.xtask(&[&["explain"], args].concat());
    let good = here(&["--gpu", "T4", "--driver", "535.104.05"]);
    good.expect(0, &["some of these images run on T4 (sm 7.5), linux/amd64, driver 535.104.05"]);
    let json = here(&["--json", "--gpu", "T4", "--driver", "535.104.05"]);
    let answer: serde_json::Value = serde_json::from_str(&json.expect(0, &[]).stdout).unwrap();
    assert_eq!((&answer["verdict"], &answer["take"]), (&"known-good".into(), &"2.9".into()), "{answer:#}");
    assert_eq!(answer["ours"][0]["lacks"][0]["driver"], "580.65.06");
    here(&["--driver", "470.82.01"]).expect(1, &["none of these images runs", "error[E_CHECK]"]);
    here(&["--python", "3.13"]).expect(2, &["error[E_USAGE]"]);
}

#[test]
fn a_catalog_that_is_refused_still_gets_an_answer() {
    let copy = Copy::new();
    copy.edit("cuda: cu132", "cuda: \"11.8\"");
    copy.xtask(&["check"]).expect(2, &["E_NO_WHEEL_CHANNEL"]);
    copy.xtask(&["explain", "--torch", "2.15", "--cuda", "13.2"]).expect(0, &["known good"]);
}
