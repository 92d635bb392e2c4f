//! Publishing against a real registry on loopback, behind a proxy that fails as it is told to. The images are tiny; what
//! tests them is a double of docker.

use crate::order::{Doubles, PASSED};
use crate::proxy::{Fault, Proxy};
use crate::registry::Registry;
use crate::support::Outcome;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

const VARIANTS: [&str; 4] = ["runtime", "devel", "debug", "mlflow"];
/// The media type of an image's manifest.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// The tags of one image but for the day: the first never moves.
const IMMUTABLE: &str = "2.15.0-cuda13.2-cudnn9-runtime-20261130";
const MOVING: [&str; 4] = ["2.15.0-cuda13.2-cudnn9-runtime", "2.15.0-runtime", "2.15-runtime", "runtime"];

/// A checkout with a commit, a registry, and the proxy that is published through.
pub struct Market {
    pub doubles: Doubles,
    pub registry: Registry,
    pub proxy: Proxy,
    commit: String,
}

impl Market {
    pub fn new() -> Market {
        Market::with(Registry::start())
    }

    pub fn with(registry: Registry) -> Market {
        let doubles = Doubles::new();
        std::fs::write(doubles.copy.path(".gitignore"), "/target/\n/double/\n/empty/\n").unwrap();
        let proxy = Proxy::start(registry.port);
        let mut market = Market { doubles, registry, proxy, commit: String::new() };
        market.commit();
        market
    }

