#!/bin/bash
# The entry point of a training job of SageMaker: the program, recorded into the folder that the service packs into
# output.tar.gz. Unpack that, then: hightide show last --data-dir hightide
exec hightide run --tag job="${TRAINING_JOB_NAME:-none}" \
	--data-dir "${SM_OUTPUT_DATA_DIR:-/opt/ml/output/data}/hightide" -- python "$@"
