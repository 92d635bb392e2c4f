//! MLflow's server as its image starts it, asked by clients in other containers.

use crate::containers::{Container, Volume, docker, run};
use crate::debian;

/// Knows an address and nothing else; the first run that is there is read, otherwise one is made.
const CLIENT: &str = r#"
import mlflow
runs = mlflow.search_runs(search_all_experiments=True, output_format="list")
if not runs:
    mlflow.set_experiment("from another container")
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", 0.25)
        mlflow.log_text("written by the client", "notes/text.txt")
    runs = [mlflow.get_run(run.info.run_id)]
run, = runs
print(run.data.metrics["loss"], mlflow.artifacts.load_text(f"{run.info.artifact_uri}/notes/text.txt"))
"#;
const SAID: &str = "0.25 written by the client";

/// Statuses for names that a request calls the server by, and then for pages that want to write.
const ASK: &str = r#"
import http.client, sys
def ask(method, path, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", 5000)
    connection.request(method, path, headers=headers)
    return connection.getresponse().status
path = "/api/2.0/mlflow/experiments/search?max_results=1"
print(*(ask("GET", path, Host=host) for host in sys.argv[1].split()))
print(*(ask("POST", "/api/2.0/mlflow/experiments/create", Origin=origin) for origin in sys.argv[2].split()))
print(ask("GET", "/health", Host="whoever"))
"#;

#[track_caller]
fn started(options: &[&str]) -> Container {
    Container::start(options, "mlflow", &[]).serving("mlflow")
}

/// What a client prints last, in a container of its own, which shares no more than loopback with the server.
#[track_caller]
fn client(server: &Container) -> String {
    let network = format!("container:{}", server.id);
    let address = "--env=MLFLOW_TRACKING_URI=http://127.0.0.1:5000";
    let words = ["run", "--rm", "--network", &network, address, &crate::containers::image("mlflow")];
    let outcome = docker(&[&words[..], &["python", "-c", CLIENT]].concat());
    outcome.expect(0, &[]).stdout.lines().last().unwrap_or_default().to_owned()
}

/// R13: what a client in another container sends is kept below the work folder, files too, and outlives the server.
#[test]
#[ignore = "needs the image"]
fn runs_and_files_stay_with_the_volume() {
    let volume = Volume::new();
    let at = volume.at("/workspace");
    // Any user, no capability, nothing else to write on.
    let bare = ["--read-only", "--tmpfs=/tmp", "--cap-drop=ALL", "--security-opt=no-new-privileges", &at];
    let server = started(&bare);
    assert_eq!(client(&server), SAID);
    let files =
        server.output(&["sh", "-c", "cd /workspace/mlflow; ls; cat artifacts/*/*/artifacts/notes/text.txt"]);
    assert_eq!(files, "artifacts\nmlflow.db\nwritten by the client");
    assert!(server.stop().as_secs() < 5);
    drop(server);

    let names = "--env=MLFLOW_SERVER_ALLOWED_HOSTS=mlflow.example,127.0.0.1:*";
    let server = started(&[&bare[..], &[names]].concat());
    assert_eq!(client(&server), SAID);
    let ask = server.output(&[
        "python",
        "-c",
        ASK,
        "mlflow.example 127.0.0.1:5000 other.example",
        "https://a.example",
    ]);
    assert_eq!(ask, "200 200 403\n403\n200\n");
}

/// R13: it answers to this machine's names and private addresses, to no other name, and to no page of somebody else.
#[test]
#[ignore = "needs the image"]
fn it_answers_to_its_own_names_alone() {
    let server = started(&["--user=4242:4242", "--tmpfs=/workspace:uid=4242"]);
    let hosts = "localhost:5000 127.0.0.1:5000 172.17.0.2:5000 stranger.example";
    // 400: it came through, and had no name for the experiment.
    let ask = server.output(&["python", "-c", ASK, hosts, "http://localhost:5000 https://stranger.example"]);
    assert_eq!(ask, "200 200 200 403\n400 403\n200\n");
    let kinds =
        server.output(&["sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -c hue[y] || true"]);
    assert_eq!(kinds, "0\n", "it runs jobs");
}

/// R13: a real PostgreSQL keeps the runs; its password is in a file and in no list of arguments.
#[test]
#[ignore = "fetches PostgreSQL"]
fn a_real_postgresql_keeps_the_runs() {
    let password = "s3cret-of-the-test";
    let image = debian::image("postgresql", &["postgresql", "dash"]);
    let start = "cd /usr/lib/postgresql/*/bin && echo $PASSWORD > /tmp/word \
        && ./initdb --pgdata=/tmp/data --username=mlflow --auth=scram-sha-256 --pwfile=/tmp/word --locale=C.UTF-8 >&2 \
        && exec ./postgres -D /tmp/data -c listen_addresses=127.0.0.1 -c unix_socket_directories=/tmp";
    let given = format!("--env=PASSWORD={password}");
    let words =
        ["run", "--detach", "--network=none", "--user=1000", "--tmpfs=/tmp:mode=1777", &given, &image];
    let id = docker(&[&words[..], &["sh", "-c", start]].concat()).expect(0, &[]).stdout.trim().to_owned();
    let database = Container { id };
    database.says("database system is ready to accept connections");

    let volume = Volume::new();
    let uri = format!("echo postgresql://mlflow:{password}@127.0.0.1:5432/postgres > /secret/uri");
    run(&["--user=0", &volume.at("/secret")], "runtime", &["sh", "-c", &uri]).expect(0, &[]);
    let network = format!("container:{}", database.id);
    let file = "--env=MLFLOW_BACKEND_STORE_URI_FILE=/secret/uri";
    let server = started(&["--network", &network, &volume.at("/secret"), file]);
    assert_eq!(client(&server), SAID);
    let query = "select count(*), min(value) from metrics";
    let psql = format!(
        "cd /usr/lib/postgresql/*/bin && PGPASSWORD={password} ./psql -h 127.0.0.1 -U mlflow postgres -Atc '{query}'"
    );
    assert_eq!(database.output(&["sh", "-c", &psql]), "1|0.25\n");
    let lines = server.output(&["sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"]);
    assert!(lines.contains("uvicorn") && !lines.contains(password), "{lines}");
    assert!(!server.logs().contains(password), "{}", server.logs());
    server.exec(&["test", "!", "-e", "/workspace/mlflow/mlflow.db"]).expect(0, &[]);
}

/// R13: a real MariaDB, which speaks MySQL, keeps the runs.
#[test]
#[ignore = "fetches MariaDB"]
fn a_real_mariadb_keeps_the_runs() {
    let image = debian::image("mariadb", &["mariadb-server", "coreutils", "dash", "grep", "mawk", "sed"]);
    let start = "mkdir /tmp/bin && ln -s /usr/bin/mawk /tmp/bin/awk && export PATH=$PATH:/tmp/bin \
        && mariadb-install-db --datadir=/tmp/data --skip-name-resolve --skip-test-db >&2 \
        && printf '%s;\\n' 'create database runs' \"create user mlflow identified by '$PASSWORD'\" \
            'grant all on runs.* to mlflow' > /tmp/init.sql \
        && exec mariadbd --datadir=/tmp/data --socket=/tmp/socket --bind-address=127.0.0.1 --skip-name-resolve \
            --init-file=/tmp/init.sql";
    let words = ["run", "--detach", "--network=none", "--user=1000", "--tmpfs=/tmp:mode=1777"];
    let given = ["--env=PASSWORD=s3cret-of-the-test", &image, "sh", "-c", start];
    let id = docker(&[&words[..], &given].concat()).expect(0, &[]).stdout.trim().to_owned();
    let database = Container { id };
    assert!(database.says("ready for connections").contains("ready for"), "{}", database.logs());
    let network = format!("container:{}", database.id);
    let uri = "--env=MLFLOW_BACKEND_STORE_URI=mysql+pymysql://mlflow:s3cret-of-the-test@127.0.0.1:3306/runs";
    let server = started(&["--network", &network, uri]);
    assert_eq!(client(&server), SAID);
    let query = "mariadb --socket=/tmp/socket --user=mlflow --password=$PASSWORD --batch --skip-column-names runs \
        --execute='select count(*), min(value) from metrics'";
    assert_eq!(database.output(&["sh", "-c", query]), "1\t0.25\n");
}

/// R13, R14: what cannot work is told in one line, with the way out.
#[test]
#[ignore = "needs the image"]
fn what_it_cannot_do_it_says_in_one_line() {
    let refused = |options: &[&str], variant: &str, said: &str| {
        let outcome = run(options, variant, &["/opt/services/mlflow"]);
        outcome.expect(2, &[said]);
        assert_eq!(
            outcome.stderr.lines().filter(|line| line.starts_with("mlflow: ")).count(),
            1,
            "{outcome:#?}"
        );
    };
    let uids = "mlflow: error[E_WORKDIR_NOT_WRITABLE]: /workspace belongs to uid 1000 and this runs as uid 4242: mount";
    refused(&["--user=4242:4242"], "mlflow", uids);
    refused(&["--env=MLFLOW_PORT=x"], "mlflow", "mlflow: error[E_PORT]: MLFLOW_PORT=x");
    refused(&["--env=MLFLOW_BACKEND_STORE_URI_FILE=/nowhere"], "mlflow", "mlflow: error[E_SECRET_FILE]");
    refused(&[], "runtime", "mlflow: error[E_NOT_INSTALLED]");
    let check = run(&[], "mlflow", &["/opt/services/mlflow", "--check"]);
    check.expect(1, &["mlflow: nothing answers on 127.0.0.1:5000"]);
}
