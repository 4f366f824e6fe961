"""Runs the step of action.yml as a runner of GitHub does, with the inputs of the command line.

step.py ACTION NAME=VALUE...
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

path, *given = sys.argv[1:]
action = yaml.safe_load(Path(path).read_text())
inputs = {name: of["default"] for name, of in action["inputs"].items()} | dict(each.split("=", 1) for each in given)
(step,) = action["runs"]["steps"]


def value(text):
    return re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda found: inputs[found[1]], text)


environment = {name: value(text) for name, text in step["env"].items()}
environment["GITHUB_ACTION_PATH"] = str(Path(path).parent.resolve())
# A runner starts `shell: bash` so.
command = [step["shell"], "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
sys.exit(subprocess.run(command, env=os.environ | environment).returncode)
