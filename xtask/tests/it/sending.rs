//! The layers of a base on their way to a real registry while a double of the engine builds.

use crate::bases::Tiny;
use crate::proxy::{Fault, Proxy, Seen};
use crate::registry::Registry;
use crate::support::Outcome;
use serde_json::Value;

struct Sent {
    tiny: Tiny,
    proxy: Proxy,
    _registry: Registry,
}

impl Sent {
    fn new() -> Sent {
        let registry = Registry::start();
        let tiny = Tiny::new(300_000);
        // The layers first: what is told here is about the way to the registry.
        tiny.run(&[]).expect(0, &[]);
        Sent { tiny, proxy: Proxy::start(registry.port), _registry: registry }
    }

    fn build(&self, budget: &str) -> Outcome {
        let at = format!("127.0.0.1:{}", self.proxy.port);
        let push = ["build", "--variant", "runtime", "--push", "--allow-dirty", "--registry", &at];
        let env = [("XTASK_BASE_BUILDER", "layers"), ("XTASK_RETRY_BUDGET", budget)];
        Outcome::of(self.tiny.doubles.command(&push, &env).output().unwrap())
    }

    /// Digests and sizes of the layers of the base.
    fn layers(&self) -> Vec<(String, u64)> {
        let read = |path: String| -> Value {
            serde_json::from_slice(&std::fs::read(self.tiny.path(&path)).unwrap()).unwrap()
        };
        let blob =
            |it: &Value| format!("cache/layers/blobs/{}", it["digest"].as_str().unwrap().replace(':', "/"));
        let index = read("cache/layers/index.json".to_owned());
        let manifest = read(blob(&index["manifests"][0]));
        let layers = manifest["layers"].as_array().unwrap().iter();
        layers.map(|it| (it["digest"].as_str().unwrap().to_owned(), it["size"].as_u64().unwrap())).collect()
    }

    /// The uploads of a layer.
    fn uploads(&self, digest: &str) -> Vec<Seen> {
        self.proxy.seen("PUT", &format!("digest={digest}"))
    }
}

#[test]
#[ignore = "fetches a registry"]
fn layers_are_sent_once_while_the_engine_builds() {
    let sent = Sent::new();
    let first = sent.build("5s");
    let layers = sent.layers();
    assert!(layers.len() > 3, "{layers:?}");
    for (digest, size) in &layers {
        let uploads: Vec<u64> = sent.uploads(digest).iter().map(|it| it.bytes).collect();
        assert_eq!(uploads, [*size], "{digest} {first:#?}");
    }
    assert!(first.stderr.contains("of layers sent"), "{first:#?}");
    sent.proxy.reset();
    let again = sent.build("5s");
    assert!(layers.iter().all(|(digest, _)| sent.uploads(digest).is_empty()), "{again:#?}");
    assert!(!again.stderr.contains("of layers"), "{again:#?}");
}

#[test]
#[ignore = "fetches a registry"]
fn a_layer_that_fails_for_a_moment_is_sent_again_and_one_that_is_refused_is_left_to_the_engine() {
    let sent = Sent::new();
    let layers = sent.layers();
    let (busy, refused) = (&layers[0].0, &layers[1].0);
    sent.proxy.fail("PUT", &format!("digest={busy}"), (0, 1), Fault::Status(503, String::new()));
    let build = sent.build("5s");
    assert!(build.stderr.contains("once more in") && build.stderr.contains("of layers sent"), "{build:#?}");
    assert_eq!(sent.uploads(busy).len(), 2);

    let sent = Sent::new();
    sent.proxy.fail("PUT", &format!("digest={refused}"), (0, 9), Fault::Status(413, String::new()));
    let build = sent.build("5s");
    assert!(build.stderr.contains("the engine sends what is left: "), "{build:#?}");
    assert_eq!(sent.uploads(refused).len(), 1);
    // The engine's own push is what decides.
    assert!(sent.tiny.doubles.all_calls().contains("image push"), "{build:#?}");
}

#[test]
#[ignore = "fetches a registry"]
fn a_build_that_fails_does_not_wait_for_what_is_being_sent() {
    let sent = Sent::new();
    let layers = sent.layers();
    sent.tiny.doubles.tell("bake.rc", "1");
    for (digest, _) in &layers {
        sent.proxy.fail("HEAD", digest, (0, 1000), Fault::Status(503, "Retry-After: 120\r\n".to_owned()));
    }
    let build = sent.build("3m");
    assert_ne!(build.code, Some(0));
    // Each of its connections was told to come back in two minutes, and did not.
    let asked: Vec<usize> = layers.iter().map(|(digest, _)| sent.proxy.seen("HEAD", digest).len()).collect();
    assert!(
        (1..=3).contains(&asked.iter().sum::<usize>()) && asked.iter().all(|it| *it <= 1),
        "{asked:?} {build:#?}"
    );
    assert!(
        build.stderr.contains("once more in 120.0 s") && !build.stderr.contains("of layers"),
        "{build:#?}"
    );
}
