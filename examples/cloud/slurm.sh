#!/bin/bash
#SBATCH --job-name=train
#SBATCH --mem=16G
# sbatch slurm.sh train.py: the program, recorded. Recordings lie where the job was handed in, one for each job.
exec hightide run --name "$SLURM_JOB_NAME-$SLURM_JOB_ID" --tag job="$SLURM_JOB_ID" \
	--data-dir "$SLURM_SUBMIT_DIR/hightide" -- python "$@"
