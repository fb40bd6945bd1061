"""Reads what `memreplay convert` writes for Perfetto with Perfetto's own schema (the package perfetto).

What its trace processor would complain of is looked for here: unknown fields, tracks that were
not described, slices that do not nest, time that goes back. Counters are held against --to csv.
Where trace_processor_shell is at hand (on PATH, or TRACE_PROCESSOR names it), it loads the file too.
"""

import collections
import csv
import importlib.util
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("MEMREPLAY_PROGRAM", str(ROOT / "memreplay"))
SHARED = os.environ.get("MEMREPLAY_SHARED", "")
FIGURES = ("reserved_bytes", "active_bytes", "allocated_bytes", "requested_bytes")


def inputs():
    """Returns files with events: schedules, the project's recordings, other people's."""
    own = ["examples/mechanisms/pending_free.txtpb", "tests/data/serving.jsonl"]
    own += [f"tests/data/snapshots/torch-2.15/{name}.pickle"
            for name in ("training", "streams", "expandable_oom", "pools")]
    files = [ROOT / name for name in own]
    for name in ("nesta_oom_cold", "octree_peso_retries", "uoft_before_train_cold"):
        path = pathlib.Path(SHARED, "data/snapshots", name + ".pickle")
        if SHARED and path.exists():
            files.append(path)
    return files


