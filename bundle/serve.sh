#!/bin/sh
# Starts this bundle's server. It needs no network, no installation and no
# writable folder, unless the program cannot be executed where it lies.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
[ -f "$here/runtime/serve" ] || here=${SUBMISSION_DIR:?"runtime/serve is not beside serve.sh"}
serve=$here/runtime/serve
copy= # the folder of a copy, which the server removes
if ! "$serve" --version >/dev/null 2>&1; then # the exec bit is lost, or the mount is noexec
	serve=
	for folder in "${TMPDIR:-/tmp}" /tmp /var/tmp /dev/shm /run "${HOME:-/root}"; do
		copy=$(mktemp -d "$folder/serve.XXXXXX" 2>/dev/null) || continue
		if cp "$here/runtime/serve" "$copy/serve" 2>/dev/null && chmod 755 "$copy/serve" && "$copy/serve" --version >/dev/null 2>&1; then
			serve=$copy/serve
			break
		fi
		rm -rf "$copy"
	done
	[ -n "$serve" ] || { echo "serve.sh: runtime/serve can be executed nowhere: no folder is both writable and executable" >&2; exit 1; }
fi
exec "$serve" ${copy:+--remove-copy "$copy"} --weights "$here/weights" @SETTINGS@
