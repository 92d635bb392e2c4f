# shellcheck shell=sh
# A login shell (of SSH, of tmux, of a Jupyter terminal) keeps the PATH that it was started with, which /etc/profile has
# just replaced.
own_path=$(tr '\0' '\n' <"/proc/$$/environ" 2>/dev/null | sed -n 's/^PATH=//p')
PATH=${own_path:-$PATH}
unset own_path
