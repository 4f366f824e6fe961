"""What junitparser and sarif-tools read in the files that tests/results.rs has written to this directory."""

import json

from junitparser import Failure, JUnitXml, Skipped
from sarif import loader


def cases(path):
    return [case for suite in JUnitXml.fromfile(path) for case in suite]


# A run: as many cases of each outcome as its JSON has.
(run,) = json.load(open("run.json"))["runs"]
read = JUnitXml.fromfile("run.junit")
summary = run["summary"]
skipped = summary["skipped"] + summary["known_deviations"]
assert (read.tests, read.failures, read.errors, read.skipped) == (len(run["scenarios"]), 0, 0, skipped)
ids = [f"{case.classname.rsplit('.', 1)[1]}.{case.name}" for case in cases("run.junit")]
assert ids == [scenario["id"] for scenario in run["scenarios"]], ids
reasons = [case.result[0].message for case in cases("run.junit") if case.result]
assert len(reasons) == skipped and all(reasons), reasons
assert all(isinstance(case.result[0], Skipped) for case in cases("run.junit") if case.result)

# A program: itself, and its finding, at a file whose name has a space and a percent sign.
program, finding = cases("found.junit")
assert program.name == "./access <&é wrong" and not program.result, program.name
assert finding.name == "VS-MR-01 at an access %41.c:10", finding.name
assert finding._elem.get("file") == "src/an access %41.c" and finding._elem.get("line") == "10"
(failure,) = finding.result
assert isinstance(failure, Failure) and failure.type == "VS-MR-01 (MR-01)", failure.type
assert failure.message.startswith("ibv_reg_mr: EINVAL: ") and "help: " in failure.text

sarif = loader.load_sarif_file("found.sarif")
assert sarif.get_distinct_tool_names() == ["verbsim"]
(record,) = sarif.get_records()
assert (record["Severity"], record["Code"], record["Line"]) == ("error", "VS-MR-01", 10), record
assert record["Location"] in ("src/an access %41.c", "src/an%20access%20%2541.c"), record
assert record["Description"].startswith("ibv_reg_mr: EINVAL: "), record

# A finding without a line belongs to the program.
(record,) = loader.load_sarif_file("leak.sarif").get_records()
assert (record["Severity"], record["Code"], record["Location"]) == ("warning", "VS-OBJ-03", "leak"), record
