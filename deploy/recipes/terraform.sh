#!/bin/sh
# Plans and applies one at a time, with any backend. A lost lock ends Terraform before another apply
# begins. If the backend has a lock of its own, the next apply then needs terraform force-unlock.
set -eu
exec fencepost run --wait 30m --timeout 1h "tf:${1:-prod}" -- \
  terraform apply -auto-approve -input=false