    /// Commits what is there, as of the same day each time.
    pub fn commit(&mut self) {
        let git = "git init --quiet 2>/dev/null; git add --all; git -c user.name=t -c user.email=t@example.org \
                   commit --quiet --allow-empty --message x && git rev-parse HEAD";
        let mut sh = Command::new("sh");
        sh.args(["-c", git]).current_dir(self.doubles.copy.dir.path());
        for name in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
            sh.env(name, "2026-11-30T23:30:00Z");
        }
        let out = Outcome::of(sh.output().unwrap());
        self.commit = out.expect(0, &[]).stdout.trim().to_owned();
    }

    /// The registry itself.
    pub fn direct(&self) -> String {
        format!("127.0.0.1:{}", self.registry.port)
    }

    /// The registry behind the proxy.
    pub fn through(&self) -> String {
        format!("127.0.0.1:{}", self.proxy.port)
    }

    /// A request to the registry itself: the status, the digest of what came, and what came.
    pub fn ask(&self, method: &str, path: &str, kind: &str, body: &[u8]) -> (u16, Vec<u8>, String) {
        let url = match path.starts_with("http") {
            true => path.to_owned(),
            false => format!("http://{}/v2/pytorch-cuda/{path}", self.direct()),
        };
        let config = ureq::Agent::config_builder().proxy(None).http_status_as_error(false).build();
        let any = format!("{MANIFEST}, {}, */*", MANIFEST.replace("manifest", "index"));
        let request = ureq::http::Request::builder().method(method).uri(url).header("accept", any);
        let request = request.header("content-type", kind).body(body).unwrap();
        let mut answer = config.new_agent().run(request).unwrap();
        let location = answer.headers().get("location").map_or("", |it| it.to_str().unwrap()).to_owned();
        (answer.status().as_u16(), answer.body_mut().read_to_vec().unwrap(), location)
    }

    fn push_blob(&self, bytes: &[u8]) -> Value {
        let (_, _, location) = self.ask("POST", "blobs/uploads/", "*/*", b"");
        let digest = sha256(bytes);
        let (status, ..) =
            self.ask("PUT", &format!("{location}&digest={digest}"), "application/octet-stream", bytes);
        assert_eq!(status, 201);
        json!({"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": digest, "size": bytes.len()})
    }

    /// A tiny image of a variant, as `build --push` would have named it.
    pub fn push(&self, variant: &str, content: &str) -> String {
        self.push_as(variant, content, &self.commit.clone(), &self.commit[..12])
    }

    pub fn push_as(&self, variant: &str, content: &str, revision: &str, in_tag: &str) -> String {
        self.push_for("amd64", variant, content, (revision, in_tag), "")
    }

    /// The image of runtime that is made from an input.
    pub fn push_of(&self, input: &str) -> String {
        self.push_for("amd64", "runtime", "a", (&self.commit, &self.commit[..12]), input)
    }

    fn push_for(
        &self,
        architecture: &str,
        variant: &str,
        content: &str,
        (revision, in_tag): (&str, &str),
        input: &str,
    ) -> String {
        let label = |key: &str| format!("pytorch-cuda-images.{key}");
        let config = json!({
            "architecture": architecture, "os": "linux", "rootfs": {"type": "layers", "diff_ids": [sha256(content.as_bytes())]},
            "config": {"Labels": {
                label("release"): "2.15", label("variant"): variant, label("base-input"): sha256(content.as_bytes()), label("input"): input, "org.opencontainers.image.revision": revision,
            }},
        });
        let mut config = self.push_blob(config.to_string().as_bytes());
        config["mediaType"] = json!("application/vnd.oci.image.config.v1+json");
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [self.push_blob(content.as_bytes())],
        });
        let bytes = manifest.to_string().into_bytes();
        let path = format!("manifests/candidate-{in_tag}-2.15-{variant}-{architecture}");
        assert_eq!(self.ask("PUT", &path, MANIFEST, &bytes).0, 201);
        sha256(&bytes)
    }

    /// The base of an image with some content, as the push of one shares it.
    pub fn push_base(&self, content: &str) -> String {
        let mut config =
            self.push_blob(json!({"architecture": "amd64", "os": "linux"}).to_string().as_bytes());
        config["mediaType"] = json!("application/vnd.oci.image.config.v1+json");
        let layers = [self.push_blob(format!("base of {content}").as_bytes())];
        let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers});
        let tag = format!("base-2.15-{}", &sha256(content.as_bytes())[7..23]);
        let bytes = manifest.to_string().into_bytes();
        assert_eq!(self.ask("PUT", &format!("manifests/{tag}"), MANIFEST, &bytes).0, 201);
        sha256(&bytes)
    }

    /// Candidates of every variant, each with a report.
    pub fn candidates(&self, content: &str) -> BTreeMap<&'static str, String> {
        let push = |variant: &'static str| {
            let digest = self.push(variant, &format!("{content} {variant}"));
            self.smoke(variant, &[]).expect(0, &["attached the report", &digest]);
            (variant, digest)
        };
        VARIANTS.into_iter().map(push).collect()
    }

    pub fn smoke(&self, variant: &str, more: &[&str]) -> Outcome {
        let at = self.direct();
        let args = ["smoke", "--registry", &at, "--variant", variant, "--attach"];
        self.doubles.run(&[&args[..], more].concat(), &[])
    }

    pub fn publish(&self, more: &[&str], budget: &str) -> Outcome {
        let at = self.through();
        let args = ["publish", "--registry", &at, "--retry-budget", budget];
        self.doubles.run(&[&args[..], more].concat(), &[])
    }

    /// What every tag that a user takes points at.
    pub fn tags(&self) -> BTreeMap<String, String> {
        let (_, list, _) = self.ask("GET", "tags/list", "*/*", b"");
        let list: Value = serde_json::from_slice(&list).unwrap();
        let tags = list["tags"].as_array().cloned().unwrap_or_default();
        let tags = tags.iter().map(|tag| tag.as_str().unwrap().to_owned());
        let own = |tag: &String| ["candidate-", "base-", "sha256-"].iter().any(|it| tag.starts_with(it));
        let user = tags.filter(|tag| !own(tag));
        user.map(|tag| (tag.clone(), self.digest(&tag))).collect()
    }

    pub fn digest(&self, tag: &str) -> String {
        sha256(&self.ask("GET", &format!("manifests/{tag}"), MANIFEST, b"").1)
    }
}

