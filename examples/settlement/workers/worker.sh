#!/usr/bin/env bash
# Settles invoices under Fencepost locks. Bash 5.1 and curl 7.55 or later, on Linux; no jq.
#
# Environment: FENCEPOST_URL, FENCEPOST_TOKEN_FILE, LEDGER_URL, INVOICES (the CSV file),
# WORKER (its name), TTL_SECONDS (whole), WORK_SECONDS (what one settlement takes) and, for the
# demo only, BEFORE_WRITE_URL (asked before each write; the write waits for the answer).
set -euo pipefail

: "${WORKER:=bash}" "${TTL_SECONDS:=30}" "${WORK_SECONDS:=0}" "${BEFORE_WRITE_URL:=}"
ttl=$((TTL_SECONDS * 100)) # in here a duration is in hundredths of a second, like /proc/uptime
queue=20     # seconds to queue for a lock once nothing else is free
held_open=50 # seconds the server holds one waiting request open at most
patience=30  # seconds to go on trying while a service does not answer

# Secrets go to curl in files that only we can read: a command line is there for all to see.
umask 077
run=$(mktemp -d)
printf 'Authorization: Bearer %s\n' "$(<"$FENCEPOST_TOKEN_FILE")" >"$run/bearer"

log() { printf '%s: %s\n' "$WORKER" "$*" >&2; }
die() { log "$*"; exit 1; }

# now VAR: a clock that cannot be set. $SECONDS and $EPOCHREALTIME follow the wall clock.
now() {
  local up
  read -r up _ </proc/uptime
  printf -v "$1" '%d' "$((10#${up/./}))"
}

# request METHOD URL [curl options]: sets status (000: no answer, the outcome is unknown),
# body and retry_after.
request() {
  local method=$1 url=$2 line
  shift 2
  : >"$answer.body"
  : >"$answer.head"
  status=$(curl --silent --request "$method" --dump-header "$answer.head" --output "$answer.body" \
    --write-out '%{http_code}' "$@" "$url") || status=000
  body=$(<"$answer.body")
  retry_after=
  while IFS=$' \r' read -r line; do
    if [[ ${line,,} =~ ^retry-after:\ *([0-9]+)$ ]]; then retry_after=${BASH_REMATCH[1]}; fi
  done <"$answer.head"
}
answer=$run/main # the renewer, a process of its own, uses files of its own

worth_retrying() { [[ $status == 000 || $status == 429 || $status == 5?? ]]; }

# pause: as long as the server asked, else about half a second, not in step with others.
pause() { sleep "${retry_after:-0.$((RANDOM % 6 + 2))}"; }

# field NAME: prints the string or number NAME of the JSON object in body. It reads token by
# token, so a name inside a nested value or inside a string is never taken for it.
field() {
  local rest=$body depth=0 name='' after_colon='' token
  local pattern='^[[:space:]]*("([^"\\]|\\.)*"|[][{}:,]|[^][{}:,"[:space:]]+)'
  while [[ $rest =~ $pattern ]]; do
    token=${BASH_REMATCH[1]} rest=${rest:${#BASH_REMATCH[0]}}
    case $token in
      '[' | '{') depth=$((depth + 1)) ;;
      ']' | '}') depth=$((depth - 1)) ;;
      :) after_colon=yes ;;
      ,) after_colon='' ;;
      *)
        [[ $depth == 1 ]] || continue
        token=${token#\"} token=${token%\"}
        [[ $after_colon ]] || { name=$token; continue; }
        [[ $name == "$1" ]] || continue
        [[ $token != *\\* ]] || return 1 # tokens, fences and codes need no escapes
        printf '%s' "$token"
        return
        ;;
    esac
  done
  return 1
}

# --- the lock -----------------------------------------------------------------

lock='' leash=''   # the lock that we hold, and the pipe that its renewer hangs on

# fencepost METHOD PATH SECONDS [curl options]
fencepost() {
  local method=$1 path=$2 seconds=$3
  shift 3
  request "$method" "$FENCEPOST_URL$path" --header @"$run/bearer" --max-time "$seconds" "$@"
}

# acquire LOCK WAIT: takes the lock, queueing for at most WAIT seconds. Fails when others keep it.
acquire() {
  local key=$WORKER-$EPOCHREALTIME-$SRANDOM sent give_up time
  local request_body="{\"ttl_seconds\":$TTL_SECONDS,\"wait_seconds\":$2,\"holder\":\"$WORKER\"}"
  now sent
  give_up=$((sent + ($2 + patience) * 100))
  while now time; ((time < give_up)); do
    # The same key is the same place in the queue, so asking again is always safe:
    # after a lost answer, and after 202, which means that the wait goes on.
    fencepost POST "/locks/$1" $((($2 < held_open ? $2 : held_open) + 10)) \
      --header "Idempotency-Key: $key" --header 'Content-Type: application/json' --data "$request_body"
    case $status in
      201) granted "$1" "$sent"; return ;;
      202) ;;
      423) return 1 ;;
      410) key=$WORKER-$EPOCHREALTIME-$SRANDOM; now sent ;; # granted and expired while its answers were lost
      409) if [[ $(field code) == deadlock ]]; then return 1; else die "acquire $1: $body"; fi ;;
      *) worth_retrying || die "acquire $1: $status $body"; pause ;;
    esac
  done
  die "acquire $1: no answer" # what may be queued lapses with its TTL
}

