# Runs one server and ends it when the process that asked for it is gone, even if that was killed.
#
# Standard input is a pipe whose other end only that process holds. At its end (however it came about) the
# server is killed and its directory removed; the word "keep" stops the server and leaves the directory.
# If the server ends by itself, so does this script, with the same status.
#
#   supervisor.sh ON_EOF DIRECTORY LOG COMMAND [ARGUMENT...]      ON_EOF is "remove" or "keep"
on_eof=$1 dir=$2 log=$3
shift 3
exec 3<&0 </dev/null

order=
trap 'order=remove' TERM
trap 'order=keep' USR1

"$@" >"$log" 2>&1 3<&- &
server=$!

(
  word=
  read -r word <&3
  case ${word:-$on_eof} in
    keep) signal=USR1 ;;
    *) signal=TERM ;;
  esac
  # The order goes out before the kill, so it is known by the time the server is found dead.
  kill -s "$signal" "$$"
  kill -s KILL "$server"
) &
watcher=$!
exec 3<&-

wait "$server"
status=$?
if [ -z "$order" ]; then
  kill -s KILL "$watcher"
  exit "$status"
fi

# The signal interrupts the first wait.
wait "$server"
if [ "$order" = remove ]; then
  rm -rf -- "$dir"
  # The last server out closes the door.
  rmdir -- "${dir%/*}" 2>/dev/null
fi
exit 0
