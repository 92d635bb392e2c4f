//! What a container needs, and the words that start it.

use super::{Client, Gpus, Network, Recipe, Run, User, Wishes, arguments, recipe};
use crate::catalog::Catalog;
use crate::compat::Compat;
use crate::problem::{Id, Refusal};
use crate::resolve::resolve;

/// The recipe of the default release.
pub fn recipe_of(wishes: &Wishes) -> Recipe {
    try_recipe(wishes).unwrap()
}

fn try_recipe(wishes: &Wishes) -> anyhow::Result<Recipe> {
    let catalog = Catalog::parse("v.yaml", include_str!("../../../variants.yaml")).unwrap();
    let resolved = resolve(&catalog, Compat::bundled().unwrap(), false).unwrap();
    recipe(&catalog, &resolved[&catalog.defaults.release], wishes)
}

fn wishes(variant: &str, edit: impl Fn(&mut Wishes)) -> Wishes {
    let mut wishes = Wishes::new(variant);
    edit(&mut wishes);
    wishes
}

/// Service, port inside, port of the host.
type Listens = (String, u16, u16);

fn listening(wishes: &Wishes) -> Vec<Listens> {
    recipe_of(wishes).listening.into_iter().map(|it| (it.service, it.port, it.host_port)).collect()
}

fn words(wishes: &Wishes, run: &Run, client: Client) -> String {
    arguments(&recipe_of(wishes), run, client).join(" ")
}

#[test]
fn what_listens_is_what_was_asked_for() {
    let python = |it: &mut Wishes| it.command = vec!["python".into(), "train.py".into()];
    let key = |it: &mut Wishes| it.secrets.extend([("ssh".into(), "/key.pub".into())]);
    let one = |name: &str, inside, outside| (name.to_owned(), inside, outside);
    let cases: Vec<(Wishes, Vec<Listens>, Option<&str>)> = vec![
        (wishes("devel", |_| ()), vec![one("jupyter", 8888, 8888)], None),
        (wishes("debug", |_| ()), vec![one("jupyter", 8888, 8888)], None),
        (wishes("mlflow", |_| ()), vec![one("mlflow", 5000, 5000)], None),
        (wishes("runtime", |_| ()), vec![], None),
        (wishes("devel", python), vec![], None),
        (wishes("devel", key), vec![one("jupyter", 8888, 8888), one("ssh", 2222, 2222)], Some("ssh")),
        (
            wishes("devel", |it| {
                python(it);
                key(it);
                it.services = vec!["jupyter".into()];
                it.ports.insert("ssh".into(), 22);
            }),
            vec![one("jupyter", 8888, 8888), one("ssh", 2222, 22)],
            Some("jupyter,ssh"),
        ),
        (
            wishes("mlflow", |it| it.services = vec!["jupyter".into(), "mlflow".into()]),
            vec![one("mlflow", 5000, 5000), one("jupyter", 8888, 8888)],
            Some("jupyter"),
        ),
    ];
    for (wishes, expected, services) in cases {
        assert_eq!(listening(&wishes), expected, "{wishes:?}");
        assert_eq!(recipe_of(&wishes).variables.get("SERVICES").map(String::as_str), services, "{wishes:?}");
    }
}

#[test]
fn a_service_that_the_variant_has_not_is_refused_with_those_it_has() {
    let cases: [(Wishes, &[&str]); 4] = [
        (wishes("runtime", |it| it.secrets.extend([("ssh".into(), "/k".into())])), &["--ssh-key", "runtime"]),
        (wishes("devel", |it| it.services = vec!["mlflow".into()]), &["--service", "jupyter, ssh"]),
        (
            wishes("devel", |it| it.ports.extend([("jupiter".into(), 1)])),
            &["--port", "did you mean `jupyter`"],
        ),
        (wishes("devil", |_| ()), &["--variant", "did you mean `devel`"]),
    ];
    for (wishes, said) in cases {
        let error = try_recipe(&wishes).unwrap_err();
        let refusal = error.downcast_ref::<Refusal>().unwrap();
        assert!(refusal.0.iter().all(|it| it.id == Id::UnknownName), "{refusal}");
        assert!(said.iter().all(|part| refusal.to_string().contains(part)), "{refusal}");
    }
}

#[test]
fn without_a_bridge_services_are_told_to_listen_on_loopback() {
    let it = recipe_of(&wishes("devel", |it| {
        it.network = Network::Host;
        it.ports.insert("jupyter".into(), 9999);
        it.secrets.insert("ssh".into(), "/key.pub".into());
    }));
    for (name, value) in [
        ("JUPYTER_IP", "127.0.0.1"),
        ("JUPYTER_PORT", "9999"),
        ("SSH_LISTEN_ADDRESS", "127.0.0.1"),
        ("SSH_PORT", "2222"),
    ] {
        assert_eq!(it.variables.get(name).map(String::as_str), Some(value), "{name}");
    }
    let line = arguments(&it, &Run::default(), Client::Docker).join(" ");
    assert!(line.contains("--network host") && !line.contains("--publish"), "{line}");
}

#[test]
fn a_variant_gets_gpus_and_capabilities_as_the_catalog_says() {
    assert_eq!(recipe_of(&wishes("runtime", |_| ())).gpus, Gpus::All);
    assert_eq!(recipe_of(&wishes("mlflow", |_| ())).gpus, Gpus::None);
    assert_eq!(recipe_of(&wishes("mlflow", |it| it.gpus = Some(Gpus::All))).gpus, Gpus::All);
    let run = Run::default();
    assert!(!words(&wishes("devel", |_| ()), &run, Client::Docker).contains("--cap-add"));
    let debug = words(&wishes("debug", |_| ()), &run, Client::Docker);
    assert!(debug.contains("--cap-drop ALL --cap-add SYS_PTRACE"), "{debug}");
}

/// Secrets are files; no value of one is ever a word.
#[test]
fn secrets_are_mounted_and_named_by_their_path() {
    let line = words(
        &wishes("devel", |it| it.secrets.extend([("jupyter".into(), "/home/me/to,ken".into())])),
        &Run::default(),
        Client::Docker,
    );
    let mount = "--mount type=bind,\"source=/home/me/to,ken\",target=/run/secrets/jupyter-token,readonly";
    assert!(line.contains(mount), "{line}");
    assert!(line.contains("--env JUPYTER_TOKEN_FILE=/run/secrets/jupyter-token"), "{line}");
}

#[test]
fn podman_gets_its_own_words() {
    let it = wishes("runtime", |it| {
        it.gpus = Some(Gpus::Ids(vec!["0".into(), "1".into()]));
        it.user = Some(User { uid: 1001, gid: 1002 });
    });
    let podman = words(&it, &Run::default(), Client::Podman);
    for part in [
        "--device nvidia.com/gpu=0 --device nvidia.com/gpu=1",
        "--user 1001:1002 --group-add 0",
        "--userns keep-id",
        "label=disable",
    ] {
        assert!(podman.contains(part), "{part}: {podman}");
    }
    let docker = words(&it, &Run::default(), Client::Docker);
    assert!(docker.contains("--gpus \"device=0,1\"") && !docker.contains("keep-id"), "{docker}");
    let cdi = words(&it, &Run { cdi: true, ..Run::default() }, Client::Docker);
    assert!(cdi.contains("--device nvidia.com/gpu=0") && !cdi.contains("--gpus"), "{cdi}");
}
