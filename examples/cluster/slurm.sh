#!/usr/bin/env bash
# A Ray cluster inside a Slurm job: a head on the first node, a worker on each of the others, then
# one command over all of them. docs/guides/cluster.md explains it.
#
#   sbatch examples/cluster/slurm.sh s3://my-bucket/my-run --metrics standard
#
#SBATCH --job-name=convergebench
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --mem=64G
#SBATCH --time=08:00:00
#SBATCH --signal=B:TERM@120
#SBATCH --output=convergebench-%j.log
# Local editors and the learned metrics use GPUs where there are some; ask for them like this:
##SBATCH --gpus-per-node=1
set -euo pipefail

if [ "$#" -eq 0 ]; then
  echo "usage: sbatch $0 RUN [options of convergebench score]" >&2
  exit 2
fi

# The same Python on every node: an environment on the shared file system.
if [ -n "${CONVERGEBENCH_ENV:-}" ]; then
  # shellcheck disable=SC1091
  source "$CONVERGEBENCH_ENV/bin/activate"
fi

# Fast and local to the node; short, because Ray puts sockets there and their names may not be long.
scratch="${CONVERGEBENCH_SCRATCH:-/tmp}/cb-$SLURM_JOB_ID"
export RAY_USAGE_STATS_ENABLED=0
export GRPC_ENABLE_FORK_SUPPORT=false # or connections to ray:// fail now and then: ray-project/ray#63202
# Whoever reaches a Ray cluster can run code as you. A token of this job's own, in the environment of
# its processes and in no file, keeps the others on these nodes out.
RAY_AUTH_TOKEN="$(python3 -c 'import secrets; print(secrets.token_hex(32))')"
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN
cpus="${SLURM_CPUS_PER_TASK:-1}"
gpus="${SLURM_GPUS_ON_NODE:-0}"
store_memory=1000000000 # bytes: frames come from the run's store, so little passes through Ray's

# Two jobs may share a node: their heads must not want the same ports.
port=$((20000 + SLURM_JOB_ID % 10000))
client_port=$((port + 10000))

mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
one=(srun --overlap --nodes=1 --ntasks=1)
# The first address of the node; name the right one here where nodes have several networks.
address="$("${one[@]}" --nodelist="${nodes[0]}" hostname -I | awk '{ print $1; exit }')"
head="$address:$port"

raylets=()
stop() {
  trap '' TERM INT
  # Each `ray start --block` ends with its step, and takes what it started with it.
  for pid in "${raylets[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
  wait || true
  srun --overlap --ntasks-per-node=1 rm -rf "$scratch" || true
}
trap stop EXIT
trap 'exit 143' TERM INT

echo "head on ${nodes[0]} ($head), ${#nodes[@]} nodes, $cpus cores and $gpus GPUs each"
"${one[@]}" --nodelist="${nodes[0]}" \
  ray start --head --block --node-ip-address="$address" --port="$port" \
  --ray-client-server-port="$client_port" --include-dashboard=false --temp-dir="$scratch" \
  --num-cpus="$cpus" --num-gpus="$gpus" --object-store-memory="$store_memory" &
raylets+=("$!")

answers() { (exec 3<>"/dev/tcp/$address/$port") 2>/dev/null; }
for _ in $(seq 120); do
  if answers; then break; fi
  sleep 1
done
if ! answers; then
  echo "no Ray head answers at $head after two minutes" >&2
  exit 1
fi

for node in "${nodes[@]:1}"; do
  "${one[@]}" --nodelist="$node" \
    ray start --block --address="$head" \
    --num-cpus="$cpus" --num-gpus="$gpus" --object-store-memory="$store_memory" &
  raylets+=("$!")
done

# All nodes are paid for: begin when they are all there.
python3 - "$head" "${#nodes[@]}" <<'PYTHON'
import sys, time, ray

ray.init(sys.argv[1], log_to_driver=False, logging_level="ERROR")
for _ in range(120):
    joined = sum(node["Alive"] for node in ray.nodes())
    if joined >= int(sys.argv[2]):
        break
    time.sleep(1)
print(f"{joined} of {sys.argv[2]} nodes have joined", flush=True)
PYTHON

# One command; without --engine ray it would do the same on one machine. In the background and
# waited for, so that the signal before the time limit is heard at once, and with `set -m`, so that
# it hears Ctrl-C. What was scored until then is kept: send the same job again.
set -m
convergebench score "$@" --engine ray --address "$head" &
command=$!
trap 'kill -INT "$command" 2>/dev/null; wait "$command" || true; exit 143' TERM INT
wait "$command"
