"""Jupyter: its server asks for the token, its kernel is this environment's Python."""

import json
import os
import sys

import processes
from runner import Failed


def jupyter_serves(context):
    """Jupyter Lab starts, answers with its token, and answers 403 without"""
    port, token = processes.free_port(), os.urandom(24).hex()
    address = f"http://127.0.0.1:{port}"
    command = ("jupyter", "lab", "--no-browser", "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}")
    command += ("--ServerApp.port_retries=0", f"--ServerApp.root_dir={context.scratch}")
    # In the environment, since everybody may read the arguments of a process.
    with processes.service(*command, log=f"{context.scratch}/jupyter.log", JUPYTER_TOKEN=token) as server:

        def status(**headers):
            return processes.get(f"{address}/api/status", **headers)

        processes.wait_until(server, lambda: status()[0], "answering")
        answers = {
            "with its token": (status(Authorization=f"token {token}")[0], 200),
            "with another": (status(Authorization=f"token {token[::-1]}")[0], 403),
            "without a token": (status()[0], 403),
        }
        page, text = processes.get(f"{address}/lab", Authorization=f"token {token}")
        context.detail.update(
            {how: got for how, (got, _) in answers.items()},
            lab=page,
            version=json.loads(processes.get(f"{address}/api")[1])["version"],
        )
        context.detail["stop_seconds"] = processes.stop(server)
    wrong = [f"{how} it answers {got}, not {wanted}" for how, (got, wanted) in answers.items() if got != wanted]
    if wrong:
        raise Failed("; ".join(wrong))
    if page != 200 or "JupyterLab" not in text:
        raise Failed(f"/lab is not the page of Jupyter Lab: {page}")


def jupyter_kernel(context):
    """the kernel that notebooks get is this environment's Python and imports torch"""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3", startup_timeout=60)
    try:
        code = "import sys, torch; print(sys.prefix, torch.__version__, int(torch.ones(2).sum()))"
        said = []
        reply = client.execute_interactive(
            code, timeout=60, output_hook=lambda message: said.append(message["content"])
        )
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    text = "".join(content.get("text", "") for content in said).split()
    context.detail.update(said=text)
    if reply["content"]["status"] != "ok":
        raise Failed(f"the kernel answered {reply['content'].get('ename')}: {reply['content'].get('evalue')}")
    if text != [sys.prefix, context.found["torch"], "2"]:
        raise Failed(
            f"the kernel is another Python: {' '.join(text)}; this one is {sys.prefix} with {context.found['torch']}"
        )
