#!/bin/bash
# Prolog of slurm.conf, which slurmd runs as root on each node before a job: a folder for what the job records. JOBS is a folder
# that all nodes share, the same in the three scripts of this folder.
set -eu
JOBS=${HIGHTIDE_JOBS:-/shared/hightide}
user=${SLURM_JOB_USER:-$(id -un "$SLURM_JOB_UID")}
install -d -m 0755 "$JOBS"
install -d -m 0700 -o "$user" "$JOBS/$SLURM_JOB_ID"
