#!/usr/bin/env python3
"""How the error of measured rows depends on one number of a framework preset.

    scripts/fit_preset.py build/release/foreshard megatron-deepspeed host_per_kernel "40 us,65 us,90 us" data/measured/vtrain_single.csv

Every value is put into a copy of the shipped data, the rows are predicted, and the median and mean absolute errors of time are
printed with the signed median. The value with the least median is the fit; the neighbours whose median is less than a tenth above
it say how certain it is. The presets' numbers that are fits name their rows in docs/cost-model.md.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


def main():
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    program, framework, field, values, files = *sys.argv[1:5], sys.argv[5:]
    root = pathlib.Path(__file__).resolve().parent.parent
    with tempfile.TemporaryDirectory() as folder:
        for name in ("models", "topologies", "frameworks", "accuracy"):
            shutil.copytree(root / name, pathlib.Path(folder) / name)
        path = pathlib.Path(folder) / "frameworks" / (framework + ".json")
        preset = json.loads(path.read_text())
        for value in values.split(","):
            try:
                preset[field] = json.loads(value)
            except json.JSONDecodeError:
                preset[field] = value.strip()
            path.write_text(json.dumps(preset))
            run = subprocess.run([program, "validate", "--json", *files], capture_output=True, text=True, check=True,
                                 env={**os.environ, "FORESHARD_DATA": folder})
            score = json.loads(run.stdout)["overall"]["time"]
            print(f"{framework} {field} = {value.strip():>8}: median {100 * score['median']:5.2f} %, "
                  f"mean {100 * score['mean_of_rows']:5.2f} %, signed {100 * score['signed']:+5.2f} %")


main()