# granted LOCK SENT: starts on the lease in body. Fails if it ran out before we could use it.
granted() {
  local time token
  lock=$1
  if ! { fence=$(field fence) && token=$(field token); }; then die "acquire $1: cannot read the answer"; fi
  printf 'Lock-Token: %s\n' "$token" >"$run/token"
  extend $(($2 + ttl))
  # The grant came at some time between asking and hearing of it. After a wait only
  # a renewal, counted from its own sending, says how long the lease lasts.
  now time
  ((time < $2 + ttl / 3)) || renew || true
  # The renewer reads from a pipe that this process alone writes to. When we close it, or
  # die of any cause, it ends too: a lock is never kept for a worker that is gone.
  exec {leash}> >(keep_renewing)
  renewer=$!
  held || { release; return 1; }
}

# held: fails once the lease may have ended. Success is a guess: only the fence is proof.
held() {
  local time
  now time
  ((time < $(<"$run/deadline")))
}

extend() { printf '%d' "$1" >"$run/deadline.new" && mv "$run/deadline.new" "$run/deadline"; }

renew() {
  local sent
  now sent
  fencepost PUT "/locks/$lock/renew" "$(hundredths $((ttl / 3)))" --header @"$run/token"
  case $status in
    200) extend $((sent + ttl)) ;;
    403 | 410) extend 0; return 1 ;;
    *) return 1 ;;
  esac
}

hundredths() { printf '%d.%02d' $(($1 / 100)) $(($1 % 100)); }

keep_renewing() {
  local delay=$((ttl / 3)) rest rc answer=$run/renewer
  while held; do
    rc=0
    read -r -t "$(hundredths "$delay")" rest || rc=$?
    ((rc > 128)) || return 0 # not a timeout: the leash was let go
    if renew; then delay=$((ttl / 3)); else delay=$((ttl / 10)); fi
  done
}

release() {
  exec {leash}>&-
  wait "$renewer" || true
  local _ name=$lock
  lock=
  for _ in 1 2 3; do # 410 is fine: it is gone already. If all fail, the TTL frees it.
    fencepost DELETE "/locks/$name" 5 --header @"$run/token"
    worth_retrying || break
    pause
  done
}

leave() {
  [[ -z $lock ]] || release
  rm -rf "$run"
}
trap leave EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

# --- the work -----------------------------------------------------------------

# write PATH [INVOICE CENTS]: sends a write with the fence, again and again until its outcome
# is known. Fails when the lock is lost, with the reason in why.
write() {
  local data=()
  [[ $# == 1 ]] || data=(--header 'Content-Type: application/json' --data "{\"invoice\":\"$2\",\"amount_cents\":$3}")
  while held; do
    if [[ $BEFORE_WRITE_URL && $# == 3 ]]; then
      curl --silent --max-time 120 --data "$WORKER $lock $fence $2" "$BEFORE_WRITE_URL" || true
    fi
    # However close the check above is to this line, the process can stop in between.
    request POST "$LEDGER_URL/batches/$lock/$1" --max-time 5 \
      --header "Fence: $fence" --header "Worker: $WORKER" "${data[@]}"
    case $status in
      200 | 201) return 0 ;;
      409) why="refused: 409 $body"; return 1 ;;
      *) worth_retrying || die "$1 $lock: $status $body"; pause ;;
    esac
  done
  why='the lease has ended'
  return 1
}

# settle: pays what is still open. Opening comes first: it shuts out every older holder.
settle() {
  local settled invoice cents
  write open || return 1
  settled=$body
  log "$lock fence $fence: holds it, $(wc -w <<<"$settled") of ${size[$lock]} settled before"
  while read -r invoice cents; do
    [[ $'\n'$settled$'\n' != *$'\n'$invoice$'\n'* ]] || continue
    sleep "$WORK_SECONDS"
    write settlements "$invoice" "$cents" || return 1
  done <<<"${batch[$lock]}"
}

# finished LOCK: a look without the lock saves taking it; only a look under the lock may be acted on.
finished() {
  request GET "$LEDGER_URL/batches/$1" --max-time 5
  [[ $status == 200 && $(wc -w <<<"$body") == "${size[$1]}" ]]
}

# take_one: the first lock that is free, else a place in the queue of the first unfinished one.
take_one() {
  local name first=
  for name in "${names[@]}"; do
    [[ -n ${batch[$name]} ]] || continue
    if finished "$name"; then batch[$name]=; continue; fi
    if acquire "$name" 0; then return 0; fi
    : "${first:=$name}"
  done
  [[ -z $first ]] || acquire "$first" "$queue"
}

names=()
declare -A batch=() size=() # by lock: lines of "invoice cents", and how many
while IFS=, read -r name invoice cents; do
  [[ -v size[$name] ]] || names+=("$name")
  batch[$name]+=${batch[$name]:+$'\n'}"$invoice $cents"
  size[$name]=$((${size[$name]:-0} + 1))
done < <(tail -n +2 "$INVOICES")

while :; do
  left=
  for name in "${names[@]}"; do left+=${batch[$name]}; done
  [[ $left ]] || break
  take_one || continue
  [[ $lock ]] || continue
  if settle; then batch[$lock]=; else log "$lock fence $fence: stops, $why"; fi
  release
done
