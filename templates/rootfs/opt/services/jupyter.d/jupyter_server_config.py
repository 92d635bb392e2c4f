"""What JupyterLab is told by /opt/services/jupyter, over the user's own configuration; an option stands over this."""

import os

c = get_config()  # noqa: F821

# Out of the environment, which kernels and terminals inherit.
c.IdentityProvider.token = os.environ.pop("JUPYTER_TOKEN", "")
if password := os.environ.pop("JUPYTER_PASSWORD_HASH", ""):
    c.PasswordIdentityProvider.hashed_password = password
own, _, others = os.environ.pop("JUPYTER_CONFIG_PATH", "").partition(os.pathsep)
if others:
    os.environ["JUPYTER_CONFIG_PATH"] = others

c.ServerApp.open_browser = False
# Not a login shell, whose profile would set another PATH: a terminal sees what `docker exec` sees.
c.ServerApp.terminado_settings = {"shell_command": [os.environ.get("SHELL") or "/bin/bash"]}

# No word to anybody outside: no news, no looking for updates, no list of extensions from PyPI. That the page does not
# ask whether it may is in /etc/jupyter/labconfig.
c.LabApp.news_url = None
c.LabApp.check_for_updates_class = "jupyterlab.handlers.announcements.NeverCheckForUpdate"
c.LabApp.extension_manager = "readonly"