@unittest.skipUnless(importlib.util.find_spec("perfetto"), "needs the package perfetto")
class Perfetto(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def convert(self, file, to, *flags):
        out = os.path.join(self.folder.name, "out." + to)
        subprocess.run([PROGRAM, "convert", str(file), out, "--to", to, *flags], check=True)
        return out

    def trace(self, file, *flags):
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema
        data = pathlib.Path(self.convert(file, "perfetto", *flags)).read_bytes()
        trace = schema.Trace()
        self.assertEqual(trace.ParseFromString(data), len(data))
        return schema, trace

    def check(self, schema, trace):
        """Checks what every reader relies on; returns counters by track, the slices of allocations and those of
        phases."""
        event_type = schema.TrackEvent
        tracks, counters = {}, collections.defaultdict(list)
        open_slices, slices, phases = collections.defaultdict(list), [], []
        latest = 0
        for packet in trace.packet:
            self.assertEqual(packet.trusted_packet_sequence_id, 1)
            if packet.HasField("track_descriptor"):
                track = packet.track_descriptor
                self.assertNotIn(track.uuid, tracks)
                if track.parent_uuid:
                    self.assertIn(track.parent_uuid, tracks)
                tracks[track.uuid] = track
                continue
            self.assertTrue(packet.HasField("track_event"))
            self.assertGreaterEqual(packet.timestamp, latest, "time goes back")
            latest = packet.timestamp
            event = packet.track_event
            self.assertIn(event.track_uuid, tracks)
            if event.type == event_type.TYPE_COUNTER:
                self.assertTrue(tracks[event.track_uuid].HasField("counter"))
                counters[event.track_uuid].append((packet.timestamp, event.counter_value))
            elif event.type == event_type.TYPE_SLICE_BEGIN:
                self.assertEqual(open_slices[event.track_uuid], [], "a slice within a slice")
                open_slices[event.track_uuid].append((packet.timestamp, event))
            elif event.type == event_type.TYPE_SLICE_END:
                self.assertTrue(open_slices[event.track_uuid], "the end of no slice")
                begin, first = open_slices[event.track_uuid].pop()
                details = {note.name: note.string_value or note.uint_value or note.pointer_value
                           for note in first.debug_annotations}
                is_phase = tracks[event.track_uuid].name == "phase"
                (phases if is_phase else slices).append((begin, packet.timestamp, first.name, details))
            else:
                self.assertEqual(event.type, event_type.TYPE_INSTANT)
                self.assertTrue(event.name)
        self.assertEqual([track for track, open_ in open_slices.items() if open_], [])
        return {tracks[uuid].name: values for uuid, values in counters.items()}, slices, phases

    def test_is_what_perfetto_reads(self):
        for file in inputs():
            with self.subTest(file=file.name):
                schema, trace = self.trace(file, "--slices")
                counters, slices, _ = self.check(schema, trace)
                with open(self.convert(file, "csv"), newline="", encoding="utf-8") as text:
                    rows = list(csv.DictReader(text))
                devices = {row["device"] for row in rows}
                if len(devices) > 1:
                    continue
                # Counters: the last value at each time is that of the table.
                for figure in FIGURES:
                    self.assertEqual(counters[figure][-1][1], int(rows[-1][figure]))
                    self.assertEqual(max(value for _, value in counters[figure]),
                                     max([counters[figure][0][1]] +
                                         [int(row[figure]) for row in rows]))
                # Slices: one an allocation, and at any time as many bytes as are active.
                allocs = sum(row["event"] == "alloc" for row in rows)
                self.assertGreaterEqual(len(slices), allocs)  # and those of before
                changes = collections.Counter()
                for begin, end, name, details in slices:
                    self.assertTrue(name)
                    changes[begin] += details["bytes"]
                    changes[end] -= details["bytes"]
                live, levels = 0, []
                for time in sorted(changes):
                    live += changes[time]
                    levels.append((time, live))
                active = dict(counters["active_bytes"])
                end = max(time for time, _ in counters["active_bytes"])
                for time, level in levels:
                    if time in active and time < end:
                        self.assertEqual(level, active[time], f"at {time} ns")

    def test_without_slices_there_are_counters_alone(self):
        schema, trace = self.trace(ROOT / "tests/data/serving.jsonl")
        counters, slices, _ = self.check(schema, trace)
        self.assertEqual(sorted(counters), sorted([*FIGURES, "activation", "cache", "parameter"]))
        self.assertEqual(slices, [])

    def test_counters_of_categories_add_up_to_what_is_active(self):
        for file in inputs():
            with self.subTest(file=file.name):
                counters, slices, phases = self.check(*self.trace(file, "--slices"))
                by_category = {name: values for name, values in counters.items() if name not in FIGURES}
                self.assertTrue(by_category)
                changes = sorted((time, name, value) for name, values in by_category.items()
                                 for time, value in dict(values).items())  # the last at each time
                now, sums = dict.fromkeys(by_category, 0), {}
                for time, name, value in changes:
                    self.assertGreaterEqual(value, 0)
                    now[name] = value
                    sums[time] = sum(now.values())
                active = dict(counters["active_bytes"])
                self.assertTrue(set(active) <= set(sums))
                self.assertEqual({time: sums[time] for time in active}, active)
                # Every slice has a category that is counted.
                for _, _, name, details in slices:
                    self.assertIn(details["category"], by_category, name)
                # Phases follow each other.
                self.assertTrue(phases)
                for (_, end, _, _), (begin, _, _, _) in zip(phases, phases[1:]):
                    self.assertEqual(end, begin)

    def test_a_training_run_has_its_phases_and_categories(self):
        counters, _, phases = self.check(*self.trace(ROOT / "examples/fsdp.txtpb"))
        self.assertLessEqual({"parameter", "gradient", "activation"}, set(counters))
        names = [name.split()[0] for _, _, name, _ in phases]
        self.assertEqual(names[:3], ["load", "forward", "backward"])

    def test_trace_processor_loads_it(self):
        shell = os.environ.get("TRACE_PROCESSOR") or shutil.which("trace_processor_shell")
        if not shell:
            self.skipTest("no trace_processor_shell here")
        from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig
        for file in inputs():
            out = self.convert(file, "perfetto", "--slices")
            processor = TraceProcessor(trace=out, config=TraceProcessorConfig(bin_path=shell))
            try:
                wrong = list(processor.query(
                    "select name, value from stats where severity != 'info' and value > 0"))
                self.assertEqual([(row.name, row.value) for row in wrong], [])
                count = next(iter(processor.query("select count(*) as n from slice"))).n
                self.assertGreater(count, 0)
            finally:
                processor.close()


if __name__ == "__main__":
    unittest.main()
