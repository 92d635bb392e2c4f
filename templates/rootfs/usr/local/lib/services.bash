# shellcheck shell=bash
# What the entry point, the health check and the service ssh share.

programs=/opt/services

# The services whose programs this image has. What has a dot in its name is no service but belongs to one.
available() {
    local service
    for service in "$programs"/*; do
        if [[ -f $service && ${service##*/} != *.* ]] && "$service" --available >/dev/null 2>&1; then
            printf '%s\n' "${service##*/}"
        fi
    done
}

# Whether somebody is to be let in.
key_is_given() {
    [[ -n ${SSH_PUBLIC_KEY:-} || -n ${SSH_PUBLIC_KEY_FILE:-} ]] || compgen -G '/etc/ssh/authorized_keys.d/*' >/dev/null
}

# The folder that holds which services were asked for and what they need while they run; `state_folder make` makes it.
# /tmp can be shared with other containers, so the name holds what no other has: its number of this file system.
state_folder() {
    local place folder
    for place in /run /tmp; do
        folder=$place/services-$EUID-$(stat --dereference --format=%i /proc/self/ns/mnt)
        if [[ ${1:-} = make ]]; then mkdir -m 0700 "$folder" 2>/dev/null; fi
        if [[ -d $folder && -O $folder && ! -L $folder ]]; then
            printf '%s\n' "$folder"
            return 0
        fi
    done
    return 1
}
