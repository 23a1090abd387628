#!/bin/bash
# The command of a job of Azure ML: the program, recorded. What lies in outputs/ is kept with the job.
# Download that (az ml job download), then: hightide show FILE
job=${AZUREML_RUN_ID:-job}
mkdir -p outputs
exec hightide run --name "$job" --output "outputs/$job.hightide" -- python "$@"
