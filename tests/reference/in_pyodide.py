"""Run inside Pyodide by test_pyodide.py; the last expression is the result, as JSON."""

import json
import platform
import sys
import time

import numpy as np

before = time.perf_counter()
import deepseek_edu.reference  # noqa: E402
import deepseek_edu.reference.model  # noqa: E402

imported = time.perf_counter() - before
from deepseek_edu.config import ModelConfig  # noqa: E402
from deepseek_edu.verify import verify  # noqa: E402

report = verify("/oracles/v41_tiny.npz", "/oracles/v41_tiny_config.json")
recorded = np.load("/oracles/v41_tiny.npz")
weights = {name[2:]: recorded[name] for name in recorded.files if name.startswith("w/")}
model = deepseek_edu.reference.model.Model(ModelConfig.tiny(), weights, np.arange(96) // 2)
before = time.perf_counter()
model.prefill(recorded["ids"][0], model.new_cache())
prefilled = time.perf_counter() - before
json.dumps(
    {
        "machine": f"{sys.platform} {platform.python_version()}",
        "passed": report.passed,
        "outputs": len(report.rows),
        "import_seconds": imported,
        "prefill_seconds": prefilled,
        "ids": model.generate(recorded["ids"][0][:24], 12, stop=()).ids,
    }
)
