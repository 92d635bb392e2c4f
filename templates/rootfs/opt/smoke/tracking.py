"""MLflow: its server, a client that has nothing but the address, and the back ends that both can use."""

import glob
import json
import os
import re
import sys

import processes
from runner import Failed

# In a process of its own: it knows the address and no folder of the server's.
CLIENT = """
import json, mlflow, mlflow.pytorch, sys, torch
mlflow.set_experiment("smoke")
with mlflow.start_run() as run:
    mlflow.log_params({"layers": 3})
    mlflow.log_metric("loss", 0.5, step=1)
    mlflow.log_metric("loss", 0.25, step=2)
    mlflow.log_text("written by the client", "notes/text.txt")
    model = torch.nn.Linear(4, 2)
    logged = mlflow.pytorch.log_model(model, name="model", serialization_format="pickle", pip_requirements=[])
client = mlflow.MlflowClient()
read = client.get_run(run.info.run_id)
loaded = mlflow.pytorch.load_model(logged.model_uri)
print(json.dumps({
    "params": read.data.params,
    "losses": [point.value for point in client.get_metric_history(run.info.run_id, "loss")],
    "text": mlflow.artifacts.load_text(f"{run.info.artifact_uri}/notes/text.txt"),
    "model": bool(torch.equal(model.weight, loaded.weight)),
    "uri": run.info.artifact_uri,
}))
"""
EXPECTED = {"params": {"layers": "3"}, "losses": [0.5, 0.25], "text": "written by the client", "model": True}


def tracking_server(context):
    """MLflow's server keeps a client's run, files and model, all sent over HTTP, and ends with all its processes"""
    port, folder = processes.free_port(), os.path.join(context.scratch, "mlflow")
    kept, apart = os.path.join(folder, "kept"), os.path.join(folder, "client")
    os.makedirs(apart)
    command = ("mlflow", "server", "--host", "0.0.0.0", "--port", str(port), "--workers", "1")
    command += (
        "--backend-store-uri",
        f"sqlite:///{folder}/runs.db",
        "--artifacts-destination",
        kept,
        "--serve-artifacts",
    )
    address = f"http://127.0.0.1:{port}"
    with processes.service(*command, log=f"{context.scratch}/mlflow.log") as server:
        processes.wait_until(server, lambda: processes.get(f"{address}/health")[0] == 200, "healthy")
        text = processes.get(address)[1]
        script = re.search(r'src="\.?/?([^"]+\.js)"', text)
        page = processes.get(f"{address}/{script[1]}")[0] if script else None
        # Another address of this machine, as a published port would come in by; one that asks by name is refused.
        outside = processes.get(f"http://127.0.0.2:{port}", Host=f"172.17.0.2:{port}")[0]
        environment = {**os.environ, "MLFLOW_TRACKING_URI": address}
        said = processes.run(sys.executable, "-c", CLIENT, timeout=120, cwd=apart, env=environment)
        try:
            answer = json.loads(said.strip().splitlines()[-1])
        except ValueError:
            raise Failed(f"the client said: {processes.tail(said)}") from None
        context.detail.update(answer, page=page, outside=outside, stop_seconds=processes.stop(server))
    wrong = [f"{field}: {answer[field]}, not {value}" for field, value in EXPECTED.items() if answer[field] != value]
    if not answer["uri"].startswith("mlflow-artifacts:"):
        wrong.append(f"the client was told to write to {answer['uri']} itself")
    if not glob.glob(f"{kept}/**/notes/text.txt", recursive=True):
        wrong.append(f"the client's file is not in the server's folder {kept}")
    if outside != 200:
        wrong.append(f"from outside it answers {outside}, not 200")
    if page != 200:
        wrong.append(f"the page that people see is not there: {processes.tail(text)}")
    if wrong:
        raise Failed("; ".join(wrong))


def tracking_databases(context):
    """the drivers of PostgreSQL and MySQL are here: each knocks where nothing listens, and says so"""
    import sqlalchemy

    port, wrong = processes.free_port(), []
    for kind in ("postgresql", "mysql+pymysql"):
        try:
            engine = sqlalchemy.create_engine(f"{kind}://user:password@127.0.0.1:{port}/runs")
            engine.connect()
            wrong.append(f"{kind} connected to nothing")
        except sqlalchemy.exc.OperationalError as refused:
            context.detail[kind] = f"{engine.driver}: {' '.join(str(refused.orig).split())}"
            if "refused" not in str(refused):
                wrong.append(f"{kind}: {refused.orig}")
        except ImportError as error:
            wrong.append(f"{kind}: {error}")
    if wrong:
        raise Failed("; ".join(wrong))


def tracking_s3(context):
    """files can be kept in S3: MLflow's part for it loads and asks the endpoint it is given, where nothing answers"""
    endpoint = f"http://127.0.0.1:{processes.free_port()}"
    os.environ.update(AWS_ACCESS_KEY_ID="smoke", AWS_SECRET_ACCESS_KEY="smoke", AWS_MAX_ATTEMPTS="1")
    os.environ.update(MLFLOW_S3_ENDPOINT_URL=endpoint, AWS_DEFAULT_REGION="us-east-1")
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    repository = get_artifact_repository("s3://bucket/folder")
    context.detail["repository"] = type(repository).__name__
    try:
        repository.list_artifacts()
    except ImportError as error:
        raise Failed(f"boto3 is needed for S3: {error}") from None
    except Exception as refused:
        context.detail["said"] = str(refused)
        if endpoint in str(refused):
            return
        raise
    raise Failed(f"{endpoint} answered, and nothing listens there")
