# Sourced by the scripts of servers. They run in their own folder.
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../../.. && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/fencetest
PATH=$PATH:/usr/sbin:$(echo /usr/lib/postgresql/*/bin)
tools=$root/fencetest/tools

# A command line that starts with this has no root: some servers refuse it. The process may enter
# the folders that lead to its own, and still ends when its parent is killed.
# shellcheck disable=SC2034
without_root=()
if [ "$(id -u)" = 0 ]; then
  without_root=(setpriv --reuid=nobody --regid=nogroup --clear-groups --pdeathsig=keep
    --inh-caps=+dac_override --ambient-caps=+dac_override)
fi

# A command line that starts with this ends when its parent is killed.
# shellcheck disable=SC2034
with_parent=(setpriv --pdeathsig=KILL)

# await COMMAND… repeats it until it succeeds, and ends if the last process in the background has.
await() {
  until "$@" 2>/dev/null; do
    kill -0 $!
    sleep 0.2
  done
}
