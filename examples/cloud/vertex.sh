#!/bin/bash
# The command of a custom job of Vertex AI: the program, recorded. The service names a folder of its output in Cloud
# Storage, which it mounts under /gcs. The recording goes there as one file, once the program has ended:
# a mounted bucket takes files that are written once. Then: hightide show FILE
folder=${AIP_CHECKPOINT_DIR:-${AIP_MODEL_DIR:?Vertex AI sets it where the job has a baseOutputDirectory}}
folder=${folder/#gs:\/\//\/gcs\/}
mkdir -p "$folder"
job=${CLOUD_ML_JOB_ID:-job}
exec hightide run --name "$job" --output "${folder%/}/$job.hightide" -- python "$@"