fn sha256(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// Only `runtime` is asked for: fewer requests to count.
const ONE: [&str; 2] = ["--variant", "runtime"];

/// A market with one candidate that passed.
fn one() -> (Market, String) {
    let market = Market::new();
    let digest = market.push("runtime", "a");
    market.smoke("runtime", &[]).expect(0, &["not-gpu-tested"]);
    (market, digest)
}

/// R9: every image gets its immutable name before one that moves does, and a second run has nothing to do.
#[test]
#[ignore = "needs Debian's docker-registry"]
fn all_of_it_is_published_and_only_once() {
    let market = Market::new();
    let digests = market.candidates("a");
    let outcome = market.publish(&[], "5s");
    outcome.expect(0, &["2.15.0-cuda13.2-cudnn9-mlflow-20261130   made ", "2.15-devel", " moved "]);
    let tags = market.tags();
    assert_eq!(tags.len(), 4 * 5, "{tags:#?}");
    for variant in VARIANTS {
        let tag = IMMUTABLE.replace("runtime", variant);
        assert_eq!((&tags[&tag], &tags[variant]), (&digests[variant], &digests[variant]));
    }
    let puts: Vec<String> = market.proxy.seen("PUT", "manifests/").into_iter().map(|it| it.path).collect();
    assert_eq!(puts.len(), 20);
    assert!(puts[..4].iter().all(|path| path.ends_with("-20261130")), "{puts:#?}");
    market.proxy.reset();
    let again = market.publish(&["--json"], "5s");
    let names: Value = serde_json::from_str(&again.expect(0, &[]).stdout).unwrap();
    assert!(names.as_array().unwrap().iter().all(|name| name["done"] == "was-there"), "{names}");
    assert_eq!(market.proxy.seen("PUT", "").len(), 0);
    assert_eq!(market.tags(), tags);
}

/// R9: whatever is wrong with one image, none of the set moves, and it is told which and why.
#[test]
#[ignore = "needs Debian's docker-registry"]
fn one_image_that_did_not_pass_keeps_all_where_they_are() {
    let market = Market::new();
    for variant in ["runtime", "devel", "mlflow"] {
        market.push(variant, variant);
        market.smoke(variant, &[]).expect(0, &[]);
    }
    let refused = |code, said: &[&str]| {
        market.publish(&[], "5s").expect(code, said);
        assert_eq!(market.tags(), BTreeMap::new());
        assert_eq!(market.proxy.seen("PUT", "").len(), 0);
    };
    refused(3, &["error[E_BASE_GONE]", "no candidate of 2.15 debug for linux/amd64"]);
    market.push("debug", "debug");
    refused(1, &["error[E_SMOKE]", "no smoke report is attached"]);
    market.doubles.tell("smoke.rc", "1");
    market.smoke("debug", &[]).expect(1, &["error[E_SMOKE]", "attached the report"]);
    refused(1, &["error[E_SMOKE]", "its smoke test failed", "exit status 1"]);
    market.doubles.tell("smoke.rc", "0");
    std::thread::sleep(Duration::from_millis(1100));
    market.smoke("debug", &[]).expect(0, &[]);
    market.publish(&[], "5s").expect(0, &[]);
    assert_eq!(market.tags().len(), 20);
}

/// Every platform must have passed; the names then point at an index of them, which is as good as its weakest.
#[test]
#[ignore = "needs Debian's docker-registry"]
fn platforms_are_published_as_one_index() {
    let (market, amd64) = one();
    let both = [&ONE[..], &["--platform", "linux/amd64", "--platform", "linux/arm64"]].concat();
    let missing = ["error[E_BASE_GONE]", "no candidate of 2.15 runtime for linux/arm64"];
    market.publish(&both, "5s").expect(3, &missing);
    let commit = market.commit.clone();
    let arm64 = market.push_for("arm64", "runtime", "b", (&commit, &commit[..12]), "");
    market.publish(&both, "5s").expect(1, &["error[E_SMOKE]", &arm64, "no smoke report is attached"]);
    assert_eq!(market.tags(), BTreeMap::new());

    // As a machine of that platform would: by digest.
    let tested = PASSED.replace("\"not-gpu-tested\"", "\"gpu-tested\"");
    market.doubles.tell("smoke", &tested);
    let image = format!("{}/pytorch-cuda@{arm64}", market.direct());
    let smoke = ["smoke", "--image", &image, "--attach", "--gpus", "all"];
    market.doubles.run(&smoke, &[]).expect(0, &["attached the report", &arm64]);
    let required = [&both[..], &["--require", "gpu-tested"]].concat();
    market.publish(&required, "5s").expect(1, &["error[E_NOT_GPU_TESTED]", &amd64]);
    market.publish(&both, "5s").expect(0, &[" made ", " moved "]);

    let tags = market.tags();
    assert_eq!(tags.len(), 5);
    assert!(tags.values().all(|digest| *digest == tags[IMMUTABLE]), "{tags:#?}");
    let (_, index, _) = market.ask("GET", &format!("manifests/{IMMUTABLE}"), "*/*", b"");
    let index: Value = serde_json::from_slice(&index).unwrap();
    let entry = |digest: &str, architecture: &str| (digest.to_owned(), architecture.to_owned());
    let manifests = index["manifests"].as_array().unwrap().iter();
    let entries: Vec<_> = manifests
        .map(|it| entry(it["digest"].as_str().unwrap(), it["platform"]["architecture"].as_str().unwrap()))
        .collect();
    assert_eq!(entries, [entry(&amd64, "amd64"), entry(&arm64, "arm64")]);
    let at = market.direct();
    market
        .doubles
        .run(&["list", "--registry", &at], &[])
        .expect(0, &[&tags[IMMUTABLE][..19], "not-gpu-tested"]);
    market.publish(&both, "5s").expect(0, &["was there"]);
    assert_eq!(market.tags(), tags);
}

#[test]
#[ignore = "needs Debian's docker-registry"]
fn a_docker_that_ends_is_named_and_tells_nothing_of_an_image() {
    let market = Market::new();
    market.push("runtime", "a");
    let dies = |at: &str| {
        market.doubles.tell("dies", at);
        std::fs::remove_file(market.doubles.copy.path("double/dead")).ok();
    };
    dies("run --rm");
    market.smoke("runtime", &[]).expect(3, &["error[E_ENGINE]: engine: ", "ended under the smoke test"]);
    market.publish(&ONE, "5s").expect(1, &["error[E_SMOKE]", "no smoke report is attached"]);
    dies("image push");
    let at = market.direct();
    let push = ["build", "--variant", "runtime", "--push", "--allow-dirty", "--registry", &at];
    market
        .doubles
        .run(&push, &[])
        .expect(3, &["pushing ", "error[E_ENGINE]: engine: docker's daemon ended under the push"]);
}

#[test]
#[ignore = "needs Debian's docker-registry"]
fn a_gpu_can_be_required() {
    let (market, _) = one();
    let args = [&ONE[..], &["--require", "gpu-tested"]].concat();
    market.publish(&args, "5s").expect(1, &["error[E_NOT_GPU_TESTED]", "its state is not-gpu-tested"]);
    assert_eq!(market.tags(), BTreeMap::new());
    let tested = PASSED.replace("\"not-gpu-tested\"", "\"gpu-tested\"");
    market.doubles.tell("smoke", &tested);
    market.smoke("runtime", &["--gpus", "all", "--require-gpu"]).expect(0, &["gpu-tested"]);
    market.publish(&args, "5s").expect(0, &[]);
    assert_eq!(market.tags().len(), 5);
}

#[test]
#[ignore = "needs Debian's docker-registry"]
fn only_a_commit_is_published_unless_it_is_said() {
    let mut market = Market::new();
    // Built beside the commit.
    let dirty = format!("{}-dirty", market.commit);
    let tag = market.commit[..12].to_owned();
    market.push_as("runtime", "a", &dirty, &tag);
    market.smoke("runtime", &[]).expect(0, &[]);
    market.publish(&ONE, "5s").expect(2, &["error[E_NO_REVISION]: 127.0.0.1", "-dirty"]);
    market.publish(&[&ONE[..], &["--allow-dirty"]].concat(), "5s").expect(0, &[]);
    // The checkout itself has changes, or is none.
    std::fs::write(market.doubles.copy.path("new"), "").unwrap();
    market.publish(&ONE, "5s").expect(2, &["error[E_NO_REVISION]: git", "-dirty"]);
    let at = market.direct();
    let push = ["build", "--variant", "runtime", "--push", "--registry", &at];
    market.doubles.run(&push, &[]).expect(2, &["error[E_NO_REVISION]: git", "--allow-dirty"]);
    market.commit();
    std::fs::remove_dir_all(market.doubles.copy.path(".git")).unwrap();
    market.publish(&ONE, "5s").expect(2, &["error[E_NO_REVISION]: git", "`unknown`"]);
}

/// R9: what is published once under an immutable name stays there; another build of that day gets another name.
#[test]
#[ignore = "needs Debian's docker-registry"]
fn an_immutable_name_never_changes_its_digest() {
    let (mut market, first) = one();
    market.publish(&ONE, "5s").expect(0, &[IMMUTABLE]);
    market.commit();
    let second = market.push("runtime", "b");
    market.smoke("runtime", &[]).expect(0, &[]);
    market.publish(&ONE, "5s").expect(0, &[&format!("{IMMUTABLE}.1")]);
    let tags = market.tags();
    assert_eq!((&tags[IMMUTABLE], &tags[&format!("{IMMUTABLE}.1")]), (&first, &second));
    assert!(MOVING.iter().all(|tag| tags[*tag] == second) && first != second, "{tags:#?}");
    let dated = [&ONE[..], &["--release-date", "2026-12-01"]].concat();
    market.publish(&dated, "5s").expect(0, &["runtime-20261201  made"]);
    assert_eq!(market.tags().len(), 7);
    market.publish(&[&ONE[..], &["--release-date", "1.12.2026"]].concat(), "5s").expect(2, &["2026-11-30"]);
}

/// Counted: a registry that is busy for a moment is asked again, each request by itself.
#[test]
#[ignore = "needs Debian's docker-registry"]
fn what_passes_is_waited_for() {
    for (fault, times) in [
        (Fault::Status(503, "".to_owned()), 3),
        (Fault::Status(408, "".to_owned()), 1),
        (Fault::Status(500, "".to_owned()), 2),
        (Fault::Cut(0), 1),
        (Fault::Delay(Duration::from_secs(1)), 1),
    ] {
        let (market, digest) = one();
        market.proxy.fail("PUT", "manifests/2.15-runtime", (0, times), fault.clone());
        market.publish(&ONE, "30s").expect(0, &[]);
        let tries = if matches!(fault, Fault::Delay(_)) { 1 } else { times + 1 };
        assert_eq!(market.proxy.seen("PUT", "manifests/2.15-runtime").len(), tries, "{fault:?}");
        assert!(market.tags().values().all(|it| *it == digest));
    }
}

#[test]
#[ignore = "needs Debian's docker-registry"]
fn a_registry_that_asks_to_wait_is_left_alone_so_long() {
    let (market, _) = one();
    market.proxy.fail(
        "PUT",
        "manifests/2.15-runtime",
        (0, 1),
        Fault::Status(429, "retry-after: 2\r\n".to_owned()),
    );
    market.publish(&ONE, "30s").expect(0, &["answer 429, which asks to wait 2 s; once more in 2.0 s"]);
    let tries = market.proxy.seen("PUT", "manifests/2.15-runtime");
    assert_eq!(tries.len(), 2);
    assert!(tries[1].at - tries[0].at >= Duration::from_secs(2));
    // Longer than anybody waits: told at once.
    let (market, _) = one();
    market.proxy.fail("PUT", IMMUTABLE, (0, 9), Fault::Status(429, "retry-after: 3600\r\n".to_owned()));
    market.publish(&ONE, "30s").expect(3, &["error[E_RATE_LIMIT]", "asks to wait 3600 s", "UNDONE"]);
    assert_eq!(market.proxy.seen("PUT", IMMUTABLE).len(), 1);
    assert_eq!(market.tags(), BTreeMap::new());
}

#[test]
#[ignore = "needs Debian's docker-registry"]
fn what_will_not_pass_is_not_tried_again() {
    let cases = [
        (400, "E_NETWORK"),
        (401, "E_REGISTRY_AUTH"),
        (403, "E_REGISTRY_AUTH"),
        (404, "E_BASE_GONE"),
        (413, "E_NETWORK"),
    ];
    for (status, id) in cases {
        let (market, _) = one();
        market.proxy.fail("PUT", IMMUTABLE, (0, 9), Fault::Status(status, "".to_owned()));
        market.publish(&ONE, "30s").expect(3, &[&format!("error[{id}]"), IMMUTABLE, "UNDONE"]);
        assert_eq!(market.proxy.seen("PUT", "").len(), 1, "{status}");
        assert_eq!(market.tags(), BTreeMap::new());
    }
}

#[test]
#[ignore = "needs Debian's docker-registry"]
fn bytes_are_believed_by_their_digest_alone() {
    let (market, digest) = one();
    market.proxy.fail("GET", "manifests/candidate-", (0, 1), Fault::Flip);
    market.proxy.fail("GET", "blobs/sha256:", (0, 1), Fault::Cut(300));
    market.publish(&ONE, "30s").expect(0, &["came instead of"]);
    assert_eq!(market.proxy.seen("GET", "manifests/candidate-").len(), 2);
    assert!(market.tags().values().all(|it| *it == digest));
    let (market, _) = one();
    market.proxy.fail("GET", "manifests/candidate-", (0, 99), Fault::Flip);
    market.publish(&ONE, "30s").expect(3, &["error[E_DIGEST]", "(3 tries in"]);
    assert_eq!((market.proxy.seen("GET", "manifests/candidate-").len(), market.tags().len()), (3, 0));
}

/// A registry that is away for a while; the table tells what is left where it is away too long.
#[test]
#[ignore = "needs Debian's docker-registry"]
fn a_registry_that_is_away_is_waited_for_within_the_budget() {
    let (market, _) = one();
    market.proxy.fail("PUT", IMMUTABLE, (0, 1), Fault::Down(Duration::from_secs(3)));
    market.publish(&ONE, "30s").expect(0, &["once more in"]);
    assert_eq!(market.tags().len(), 5);
    let (market, digest) = one();
    market.proxy.fail("PUT", "manifests/2.15-runtime", (0, 1), Fault::Down(Duration::from_secs(6)));
    market
        .publish(&ONE, "2s")
        .expect(3, &["error[E_NETWORK]", "2.15-runtime", "UNDONE", "moved", "tries in"]);
    assert_eq!(
        market.tags().keys().map(String::as_str).collect::<Vec<_>>(),
        [MOVING[0], IMMUTABLE, MOVING[1]]
    );
    std::thread::sleep(Duration::from_secs(5));
    // The next run does what is left.
    market.proxy.reset();
    market.publish(&ONE, "30s").expect(0, &["was there"]);
    assert_eq!(market.proxy.seen("PUT", "").len(), 2);
    assert!(market.tags().len() == 5 && market.tags().values().all(|it| *it == digest));
}

/// A minute without a registry, with the budget that nobody had to name.
#[test]
#[ignore = "needs Debian's docker-registry"]
fn a_minute_without_a_registry_is_survived() {
    let (market, _) = one();
    market.proxy.fail("PUT", IMMUTABLE, (0, 1), Fault::Down(Duration::from_secs(60)));
    let start = std::time::Instant::now();
    let at = market.through();
    market
        .doubles
        .run(&["publish", "--registry", &at, "--variant", "runtime"], &[])
        .expect(0, &["once more in"]);
    assert!(start.elapsed() >= Duration::from_secs(60));
    assert_eq!(market.tags().len(), 5);
}

/// A registry that wants a token says where it is had; it is fetched once, by who is logged in, for what is done here.
#[test]
#[ignore = "needs Debian's docker-registry"]
fn a_token_is_fetched_where_the_registry_says() {
    let (market, _) = one();
    let host = market.through();
    let challenge = format!(
        "www-authenticate: Bearer realm=\"http://{host}/token\",service=\"s\",scope=\"repository:pytorch-cuda:pull\"\r\n"
    );
    market.proxy.fail("GET", "manifests/candidate-", (0, 1), Fault::Status(401, challenge));
    market.proxy.fail("GET", "/token", (0, 9), Fault::Say("{\"token\":\"bought\"}"));
    let folder = tempfile::tempdir().unwrap();
    let login = format!("{{\"auths\":{{\"{host}\":{{\"auth\":\"dXNlcjpjYW5hcnk=\"}}}}}}");
    std::fs::write(folder.path().join("config.json"), login).unwrap();
    let args = ["publish", "--registry", &host, "--variant", "runtime"];
    let config = folder.path().display().to_string();
    market.doubles.run(&args, &[("DOCKER_CONFIG", &config)]).expect(0, &[]);
    let fetched = market.proxy.seen("GET", "/token");
    assert_eq!(fetched.len(), 1);
    assert!(
        fetched[0].path.ends_with("?service=s&scope=repository%3Apytorch-cuda%3Apull%2Cpush"),
        "{fetched:?}"
    );
    assert_eq!(fetched[0].authorization.as_deref(), Some("Basic dXNlcjpjYW5hcnk="));
    let puts = market.proxy.seen("PUT", "");
    assert!(puts.len() == 5 && puts.iter().all(|it| it.authorization.as_deref() == Some("Bearer bought")));
}

/// R9: the k-th name is refused. Before the last immutable one is there, none that moves does.
#[test]
#[ignore = "needs Debian's docker-registry"]
fn no_name_moves_before_every_immutable_one_is_there() {
    let market = Market::new();
    market.candidates("a");
    market.publish(&[], "5s").expect(0, &[]);
    let before = market.tags();
    let mut market = market;
    market.commit();
    market.candidates("b");
    for k in 0..4 {
        market.proxy.reset();
        market.proxy.fail(
            "PUT",
            "manifests/",
            (if k == 0 { 0 } else { 1 }, 1),
            Fault::Status(403, "".to_owned()),
        );
        market.publish(&[], "5s").expect(3, &["error[E_REGISTRY_AUTH]", "UNDONE"]);
        let now = market.tags();
        assert!(before.iter().all(|(tag, digest)| now[tag] == *digest), "{k}: {now:#?}");
        assert_eq!(now.len(), 20 + k, "{now:#?}");
    }
    market.proxy.reset();
    // All but one immutable name are there: the next refused one is one that moves.
    market.proxy.fail("PUT", "manifests/", (1, 1), Fault::Status(403, "".to_owned()));
    market.publish(&[], "5s").expect(3, &["error[E_REGISTRY_AUTH]", "UNDONE", "was there"]);
    assert_eq!(market.tags().len(), 24);
    market.proxy.reset();
    market.publish(&[], "5s").expect(0, &[]);
    assert_eq!(market.proxy.seen("PUT", "").len(), 16);
    assert!(before.iter().all(|(tag, digest)| tag.ends_with("-20261130") || market.tags()[tag] != *digest));
}

/// bcrypt of `canary-password`.
const HASH: &str = "$2a$04$ncSy8C5c9wQ5znAQsyODdOvzCsR..6tx1PZSB3ySZAQHt1Xxbbwfy";

/// Who one is comes from docker's own configuration, and is told nobody else.
#[test]
#[ignore = "needs Debian's docker-registry"]
fn a_login_of_docker_is_used_and_told_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users");
    std::fs::write(&users, format!("user:{HASH}\n")).unwrap();
    let auth = format!("auth: {{htpasswd: {{realm: r, path: {}}}}}\n", users.display());
    let market = Market::with(Registry::with(&auth));
    let config = |text: String| {
        std::fs::write(folder.path().join("config.json"), text).unwrap();
        folder.path().display().to_string()
    };
    let publish = |config: &str| {
        let at = market.through();
        let args = ["publish", "--registry", &at, "--variant", "runtime", "--retry-budget", "5s"];
        market.doubles.run(&args, &[("DOCKER_CONFIG", config)])
    };
    let host = market.through();
    let cases = [
        "{}".to_owned(),
        format!("{{\"auths\":{{\"{host}\":{{\"username\":\"user\",\"password\":\"wrong\"}}}}}}"),
    ];
    for text in cases {
        let outcome = publish(&config(text));
        outcome.expect(3, &["error[E_REGISTRY_AUTH]", "docker login"]);
    }
    // In: there is no candidate.
    let good =
        format!("{{\"auths\":{{\"{host}\":{{\"username\":\"user\",\"password\":\"canary-password\"}}}}}}");
    let outcome = publish(&config(good));
    outcome.expect(3, &["error[E_BASE_GONE]"]);
    assert!(!outcome.stderr.contains("canary-password"));
    let helper = folder.path().join("docker-credential-double");
    let says = "#!/bin/sh\nread -r host\necho \"{\\\"Username\\\":\\\"user\\\",\\\"Secret\\\":\\\"canary-password\\\"}\"\n";
    std::fs::write(&helper, says).unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&helper, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let helped = config(format!("{{\"credHelpers\":{{\"{host}\":\"double\"}}}}"));
    let at = market.through();
    let args = ["publish", "--registry", &at, "--variant", "runtime"];
    let env = [("DOCKER_CONFIG", helped.as_str()), ("PATH", path.as_str())];
    market.doubles.run(&args, &env).expect(3, &["error[E_BASE_GONE]"]);
}
