#!/bin/bash
# Epilog of slurm.conf, which slurmd runs as root on each node once a job has ended, however it did: what its runs were, as text.
# The user's files are written and read as the user. A job that recorded nothing leaves nothing, and no job fails for this.
folder=${HIGHTIDE_JOBS:-/shared/hightide}/$SLURM_JOB_ID
[[ -d $folder ]] || exit 0
rmdir "$folder" 2>/dev/null && exit 0
user=${SLURM_JOB_USER:-$(id -un "$SLURM_JOB_UID")}
as=()
[[ $(id -un) == "$user" ]] || as=(runuser -u "$user" --)
"${as[@]}" env HOME="$folder" HIGHTIDE_DATA="$folder" PATH="$PATH:/usr/local/bin:/usr/bin:/bin" bash -c '
	cd "$HIGHTIDE_DATA" && for run in runs/*/; do
		[[ -d $run ]] && hightide show "$(basename "$run")"
	done >"report-$SLURMD_NODENAME.txt" 2>&1'
exit 0
