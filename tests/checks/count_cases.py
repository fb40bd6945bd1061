"""Counts test cases from Bazel's build events (--build_event_json_file).

Usage: count_cases.py EVENTS.json BAZEL_EXIT_STATUS

Prints "PASSED FAILED SKIPPED". A GoogleTest binary counts by its cases, any
other test as one. A test that could not be built, timed out, or failed without
a failing case (a leak report after the last case) is one failure, and so is a
Bazel run that failed for a reason none of the tests shows. The logs of failed tests go to stderr.
"""

import json
import sys
import urllib.parse
import xml.etree.ElementTree

LOG_LINES = 200  # shown of a failed test


def count_xml(path):
    """Returns (passed, failed, skipped) of one test.xml. Disabled cases count nowhere."""
    passed = failed = skipped = 0
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        if case.get("status") == "notrun":
            continue
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.get("result") == "skipped" or case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def output_path(result, name):
    for output in result.get("testActionOutput", []):
        if output.get("name") == name:
            return urllib.parse.unquote(urllib.parse.urlparse(output["uri"]).path)
    return None


def show_log(result):
    path = output_path(result, "test.log")
    if path is not None:
        with open(path, encoding="utf-8", errors="replace") as log:
            sys.stderr.writelines(log.readlines()[-LOG_LINES:])


def main(events, bazel_status):
    results = {}  # (label, run, shard) -> its last attempt
    tests = set()
    with open(events, encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            event_id = event.get("id", {})
            if "testResult" in event:
                name = event_id["testResult"]
                results[name["label"], name.get("run"), name.get("shard")] = event["testResult"]
            elif "testSize" in event.get("configured", {}):
                tests.add(event_id["targetConfigured"]["label"])

    total = [0, 0, 0]
    for (label, _, _), result in sorted(results.items(), key=lambda item: item[0][0]):
        ok = result.get("status") in ("PASSED", "FLAKY")
        counts = [0, 0, 0]
        path = output_path(result, "test.xml")
        if path is not None:
            try:
                counts = list(count_xml(path))
            except (OSError, xml.etree.ElementTree.ParseError) as error:
                print(f"{label}: no readable test.xml: {error}", file=sys.stderr)
        if not ok and counts[1] == 0:
            counts[1] = 1
        if ok and sum(counts) == 0:
            counts[0] = 1
        if counts[1]:
            show_log(result)
            print(f"{label}: {counts[1]} failed ({result.get('status')})", file=sys.stderr)
        total = [a + b for a, b in zip(total, counts)]
    for label in sorted(tests - {key[0] for key in results}):
        print(f"{label}: could not be built or run", file=sys.stderr)
        total[1] += 1
    # 4: no tests were found, which the caller judges.
    if bazel_status not in (0, 4) and total[1] == 0:
        print(f"bazel exited with {bazel_status}", file=sys.stderr)
        total[1] = 1
    print(*total)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
