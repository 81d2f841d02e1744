#!/usr/bin/env bash
# All checks and timings that need a GPU, in under 8 minutes, without network.  Needs torch with CUDA and triton, and
# what the suite itself runs with (pytest, hypothesis, msgspec, rich, typer), installed or on PYTHONPATH.
#   gpu_check/benchmarks/on_gpu.sh [PYTHON]
set -uo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${1:-python3}
export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1

"$PYTHON" - <<'EOF' || exit 2
import importlib.util, sys
names = ("torch", "triton", "hypothesis", "msgspec", "pytest", "rich", "typer")
if missing := [name for name in names if importlib.util.find_spec(name) is None]:
    sys.exit(f"on_gpu.sh: not installed: {', '.join(missing)}")
import torch, triton
if not torch.cuda.is_available():
    sys.exit(f"on_gpu.sh: torch {torch.__version__} finds no CUDA device")
print(torch.__version__, triton.__version__, torch.cuda.get_device_name())
EOF
if "$PYTHON" -c 'import xdist' 2>/dev/null; then workers="-n 4"; else workers=""; fi

failed=0
step() {  # SECONDS COMMAND...
    echo "== ${*:2}"
    timeout "$@" || failed=1
}
benchmark() { step 60 "$PYTHON" -m gpu_check.benchmarks.attention --device cuda "$@"; }
check() { step "$1" "$PYTHON" -m pytest -q $workers --device cuda "${@:2}"; }

benchmark
benchmark --attention paged
check 120 gpu_check/test_attention.py
check 120 gpu_check --ignore gpu_check/test_attention.py --ignore gpu_check/faults --attention triton --dtype bfloat16 --dtype float32
check 90 gpu_check/test_traces.py gpu_check/test_text.py --dtype float64 --dtype float16
exit $failed
