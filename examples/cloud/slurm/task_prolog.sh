#!/bin/bash
# TaskProlog of slurm.conf, which runs as the user before each task. What it prints as "export" is in the task's environment:
# hightide run, attach and bench write there.
echo "export HIGHTIDE_DATA=${HIGHTIDE_JOBS:-/shared/hightide}/$SLURM_JOB_ID"
