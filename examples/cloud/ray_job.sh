#!/bin/bash
# ray job submit -- bash ray_job.sh train.py: the job's program, recorded on the node where it runs, into a folder that
# all nodes share. Its tasks run in workers of other nodes: those that are to be recorded have @hightide.recorded.
job=$(python -c 'import json, os
print(json.loads(os.environ.get("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")).get("metadata", {}).get("job_submission_id", "job"))')
exec hightide run --name "$job" --data-dir "${RECORDINGS:-/mnt/recordings}" -- python "$@"
